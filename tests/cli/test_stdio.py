"""`toolserver stdio`: it talks first and loads the service only when it is needed."""

import os
import subprocess
import sys
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from toolserver.cli import stdio
from toolserver.cli.stdio import stdio_command


@pytest.fixture
def served(monkeypatch):
    """What `serve_stdio` was called with."""
    calls = []

    async def serve_stdio(load):
        calls.append(load)

    monkeypatch.setattr(stdio, "serve_stdio", serve_stdio)
    return calls


async def test_the_conversation_begins_before_any_setting_is_read(served, monkeypatch):
    monkeypatch.setenv("TOOLSERVER_PORT", "not a number")
    await stdio_command({"data_dir": None}, toolset="core", tools=["forex"])
    assert len(served) == 1


async def test_the_service_is_loaded_with_the_flags_for_an_owner_without_limits(served, monkeypatch, tmp_path):
    frozen, built = [], []
    parts = SimpleNamespace(registry="registry", pipeline="pipeline", facts="facts")

    @asynccontextmanager
    async def open_session(registry, pipeline, caller, facts, **chosen):
        yield registry, pipeline, caller, facts, chosen

    @asynccontextmanager
    async def local_service(settings, *, books):
        assert not books
        built.append(settings.data_dir)
        yield parts

    monkeypatch.setattr("toolserver.cli.in_process.local_service", local_service)
    monkeypatch.setattr("toolserver.mcp.stdio_session.open_session", open_session)
    monkeypatch.setattr("toolserver.core.logging.set_up", lambda level, format: None)
    monkeypatch.setattr("toolserver.serving.listen.freeze_startup", lambda: frozen.append(True))
    await stdio_command({"data_dir": tmp_path}, toolset="core", tools=None)
    (load,) = served
    assert built == []
    async with load() as (registry, pipeline, caller, facts, chosen):
        assert chosen == {"toolset": "core", "tools": None}
        assert (registry, pipeline, facts) == ("registry", "pipeline", "facts")
        assert (caller.transport, caller.limited) == ("stdio", False)
    assert (built, frozen) == ([tmp_path], [True])


async def test_a_bridge_is_opened_to_the_server_with_the_choice_of_tools(served, monkeypatch):
    opened = []

    @asynccontextmanager
    async def open_bridge(server, flags, chosen):
        opened.append((server, flags, chosen))
        yield "bridge"

    monkeypatch.setattr("toolserver.cli.bridge.open_bridge", open_bridge)
    await stdio_command({"data_dir": None}, toolset="all", tools=None, server="https://data.example")
    await stdio_command({"data_dir": None}, toolset="all", tools=["forex", "gas"], server="https://data.example")
    assert opened == []
    for load in served:
        async with load() as bridge:
            assert bridge == "bridge"
    assert opened == [
        ("https://data.example", {"data_dir": None}, {"toolset": "all"}),
        ("https://data.example", {"data_dir": None}, {"tools": "forex,gas"}),
    ]


def test_importing_the_verb_imports_neither_the_service_nor_the_settings():
    script = "import sys, toolserver.cli.stdio; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=_path())
    assert not {"toolserver.app", "toolserver.settings", "pydantic", "httpx"} & set(done.stdout.split())


def _path():
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
