"""`toolserver stdio`: it talks first and loads the service only when it is needed."""

import os
import subprocess
import sys
from contextlib import asynccontextmanager

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


async def test_the_service_is_loaded_for_an_owner_without_limits_when_the_conversation_needs_it(served, monkeypatch):
    opened = []

    @asynccontextmanager
    async def open_conversation(flags, *, toolset, tools):
        opened.append((flags, toolset, tools))
        yield "conversation"

    monkeypatch.setattr("toolserver.cli.local_service.open_conversation", open_conversation)
    await stdio_command({"data_dir": "data"}, toolset="core", tools=None)
    (load,) = served
    assert opened == []
    async with load() as conversation:
        assert conversation == "conversation"
    assert opened == [({"data_dir": "data"}, "core", None)]


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
