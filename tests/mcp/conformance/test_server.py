"""The conformance fixtures: the suite itself runs live; here, that the fast path's fixtures are the SDK's."""

import json
from typing import Any
from unittest.mock import AsyncMock

import pytest

from tests.mcp.service import asked, headers_for, running
from toolserver.mcp import messages
from toolserver.mcp.conformance.fixtures import FIXED, FIXTURES, SCHEMAS

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


def message_of(answer: Any) -> Any:
    """The JSON-RPC message of an answer that is JSON or a stream of events."""
    if answer.headers["content-type"].startswith("application/json"):
        return answer.json()
    return json.loads([line for line in answer.text.splitlines() if line.startswith("data: {")][-1][6:])


@pytest.mark.parametrize("name", sorted(FIXED))
async def test_a_fixed_result_is_the_same_by_the_sdk(name: str) -> None:
    message = asked("tools/call", {"name": name}, modern=True)
    async with running(everything=True) as one, running(everything=True) as other:
        other.endpoint._answer_at_once = AsyncMock(return_value=None)
        async with one.client() as fast, other.client() as sdk:
            headers = headers_for(message, messages.MODERN)
            answers = [await http.post("/", json=message, headers=headers) for http in (fast, sdk)]

    assert answers[0].json() == message_of(answers[1])
    assert answers[0].json()["result"]["content"] == FIXED[name]["content"]


async def test_fixtures_are_listed_and_the_registry_still_works() -> None:
    async with running(everything=True) as service, service.client() as http:
        tools = await http.post(
            "/", json=(message := asked("tools/list", modern=True)), headers=headers_for(message, messages.MODERN)
        )
        call = asked("tools/call", {"name": "word"}, modern=True)
        word = await http.post("/", json=call, headers=headers_for(call, messages.MODERN))

    names = [tool["name"] for tool in tools.json()["result"]["tools"]]
    assert names[:3] == ["echo", "word", "oracle"]
    assert set(names[3:]) == set(SCHEMAS) == {*FIXED, *FIXTURES}
    assert word.json()["result"]["isError"] is False


async def test_there_are_sessions_which_end() -> None:
    accept = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    async with running(everything=True) as service, service.client() as http:
        hello = await http.post("/", json=asked("initialize", HELLO), headers=accept)
        named = accept | {"mcp-session-id": hello.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
        ready = await http.post("/", json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=named)
        tools = await http.post("/", json=asked("tools/list"), headers=named)
        ended = await http.delete("/", headers=named)
        gone = await http.post("/", json=asked("tools/list"), headers=named)

    assert "prompts" in message_of(hello)["result"]["capabilities"]
    assert ready.status_code == 202
    assert message_of(tools)["result"]["tools"]
    assert ended.status_code == 200
    assert gone.status_code == 404


async def test_a_real_server_has_no_fixtures() -> None:
    async with running() as service, service.client() as http:
        answer = await http.post("/", json=asked("tools/call", {"name": "test_simple_text"}))

    assert answer.json()["error"]["code"] == -32602
