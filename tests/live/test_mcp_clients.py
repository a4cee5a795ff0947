"""The official clients, of both generations and languages, against a real server: what users of them see."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.live.loading import HEAVY, LISTING_IMPORTS, imported
from tests.live.processes import ROOT, environment, started
from tests.live.programs import CLIENTS, NODE, PYTHON_1, TOOLSERVER, installed, ran, told

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

MOST_MODULES = 310
INSPECTOR = CLIENTS / "node_modules" / ".bin" / "mcp-inspector"
SETTINGS = {
    "TOOLSERVER_X402__ENABLED": "false",  # offers in refusals are tried with the clients of x402
    "TOOLSERVER_TOOLS": '["tools", "tests.live.sample_tools"]',
    "TOOLSERVER_LIMITS__ENABLED": "false",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with started("demo", folder=tmp_path_factory.mktemp("demo"), **SETTINGS) as program:
        yield program.ready


@pytest.fixture(scope="module")
def names(server: dict[str, Any]) -> list[str]:
    """The tools as a bare POST lists them."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    answer = httpx.post(server["mcp_url"], json=message, timeout=30)
    return [tool["name"] for tool in answer.json()["result"]["tools"]]


@pytest.fixture(scope="module")
def free_names(server: dict[str, Any]) -> list[str]:
    """The free ones of them: what a process on standard input lists that sells nothing."""
    url = f"{server['base_url']}/api/llm-tools?format=routes&toolset=core&tier=free"
    return list(httpx.get(url, timeout=30).json()["routes"])


def on_this_world(server: dict[str, Any]) -> dict[str, str]:
    """The environment of another instance on the same simulated world."""
    return SETTINGS | {"PYTHONPATH": str(ROOT), "TOOLSERVER_UPSTREAM__VIA": server["world_url"]}


def check(found: dict[str, Any], names: list[str]) -> None:
    """What every client must have seen."""
    assert found["tools"] == names
    assert found["free"]["failed"] is False
    assert found["free"]["structured"]["data"] == {"text": "hé", "length": 2}
    assert json.loads(found["free"]["text"]) == found["free"]["structured"]
    assert_refused(found["unpaid"], "missing_token")
    assert_refused(found["wrong"], "invalid_arguments")
    assert found["unknown"] == -32602
    assert found["paid"]["failed"] is False
    assert found["paid"]["structured"]["_meta"]["credits_remaining"] == found["paid"]["meta"]["credits_remaining"]
    assert json.loads(found["paid"]["text"]) == found["paid"]["structured"]


def assert_refused(seen: dict[str, Any], code: str) -> None:
    assert seen["failed"] is True
    assert seen["structured"] is None
    assert json.loads(seen["text"])["error"] == code


def seen(result: Any) -> dict[str, Any]:
    return {
        "failed": result.is_error,
        "structured": result.structured_content,
        "text": result.content[0].text,
        "meta": result.meta,
    }


