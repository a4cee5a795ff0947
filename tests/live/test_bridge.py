"""The bridge as a host starts it: nothing in its environment but a home, and the official client speaks to it."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import ElicitResult

from tests.live.processes import Program, control
from tests.requirements import proves
from toolserver.mcp.messages import MODERN, VIEW_TYPE, VIEWS_KEY

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]

TOOLSERVER = str(Path(sys.executable).parent / "toolserver")


@asynccontextmanager
async def hosted(demo: Program, home: Path) -> AsyncIterator[ClientSession]:
    arguments = ["stdio", "--server", demo.url, "--toolset", "all"]
    program = StdioServerParameters(command=TOOLSERVER, args=arguments, env={"HOME": str(home)}, cwd="/")
    async with (
        stdio_client(program, errlog=sys.__stderr__) as (reading, writing),
        ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        yield session


def kept_below(home: Path) -> tuple[list[str], int]:
    """The services of which tokens are kept, and who may read the file."""
    (kept,) = home.rglob("credentials.json")
    return list(json.loads(kept.read_text())), kept.stat().st_mode & 0o777


def told(result: Any) -> Any:
    return json.loads(result.content[0].text)


async def test_what_is_bought_in_a_session_pays_in_it_and_after_a_restart(demo: Program, tmp_path: Path) -> None:
    async with hosted(demo, tmp_path) as session:
        listed = {tool.name for tool in (await session.list_tools()).tools}
        assert {"premium_briefing", "payment_confirm", "btc_price"} <= listed
        assert told(await session.call_tool("premium_briefing"))["error"] == "missing_token"
        quote = told(await session.call_tool("payment_buy_credits", {"amount_usd": 1}))
        with control(demo.ready["world_url"]) as world:
            world.put("clock", {"speed": 30})
            paid = {"tx_hash": world.paid(quote["wallet"], 1), "nonce": quote["memo"]}
            confirmed = await session.call_tool("payment_confirm", paid)
            world.put("clock", {"speed": 1})
        assert "svc_live_" not in confirmed.model_dump_json()
        assert told(confirmed)["credits"] == 50
        assert told(await session.call_tool("premium_briefing"))["sections"]
    assert kept_below(tmp_path) == ([demo.url], 0o600)
    async with hosted(demo, tmp_path) as session:
        assert told(await session.call_tool("payment_balance"))["credits"] == 49


def run(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOOLSERVER, *words], env={"HOME": str(home)}, cwd="/", capture_output=True, text=True)


def test_people_list_and_call_the_tools_of_a_service_elsewhere(demo: Program, tmp_path: Path) -> None:
    lines = run(tmp_path, "tools", "--server", demo.url, "--toolset", "core", "--text").stdout.splitlines()
    listed = json.loads(run(tmp_path, "tools", "--server", demo.url, "--toolset", "core").stdout)
    assert [line.split()[0] for line in lines[1:]] == [tool["name"] for tool in listed]
    assert "premium_macro" in lines[-1] or any(line.split()[:2] == ["premium_macro", "2"] for line in lines)

    answer = run(tmp_path, "call", "weather", "--city", "Paris", "--server", demo.url)
    assert (answer.returncode, json.loads(answer.stdout)["data"]["lat"]) == (0, 48.85)
    assert "--city is taken for --place" in answer.stderr
    refused = run(tmp_path, "call", "weathr", "--city", "Paris", "--server", demo.url)
    assert (refused.returncode, "did you mean weather" in refused.stderr) == (1, True)
    paid = run(tmp_path, "call", "premium_macro", "--server", demo.url, "--token", demo.ready["token"], "--text")
    assert (paid.returncode, "credits_remaining: " in paid.stdout) == (0, True)


def talk(home: Path, *lines: dict[str, Any], server: str | None) -> list[dict[str, Any]]:
    """The answers of a program to a whole conversation, in the order of the ids."""
    command = [TOOLSERVER, "stdio", *([] if server is None else ["--server", server])]
    written = "".join(json.dumps({"jsonrpc": "2.0", "id": id, **line}) + "\n" for id, line in enumerate(lines))
    done = subprocess.run(command, env={"HOME": str(home)}, cwd=home, input=written, capture_output=True, text=True)
    return sorted((json.loads(line) for line in done.stdout.splitlines()), key=lambda answer: int(answer["id"]))


@proves("resources.stdio")
@pytest.mark.parametrize("is_bridged", [False, True])
def test_a_host_that_shows_views_gets_them_over_standard_input(demo: Program, tmp_path: Path, is_bridged: bool) -> None:
    server = demo.url if is_bridged else None
    shows = {"extensions": {VIEWS_KEY: {"mimeTypes": [VIEW_TYPE]}}}
    about = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "t", "version": "1"}, "capabilities": shows}
    hello = {"method": "initialize", "params": about}
    greeting, tools, skills = talk(tmp_path, hello, {"method": "tools/list"}, {"method": "skills/list"}, server=server)
    assert VIEWS_KEY in greeting["result"]["capabilities"]["extensions"]
    addresses = [
        tool["_meta"]["ui"]["resourceUri"] for tool in tools["result"]["tools"] if "ui" in tool.get("_meta", {})
    ]
    assert len(addresses) >= 8
    assert bool(skills["result"]["skills"]) is is_bridged, "a process that sells nothing has nothing to buy and verify"
    read = {"method": "resources/read", "params": {"uri": addresses[0]}}
    _, view, plain = talk(
        tmp_path, hello | {"params": about | {"capabilities": {}}}, read, {"method": "tools/list"}, server=server
    )
    assert view["result"]["contents"][0]["mimeType"] == VIEW_TYPE
    assert not any("ui" in tool.get("_meta", {}) for tool in plain["result"]["tools"])


async def test_the_official_client_reads_resources_over_a_bridge(demo: Program, tmp_path: Path) -> None:
    async with hosted(demo, tmp_path) as session:
        listed = [str(one.uri) for one in (await session.list_resources()).resources]
        assert {"skill://buy-credits/SKILL.md", "toolserver://docs/receipts"} <= set(listed)
        answer = await session.read_resource("toolserver://answers/weather?place=Zürich")
        assert json.loads(answer.contents[0].text)["data"]["place"].startswith("Zürich")


async def test_a_person_is_asked_to_pay_over_a_bridge_and_the_same_call_answers(demo: Program, tmp_path: Path) -> None:
    asked = []

    async def pay(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        link, bearer = httpx.URL(params.url).params["p"], {"authorization": f"Bearer {demo.ready['token']}"}
        async with httpx.AsyncClient(trust_env=False, headers=bearer) as http:
            (await http.post(f"{demo.url}/buy/call", json={"link": link})).raise_for_status()
        return ElicitResult(action="accept")

    arguments = ["stdio", "--server", demo.url]
    program = StdioServerParameters(command=TOOLSERVER, args=arguments, env={"HOME": str(tmp_path)}, cwd="/")
    async with Client(stdio_client(program, errlog=sys.__stderr__), elicitation_callback=pay) as client:
        result = await client.call_tool("premium_macro", {})
    assert (result.is_error, told(result)["endpoint"]) == (False, "/api/pro/macro")
    assert len(asked) == 1


def test_listening_is_refused_over_a_bridge_as_over_http(demo: Program, tmp_path: Path) -> None:
    about = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
    params = {"notifications": {"toolsListChanged": True}, "_meta": about}
    message = {"jsonrpc": "2.0", "id": 5, "method": "subscriptions/listen", "params": params}
    command = [TOOLSERVER, "stdio", "--server", demo.url]
    bridged = subprocess.run(
        command, env={"HOME": str(tmp_path)}, cwd="/", input=json.dumps(message), capture_output=True, text=True
    )
    headers = {"mcp-protocol-version": MODERN, "mcp-method": "subscriptions/listen", "accept": "application/json"}
    direct = httpx.post(f"{demo.url}/api/mcp", json=message, headers=headers)
    assert json.loads(bridged.stdout) == direct.json()
    assert (direct.status_code, direct.json()["error"]["code"]) == (404, -32601)


async def test_a_bridge_to_nowhere_is_no_mute_host(demo: Program, tmp_path: Path) -> None:
    program = StdioServerParameters(
        command=TOOLSERVER, args=["stdio", "--server", "http://data.example"], env={"HOME": str(tmp_path)}, cwd="/"
    )
    async with (
        stdio_client(program, errlog=sys.__stderr__) as (reading, writing),
        ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        with pytest.raises(Exception, match="--server must begin with https://"):
            await session.call_tool("btc_price")
