"""Check that adding a tool touches only its own file and its source's: every face finds it without other changes."""

import json
import subprocess
import sys
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from catalog.llm_tools import llm_tools
from tests.arranged import FACTS, client_of
from tests.calls.parts import engine
from tests.requirements import proves
from toolserver.app import write_site_documents
from toolserver.registry.registry import Registry

SOURCE = '''
"""Tides of one harbour (test)."""

from typing import Any

from toolserver.upstream.source import Get, HostGroup, Keys, Licence, Source


def request(query: Any, keys: Keys) -> Get:
    return Get("https://tides.example/now")


def parse(body: Any, query: Any) -> float:
    return float(body["level_m"])


TIDE = Source("Harbour.tide", request, parse, licence=Licence("yes", "Harbour"), hosts=HostGroup("tides", 1, 0, 60, 60),
              fresh_s=60, keep_s=3600, timeout_s=2)
'''
TOOL = '''
"""GET /api/tide."""

from pydantic import Field

from more_tools.sources.harbour import TIDE
from toolserver.context.context import ToolContext, via
from toolserver.core.models import Payload
from toolserver.registry.registry import tool


class Tide(Payload):
    level_m: float = Field(description="Above chart datum")


@tool(path="/api/tide", title="Tide", ttl_s=60, toolset="core", sources=(TIDE,))
async def tide(ctx: ToolContext) -> Tide:
    """The water level of one harbour right now, in metres above chart datum; for tests of how a tool is added.

    Source: the harbour.
    """
    return Tide(level_m=await ctx.first("data", via(TIDE)))
'''


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    """A package with one source and one tool, on the path."""
    for name, text in {
        "__init__.py": "",
        "sources/__init__.py": "",
        "sources/harbour.py": SOURCE,
        "free/__init__.py": "",
        "free/tide.py": TOOL,
    }.items():
        path = tmp_path / "more_tools" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("more_tools")]:
        del sys.modules[name]


@asynccontextmanager
async def served(registry: Registry):
    async with engine(registry) as e, client_of(e.service.web_app()) as client:
        e.internet.serves("https://tides.example/now", {"level_m": 2.5})
        yield client


@proves("operations.one-registry", "mcp.structured-equals-text")
async def test_a_new_tool_is_found_on_every_face(package):
    registry = Registry.load("tools", "more_tools")
    assert registry["tide"] in registry.chosen()
    async with served(registry) as client:
        rest = (await client.get("/api/tide")).json()
        listed = await client.post("/api/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        asked = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "tide", "arguments": {}}}
        called = (await client.post("/api/mcp", json=asked)).json()["result"]

    assert rest["data"] == {"level_m": 2.5}
    assert "tide" in [tool["name"] for tool in listed.json()["result"]["tools"]]
    assert called["structuredContent"] == rest == json.loads(called["content"][0]["text"])

    for form in ("raw", "both", "openai", "anthropic", "openai-responses", "gemini", "bedrock"):
        document = llm_tools(registry, format=form, facts=FACTS, generated_at=datetime.now(UTC))
        assert '"tide"' in json.dumps(document), form
    documents = write_site_documents(registry, FACTS)
    for path in ("/", "/docs", "/llms.txt", "/llms-full.txt", "/openapi.json"):
        assert b"tide" in documents[path].body, path
    assert b"Harbour.tide" in documents["/api/meta"].body


@pytest.mark.slow("a process of its own; every face is tried without")
def test_the_command_line_finds_it_by_a_setting(package):
    done = subprocess.run(
        [sys.executable, "-m", "toolserver", "tools"],
        env={"PYTHONPATH": str(package), "TOOLSERVER_TOOLS": '["tools", "more_tools"]', "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "tide" in {tool["name"] for tool in json.loads(done.stdout)}
