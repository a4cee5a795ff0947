"""What a loaded service answers over standard input: common messages itself, the others by the SDK."""

import json
from contextlib import asynccontextmanager

import anyio
import pytest

from tests.mcp.service import TOKEN, asked, headers_for, registry, running
from tests.mcp.test_resources import drawn
from tests.requirements import proves
from toolserver.mcp import messages
from toolserver.mcp.stdio_session import open_session


@pytest.fixture
async def session():
    async with (
        running(limited=True) as service,
        open_session(
            registry(), service.pipeline, service.caller(token=TOKEN), service.facts, toolset="all"
        ) as opened_session,
    ):
        yield opened_session


async def tell(session, message):
    line = message if isinstance(message, bytes) else messages.encode(message)
    with anyio.fail_after(10):
        answer = await session.answer(line, messages.read_message(line))
    return None if answer is None else json.loads(answer)


@pytest.mark.parametrize("modern", [False, True])
async def test_a_call_is_answered_and_no_limit_applies(session, modern):
    for _ in range(3):
        answer = await tell(session, asked("tools/call", {"name": "word"}, modern=modern))
        assert answer["result"]["structuredContent"]["data"]["word"]
        assert ("resultType" in answer["result"]) is modern
    assert session.sdk is None, "a plain call needs no SDK"


async def test_a_paid_call_says_what_is_left_and_a_key_is_charged_once(session):
    meta = {"idempotency_key": "k"}
    left = [
        (await tell(session, asked("tools/call", {"name": "oracle", "_meta": meta})))["result"]["_meta"]
        for _ in range(2)
    ]
    assert [each["credits_remaining"] for each in left] == [98, 98]


async def test_a_cached_answer_needs_no_waiting_unless_it_says_what_a_token_has_left(session):
    message = messages.read_message(messages.encode(asked("tools/call", {"name": "word"})))
    async with (
        running() as service,
        open_session(registry(), service.pipeline, service.caller(), service.facts, toolset="all") as free,
    ):
        assert free.answer_from_cache(message, modern=False) is None
        await tell(free, asked("tools/call", {"name": "word"}))
        assert free.answer_from_cache(message, modern=False).startswith(b'{"content":')
    for _ in range(2):
        answer = await tell(session, asked("tools/call", {"name": "word"}))
        assert answer["result"]["structuredContent"]["_meta"]["credits_remaining"] == 100
        assert session.answer_from_cache(message, modern=False) is None


async def test_only_a_plain_call_of_a_known_tool_is_answered_without_the_sdk(session):
    for params in ({"name": "echo", "arguments": {"text": "x"}}, {"name": "word", "arguments": None}):
        assert (await tell(session, asked("tools/call", params)))["result"]["isError"] is False
    for method in ("prompts/get", "no/such"):
        assert (await tell(session, asked(method, {"name": "word"})))["error"]["code"] == -32601
    assert session.sdk is None
    assert (await tell(session, asked("tools/call", {"name": "word", "task": {}}))).keys() >= {"id"}
    assert session.sdk is not None


@asynccontextmanager
async def opened(*, wants_views=False, token=None):
    """A conversation that has resources, and its service."""
    async with running(limited=True, more=(drawn,)) as service:
        resources = service.engine.mcp_resources(has_events=False)
        named = {"toolset": "all", "wants_views": wants_views, "resources": resources}
        caller = service.caller(token=token)
        async with open_session(service.registry, service.pipeline, caller, service.facts, **named) as session:
            yield session


async def read(session, uri, *, modern=True):
    return await tell(session, asked("resources/read", {"uri": uri}, modern=modern))


@proves("resources.stdio")
@pytest.mark.parametrize("modern", [False, True])
async def test_resources_are_listed_and_read_as_over_http(modern):
    async with opened() as session, running(limited=True, more=(drawn,)) as service, service.client() as client:
        for method in ("resources/list", "resources/templates/list", "skills/list"):
            message = asked(method, modern=modern)
            headers = headers_for(message, messages.MODERN if modern else None)
            over_http = (await client.post("/api/mcp", json=message, headers=headers)).json()
            assert (await tell(session, message)) == over_http
        view = (await tell(session, asked("resources/list", modern=modern)))["result"]["resources"][-1]
        (content,) = (await read(session, view["uri"], modern=modern))["result"]["contents"]
        assert (content["mimeType"], content["text"][:15]) == (messages.VIEW_TYPE, "<!doctype html>")
        for _ in range(3):  # the owner of the machine has no limits
            answer = await read(session, "toolserver://answers/echo?text=a", modern=modern)
            assert json.loads(answer["result"]["contents"][0]["text"])["data"]["text"] == "a"
        refused = await read(session, "toolserver://docs/none", modern=modern)
        assert (refused["id"], refused["error"]["code"]) == (1, -32602 if modern else -32002)
        assert session.sdk is None, "resources need no SDK"


@proves("resources.stdio")
async def test_listed_tools_have_views_for_a_client_that_shows_them():
    shows = {messages.CAPABILITIES_KEY: {"extensions": {messages.VIEWS_KEY: {"mimeTypes": [messages.VIEW_TYPE]}}}}

    async def list_views(session, **message):
        tools = (await tell(session, asked("tools/list", **message)))["result"]["tools"]
        return [one["name"] for one in tools if "ui" in one.get("_meta", {})]

    async with opened() as session:
        assert await list_views(session) == await list_views(session, modern=True) == []
        assert await list_views(session, params={"_meta": shows}, modern=True) == ["drawn"]
    async with opened(wants_views=True) as session:
        assert await list_views(session) == ["drawn"]


async def test_a_service_without_resources_offers_none(session):
    for method in ("resources/list", "skills/list"):
        assert (await tell(session, asked(method)))["error"]["code"] == -32601


async def test_the_sdk_answers_what_is_not_common(session):
    assert (await tell(session, asked("prompts/list", value="p")))["error"]["code"] == -32601
    assert (await tell(session, asked("tools/call", {"name": "wrod"}, modern=True)))["error"]["code"] == -32602


async def test_what_is_no_message_is_refused_and_what_wants_no_answer_gets_none(session):
    assert (await tell(session, b"{"))["error"]["code"] == -32700
    assert (await tell(session, b'{"jsonrpc":"2.0","id":5,"method":7}'))["id"] == 5
    assert await tell(session, b'{"jsonrpc":"2.0","method":"notifications/initialized"}') is None
    assert await tell(session, b'{"jsonrpc":"2.0","id":5,"result":{}}') is None
