"""`toolserver stdio`: it talks first and loads the service only when it is needed."""

import os
import subprocess
import sys
from contextlib import asynccontextmanager

from toolserver.cli.stdio import make_load
from toolserver.mcp.messages import ClientFacts


def test_the_conversation_begins_before_any_setting_is_read(monkeypatch):
    monkeypatch.setenv("TOOLSERVER_PORT", "not a number")
    make_load({"data_dir": None}, toolset="core", tools=["forex"], server=None)


async def test_the_service_is_loaded_when_the_conversation_needs_it(monkeypatch):
    opened = []

    @asynccontextmanager
    async def open_conversation(flags, *, toolset, tools, output_schema, wants_views):
        opened.append((flags, toolset, tools, output_schema, wants_views))
        yield "conversation"

    monkeypatch.setattr("toolserver.cli.local_service.open_conversation", open_conversation)
    load = make_load({"data_dir": "data"}, toolset="core", tools=None, server=None)
    assert opened == []
    for shows_views in (False, True):
        async with load(ClientFacts("t", shows_views)) as conversation:
            assert conversation == "conversation"
    assert opened == [({"data_dir": "data"}, "core", None, True, shows_views) for shows_views in (False, True)]


async def test_a_bridge_is_opened_to_the_server_with_the_choice_of_tools(tmp_path):
    flags, url = {"data_dir": tmp_path}, "https://data.example"
    for tools, path in ((None, "api/mcp?toolset=all"), (["forex", "gas"], "api/mcp?tools=forex%2Cgas")):
        async with make_load(flags, toolset="all", tools=tools, server=url)(ClientFacts("t")) as bridge:
            assert bridge.path == path
    short = make_load(flags, toolset="core", tools=None, server=url, output_schema=False)
    for shows_views, more in ((False, ""), (True, "&views=on")):
        async with short(ClientFacts("t", shows_views)) as bridge:
            assert bridge.path == f"api/mcp?toolset=core&output_schema=off{more}"


async def test_hosts_that_search_tools_are_offered_all_of_them_unless_told_otherwise(tmp_path):
    flags, url = {"data_dir": tmp_path}, "https://data.example"
    for client, toolset, tools, query in (
        ("claude-code", None, None, "?toolset=all"),
        ("codex-mcp-client", None, None, "?toolset=all"),
        ("claude-code", "core", None, "?toolset=core"),
        ("claude-code", None, ["forex"], "?tools=forex"),
        ("cursor-vscode", None, None, ""),
        ("", None, None, ""),
    ):
        async with make_load(flags, toolset=toolset, tools=tools, server=url)(ClientFacts(client)) as bridge:
            assert bridge.path == f"api/mcp{query}"


def test_importing_the_verb_imports_neither_the_service_nor_the_settings():
    script = "import sys, toolserver.cli.stdio; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=_path())
    assert not {"toolserver.app", "toolserver.settings", "pydantic", "httpx"} & set(done.stdout.split())


def _path():
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
