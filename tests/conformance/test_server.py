"""The conformance fixtures: the suite itself runs live; here, that the fast path's fixtures are the SDK's."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from mcp_types import CallToolRequestParams

from tests.conformance import server
from tests.conformance.fixtures import FIXED, FIXTURES, PIXEL, SCHEMAS
from tests.mcp.service import asked, headers_for, running
from toolserver.mcp import messages
from toolserver.mcp.definitions import ToolChoices
from toolserver.mcp.fast_path import FastPath
from toolserver.mcp.sdk import McpExtension

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


def message_of(answer: Any) -> Any:
    """The JSON-RPC message of an answer that is JSON or a stream of events."""
    if answer.headers["content-type"].startswith("application/json"):
        return answer.json()
    return json.loads([line for line in answer.text.splitlines() if line.startswith("data: {")][-1][6:])


@pytest.mark.parametrize("name", sorted(FIXED))
async def test_a_fixed_result_is_the_same_by_the_sdk(name: str) -> None:
    message = asked("tools/call", {"name": name}, modern=True)
    by_sdk = McpExtension(server.manager, server.definitions(), fixed={})
    async with running(extension=server.EXTENSION) as one, running(extension=by_sdk) as other:
        async with one.client() as fast, other.client() as sdk:
            headers = headers_for(message, messages.MODERN)
            answers = [await http.post("/", json=message, headers=headers) for http in (fast, sdk)]

    assert answers[0].json() == message_of(answers[1])
    assert answers[0].json()["result"]["content"] == FIXED[name]["content"]


async def test_fixtures_are_listed_and_the_registry_still_works() -> None:
    async with running(extension=server.EXTENSION) as service, service.client() as http:
        tools = await http.post(
            "/", json=(message := asked("tools/list", modern=True)), headers=headers_for(message, messages.MODERN)
        )
        call = asked("tools/call", {"name": "word"}, modern=True)
        word = await http.post("/", json=call, headers=headers_for(call, messages.MODERN))

    names = [tool["name"] for tool in tools.json()["result"]["tools"]]
    assert names[:3] == ["echo", "word", "oracle"]
    assert set(names[3:]) == set(SCHEMAS) == {*FIXED, *FIXTURES}
    assert word.json()["result"]["isError"] is False


def test_fixtures_are_handed_to_the_fast_path_as_definitions_and_as_cores() -> None:
    assert {name: json.loads(core + b"}") for name, core in server.fixed().items()} == FIXED
    assert [(each["name"], each["inputSchema"]) for each in server.definitions()] == list(SCHEMAS.items())


async def test_by_the_sdk_the_tools_of_the_registry_are_called_too() -> None:
    async with running() as service:
        choice = ToolChoices(service.registry).choose()
        tools = server.EverythingTools(FastPath(service.pipeline, service.facts), choice, service.caller())
        context: Any = SimpleNamespace(request=None, meta=None)
        result = await tools.call(context, CallToolRequestParams(name="word"))
        fixed = await tools.call(context, CallToolRequestParams(name="test_simple_text"))

    assert result.structured_content["data"]["word"] == service.desk.text
    assert fixed == FIXED["test_simple_text"]


async def test_there_are_sessions_which_end() -> None:
    accept = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    async with running(extension=server.EXTENSION) as service, service.client() as http:
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


# --- what an older client finds beside tools ---


def take_events() -> tuple[Any, list[tuple[Any, str]]]:
    """A callback, and what it was given."""
    replayed: list[tuple[Any, str]] = []

    async def take(event: Any) -> None:
        replayed.append((event.message, event.event_id))

    return take, replayed


async def test_a_client_that_reconnects_gets_what_its_own_stream_said_after_the_last_event() -> None:
    events = server.Events()
    stored = [("a", "1st"), ("b", "2nd"), ("a", None), ("a", "4th"), ("b", "5th"), ("a", "6th")]
    numbers = [await events.store_event(stream, message) for stream, message in stored]
    assert numbers == ["1", "2", "3", "4", "5", "6"]

    for last, stream, expected in (
        ("1", "a", [("4th", "4"), ("6th", "6")]),
        ("4", "a", [("6th", "6")]),
        ("2", "b", [("5th", "5")]),
        ("6", "a", []),
        ("9", None, []),
    ):
        take, replayed = take_events()
        assert await events.replay_events_after(last, take) == stream
        assert replayed == expected


async def test_only_the_last_two_thousand_messages_are_kept() -> None:
    events = server.Events()
    for number in range(2001):
        await events.store_event("a", number)
    take, replayed = take_events()

    assert await events.replay_events_after("1", take) is None
    assert await events.replay_events_after("2", take) == "a"
    assert len(replayed) == 1999
    assert replayed[0] == (2, "3")


@pytest.fixture
async def ask() -> Any:
    """Asks the server of the suite in the modern era; the result or the error."""
    async with running(extension=server.EXTENSION) as service, service.client() as http:

        async def asking(method: str, **params: Any) -> Any:
            message = asked(method, params, modern=True)
            headers = headers_for(message, messages.MODERN)
            named = params.get("name") or params.get("uri")
            answer = message_of(await http.post("/", json=message, headers=headers | {"mcp-name": named or ""}))
            return answer.get("result") or answer["error"]

        yield asking


async def test_resources_are_listed_and_read_as_text_or_as_bytes(ask: Any) -> None:
    listed = (await ask("resources/list"))["resources"]
    kinds = {each["uri"]: each["mimeType"] for each in listed}
    assert kinds == {
        "test://static-text": "text/plain",
        "test://static-binary": "image/png",
        "test://watched-resource": "text/plain",
    }
    (text,) = (await ask("resources/read", uri="test://static-text"))["contents"]
    assert (text["mimeType"], text["text"]) == ("text/plain", "This is the content of the static text resource.")
    (binary,) = (await ask("resources/read", uri="test://static-binary"))["contents"]
    assert (binary["mimeType"], binary["blob"]) == ("image/png", PIXEL)
    assert "text" not in binary
    missing = await ask("resources/read", uri="test://none")
    assert (missing["code"], missing["data"]) == (-32602, {"uri": "test://none"})


async def test_a_template_is_read_with_the_number_that_it_is_given(ask: Any) -> None:
    (template,) = (await ask("resources/templates/list"))["resourceTemplates"]
    assert template["uriTemplate"] == "test://template/{id}/data"
    (read,) = (await ask("resources/read", uri="test://template/123/data"))["contents"]
    assert json.loads(read["text"]) == {"id": "123", "templateTest": True, "data": "Data for ID: 123"}


async def test_prompts_say_their_arguments_and_need_them(ask: Any) -> None:
    listed = {p["name"]: p.get("arguments", []) for p in (await ask("prompts/list"))["prompts"]}
    assert listed["test_simple_prompt"] == []
    assert listed["test_prompt_with_arguments"] == [
        {"name": "arg1", "required": True},
        {"name": "arg2", "required": True},
    ]
    assert (await ask("prompts/get", name="none"))["message"] == "Unknown prompt"
    some = await ask("prompts/get", name="test_prompt_with_arguments", arguments={"arg1": "x"})
    assert (some["code"], some["message"]) == (-32602, "Missing: arg2")


@pytest.mark.parametrize(
    ("name", "arguments", "contents"),
    [
        ("test_simple_prompt", {}, ["This is a simple prompt for testing."]),
        (
            "test_prompt_with_arguments",
            {"arg1": "x", "arg2": "y"},
            ["Prompt with arguments: arg1='x', arg2='y'"],
        ),
        (
            "test_prompt_with_embedded_resource",
            {"resourceUri": "test://x"},
            ["resource", "Please process the embedded resource above."],
        ),
        ("test_prompt_with_image", {}, ["image", "Please analyze the image above."]),
    ],
)
async def test_a_prompt_is_made_of_messages_of_the_user(ask: Any, name: str, arguments: Any, contents: Any) -> None:
    sent = (await ask("prompts/get", name=name, arguments=arguments))["messages"]

    assert [each["content"].get("text", each["content"]["type"]) for each in sent] == contents
    assert {each["role"] for each in sent} == {"user"}


async def test_a_prompt_may_ask_the_user_first(ask: Any) -> None:
    name = "test_input_required_result_prompt"
    interim = await ask("prompts/get", name=name)
    assert interim["resultType"] == "input_required"
    assert list(interim["inputRequests"]) == ["user_context"]

    answers = {"user_context": {"action": "accept", "content": {"context": "tests"}}}
    done = await ask("prompts/get", name=name, inputResponses=answers)
    assert done["messages"][0]["content"]["text"] == "Context: {'context': 'tests'}"
    assert done["resultType"] == "complete"


async def test_nothing_is_completed(ask: Any) -> None:
    prompt = {"type": "ref/prompt", "name": "test_simple_prompt"}
    offered = await ask("completion/complete", ref=prompt, argument={"name": "a", "value": "b"})
    assert offered["completion"] == {"values": [], "total": 0, "hasMore": False}