@pytest.mark.parametrize(("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_python_sdk_2(server: dict[str, Any], names: list[str], mode: Any, version: str) -> None:
    from mcp import Client, MCPError
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    found: dict[str, Any] = {}
    async with Client(server["mcp_url"], mode=mode) as client:
        assert client.protocol_version == version
        found["tools"] = [tool.name for tool in (await client.list_tools()).tools]
        found["free"] = seen(await client.call_tool("sample_echo", {"text": "hé"}))
        found["unpaid"] = seen(await client.call_tool("sample_oracle", {}))
        found["wrong"] = seen(await client.call_tool("sample_echo", {"text": "x" * 101}))
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("nope", {})
        found["unknown"] = unknown.value.code
    headers = {"Authorization": f"Bearer {server['token']}"}
    async with create_mcp_http_client(headers=headers) as http:
        transport = streamable_http_client(server["mcp_url"], http_client=http)
        async with Client(transport, mode=mode) as client:
            found["paid"] = seen(await client.call_tool("sample_oracle", {}))
    check(found, names)


def test_python_sdk_1(server: dict[str, Any], names: list[str]) -> None:
    installed(PYTHON_1)
    found = told(PYTHON_1, "py1.py", server["mcp_url"], server["token"])

    assert found["version"] == "2025-11-25"
    check(found, names)


def test_typescript_sdk_1(server: dict[str, Any], names: list[str]) -> None:
    installed(NODE, CLIENTS / "node_modules" / "@modelcontextprotocol" / "sdk")
    check(told(NODE, "ts1.mjs", server["mcp_url"], server["token"]), names)


@pytest.mark.parametrize(("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
def test_typescript_sdk_2(server: dict[str, Any], names: list[str], mode: str, version: str) -> None:
    installed(NODE, CLIENTS / "node_modules" / "@modelcontextprotocol" / "client")
    found = told(NODE, "ts2.mjs", server["mcp_url"], server["token"], mode)

    assert found["version"] == version
    check(found, names)


async def test_fastmcp(server: dict[str, Any], names: list[str]) -> None:
    from fastmcp import Client
    from fastmcp.client.auth import BearerAuth

    async with Client(server["mcp_url"]) as client:
        assert [tool.name for tool in await client.list_tools()] == names
        free = await client.call_tool("sample_echo", {"text": "hé"})
        unpaid = await client.call_tool("sample_oracle", {}, raise_on_error=False)
    async with Client(server["mcp_url"], auth=BearerAuth(server["token"])) as client:
        paid = await client.call_tool("sample_oracle", {})

    assert free.structured_content["data"]["text"] == "hé"
    assert json.loads(unpaid.content[0].text)["error"] == "missing_token"
    assert paid.meta["credits_remaining"] == paid.structured_content["_meta"]["credits_remaining"]


def test_langchain_over_http_and_stdio(
    server: dict[str, Any], names: list[str], free_names: list[str], tmp_path: Path
) -> None:
    installed(PYTHON_1)
    command = (TOOLSERVER, "stdio", "--data-dir", tmp_path)
    found = told(PYTHON_1, "lc.py", server["mcp_url"], server["token"], *command, **on_this_world(server))

    assert found["http"] == names
    assert found["stdio"] == free_names
    assert found["schema"]["required"] == ["text"]
    assert "hé" in found["free"]
    assert "hé" in found["free_stdio"]
    assert "credits_remaining" in found["paid"]


@pytest.mark.parametrize("kind", ["hypercorn", "uvicorn"])
def test_a_caller_who_hangs_up_is_not_charged_on_either_server(tmp_path: Path, kind: str) -> None:
    def call(name: str, **arguments: Any) -> dict[str, Any]:
        params = {"name": name, "arguments": arguments}
        return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}

    with started("demo", "--server", kind, folder=tmp_path, **SETTINGS) as program:
        ready = program.ready
        url = f"{ready['mcp_url']}?toolset=all"
        headers = {"Authorization": f"Bearer {ready['token']}"}
        with httpx.Client(headers=headers) as http:
            patient = http.post(url, json=call("sample_slow", seconds=0.2)).json()["result"]
            with pytest.raises(httpx.ReadTimeout):
                http.post(url, json=call("sample_slow", seconds=3), timeout=httpx.Timeout(10, read=0.3))
            after = http.post(url, json=call("sample_oracle")).json()["result"]

    assert patient["_meta"]["credits_remaining"] == ready["credits"] - 2
    assert after["_meta"]["credits_remaining"] == ready["credits"] - 4


def inspected(*arguments: Any) -> Any:
    installed(NODE, INSPECTOR)
    done = ran(NODE, INSPECTOR, "--cli", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_the_inspector_finds_nothing_to_complain_about(server: dict[str, Any], names: list[str], era: str) -> None:
    target = (f"{server['mcp_url']}?toolset=all", "--transport", "http", "--protocol-era", era)
    tools = inspected(*target, "--method", "tools/list", "--strict")
    free = inspected(
        *target, "--method", "tools/call", "--tool-name", "sample_echo", "--tool-args-json", '{"text":"hé"}'
    )
    header = ("--header", f"Authorization: Bearer {server['token']}")
    paid = inspected(*target, "--method", "tools/call", "--tool-name", "sample_oracle", *header)

    assert set(names) <= {tool["name"] for tool in tools["tools"]}
    assert free["structuredContent"]["data"]["text"] == "hé"
    assert paid["_meta"]["credits_remaining"] >= 0


def test_the_inspector_shows_why_a_call_was_refused(server: dict[str, Any]) -> None:
    installed(NODE, INSPECTOR)
    target = (server["mcp_url"], "--transport", "http", "--protocol-era", "legacy")
    done = ran(NODE, INSPECTOR, "--cli", *target, "--method", "tools/call", "--tool-name", "sample_oracle")

    assert "missing_token" in done.stdout


def test_the_inspector_over_stdio(server: dict[str, Any], free_names: list[str], tmp_path: Path) -> None:
    installed(NODE, INSPECTOR)
    passed_on = [word for name, value in on_this_world(server).items() for word in ("-e", f"{name}={value}")]
    tools = inspected(TOOLSERVER, "stdio", "--data-dir", tmp_path, *passed_on, "--method", "tools/list", "--strict")

    assert [tool["name"] for tool in tools["tools"]] == free_names


@pytest.mark.parametrize(("mode", "version"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
async def test_python_sdk_2_over_stdio(
    server: dict[str, Any], free_names: list[str], tmp_path: Path, mode: Any, version: str
) -> None:
    from mcp import Client, StdioServerParameters, stdio_client

    arguments = ["stdio", "--data-dir", str(tmp_path)]
    parameters = StdioServerParameters(command=str(TOOLSERVER), args=arguments, env=on_this_world(server))
    async with Client(stdio_client(parameters, errlog=sys.__stderr__), mode=mode) as client:
        assert client.protocol_version == version
        assert [tool.name for tool in (await client.list_tools()).tools] == free_names
        free = await client.call_tool("earthquakes", {})
        again = await client.call_tool("earthquakes", {})

    assert free.structured_content["data"]["count"] >= 0
    assert free.structured_content == again.structured_content
    assert free.structured_content["_meta"]["simulated"] is True


def test_stdio_loads_little_before_it_answers_initialize(tmp_path: Path) -> None:
    """From the start of the program to the first answer, as a host sees it: most of that time is for loading."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    command = [str(TOOLSERVER), "stdio", "--data-dir", str(tmp_path)]
    log, began = tmp_path / "log", time.perf_counter()
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment(LISTING_IMPORTS)
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(message.encode() + b"\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        took = time.perf_counter() - began
        loaded = imported(log)
    print(f"\n{len(loaded)} modules were loaded before the first answer, which took {took:.2f} s")
    assert answer["result"]["serverInfo"]
    assert "toolserver.mcp.stdio" in loaded
    assert loaded.isdisjoint(HEAVY)
    assert len(loaded) < MOST_MODULES
