"""The registry as a server of the SDK: the listing, calls, and what a message's `_meta` adds to its caller."""

import json
from types import SimpleNamespace

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequestParams, PaginatedRequestParams

from tests.mcp.service import TOKEN, asked, registry, running
from toolserver.mcp import messages
from toolserver.mcp.asgi import CALLER, CHOICE
from toolserver.mcp.definitions import ToolChoices
from toolserver.mcp.fast_path import FastPath
from toolserver.mcp.messages import INSTRUCTIONS, NAME, TITLE
from toolserver.mcp.sdk_server import HINTS, RegistryTools, SdkBridge, build, live, manager
from toolserver.money.x402.wire import META_PAYMENT


def context(meta=None, **scope):
    return SimpleNamespace(request=SimpleNamespace(scope=scope), meta=meta)


@pytest.fixture
async def service():
    async with running() as made:
        yield made


@pytest.fixture
def tools(service):
    choice = ToolChoices(registry()).choose(toolset="all")
    return RegistryTools(FastPath(service.pipeline, service.facts), choice, service.caller(token=TOKEN))


async def test_the_listing_is_one_page(tools):
    listed = await tools.list_tools(context(), None)
    assert [each.name for each in listed.tools] == [each["name"] for each in tools.choice(context()).definitions]
    with pytest.raises(MCPError, match="one page"):
        await tools.list_tools(context(), PaginatedRequestParams(cursor="2"))


async def test_a_call_gives_structure_text_and_meta(tools):
    result = await tools.call_tool(context(), CallToolRequestParams(name="oracle", arguments={"question": "when"}))

    assert result.is_error is False
    assert json.loads(result.content[0].text) == result.structured_content
    assert result.meta["credits_remaining"] == 98


async def test_a_rejected_call_is_a_result_and_no_protocol_error(tools):
    result = await tools.call_tool(context(), CallToolRequestParams(name="echo", arguments={}))

    assert result.is_error is True
    assert json.loads(result.content[0].text)["error"] == "invalid_arguments"


async def test_an_unknown_tool_names_those_that_are_near(tools):
    with pytest.raises(MCPError) as refused:
        await tools.call_tool(context(), CallToolRequestParams(name="wrod"))
    assert refused.value.error.data == {"did_you_mean": ["word"]}
    assert refused.value.error.code == -32602
    with pytest.raises(MCPError) as unlike:
        await tools.call_tool(context(), CallToolRequestParams(name="zzz"))
    assert unlike.value.error.data is None


async def test_meta_adds_to_the_caller(tools):
    caller = tools.caller(
        context({"idempotency_key": "k", "agent_nonce": "n", "receipt": "reference", META_PAYMENT: {"a": 1}})
    )
    assert caller.receipt_reference

    assert (caller.token, caller.idempotency_key, caller.nonce, caller.payment) == (TOKEN, "k", "n", '{"a":1}')
    assert caller.request_id.startswith("req_")
    assert tools.caller(context()).payment is None


@pytest.mark.parametrize("meta", [{"idempotency_key": 5}, {"agent_nonce": ["n"]}])
async def test_meta_of_another_type_is_refused(tools, meta):
    with pytest.raises(MCPError, match="must be strings"):
        tools.caller(context(meta))


async def test_over_http_caller_and_choice_come_with_the_request(service):
    tools = RegistryTools(FastPath(service.pipeline, service.facts))
    choice, caller = ToolChoices(registry()).choose(), service.caller()
    given = context(None, **{CHOICE: choice, CALLER: caller})

    assert tools.choice(given) is choice
    assert tools.caller(given).client == caller.client


async def test_what_the_request_says_of_its_caller_is_kept_unless_the_message_says_otherwise(service):
    tools = RegistryTools(FastPath(service.pipeline, service.facts))
    choice = ToolChoices(registry()).choose(short_meta=True)
    given = {CHOICE: choice, CALLER: service.caller(nonce="own", request_id="req_own", agent="a")}
    plain, said = tools.caller(context(None, **given)), tools.caller(context({"agent_nonce": "n"}, **given))

    assert (plain.nonce, plain.request_id, plain.agent, plain.short_meta) == ("own", "req_own", "a", True)
    assert (plain.idempotency_key, plain.payment, plain.receipt_reference) == (None, None, False)
    assert said.nonce == "n"
    assert not tools.caller(context({"receipt": "whole"}, **given)).receipt_reference


async def test_a_free_result_has_a_meta_of_its_own_only_for_the_owner_of_a_token(tools, service):
    result = await tools.call_tool(context(), CallToolRequestParams(name="word"))
    assert (result.meta, result.is_error) == ({"credits_remaining": 100, "credits_charged": 0}, False)
    nobody = RegistryTools(FastPath(service.pipeline, service.facts), tools.choice(context()), service.caller())
    assert (await nobody.call_tool(context(), CallToolRequestParams(name="word"))).meta is None


async def test_the_server_of_the_sdk_describes_itself_as_the_fast_path_does(tools):
    made = build(tools)
    assert (made.name, made.title, made.instructions) == (NAME, TITLE, INSTRUCTIONS)
    hints = {method: (hint.ttl_ms, hint.scope) for method, hint in HINTS.items()}
    assert hints == {"tools/list": (300_000, "private"), "server/discover": (3_600_000, "public")}


async def test_the_http_side_is_live_once_it_has_started_and_until_it_is_cancelled(service):
    sessions = manager(FastPath(service.pipeline, service.facts), body_limit=9)
    assert (sessions.json_response, sessions.stateless) == (True, True)
    async with anyio.create_task_group() as tasks:
        with anyio.fail_after(5):
            await tasks.start(live, sessions)
        tasks.cancel_scope.cancel()


@pytest.fixture
async def bridge():
    async with running() as service, anyio.create_task_group() as tasks:
        choice = ToolChoices(registry()).choose(toolset="all")
        service_bridge = SdkBridge(FastPath(service.pipeline, service.facts), choice, service.caller(), tasks)
        service_bridge.service = service
        yield service_bridge
        tasks.cancel_scope.cancel()


async def ask(bridge, method, params=None, *, value=1, modern=False):
    line = messages.encode(asked(method, params, value=value, modern=modern))
    with anyio.fail_after(10):
        return json.loads(await bridge.ask(line, value, modern=modern))


@pytest.mark.parametrize("modern", [False, True])
async def test_an_uncommon_message_gets_the_answer_of_the_sdk(bridge, modern):
    answer = await ask(bridge, "prompts/list", value="p", modern=modern)

    assert (answer["id"], answer["error"]["code"]) == ("p", -32601)


async def test_both_conversations_go_on_beside_each_other(bridge):
    for number in range(4):
        listed = await ask(bridge, "tools/list", value=number, modern=bool(number % 2))
        assert listed["id"] == number
        assert len(listed["result"]["tools"]) == 5


async def test_answers_find_their_questions_in_any_order(bridge):
    bridge.service.desk.hold, order = anyio.Event(), []

    async def one(name, value):
        answer = await ask(bridge, "tools/call", {"name": name}, value=value)
        order.append((value, answer["id"], answer["result"]["isError"]))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one, "word", 1)
        await anyio.wait_all_tasks_blocked()
        await one("coin", 2)
        bridge.service.desk.hold.set()
    assert order == [(2, 2, False), (1, 1, False)]


async def test_an_id_that_is_still_being_answered_is_refused(bridge):
    bridge.service.desk.hold = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, bridge, "tools/call", {"name": "word"})
        await anyio.wait_all_tasks_blocked()
        again = await ask(bridge, "tools/call", {"name": "coin"})
        bridge.service.desk.hold.set()
    assert (again["id"], again["error"]["code"]) == (1, -32600)
