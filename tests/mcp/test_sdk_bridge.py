"""The SDK in memory: each kind of client has its conversation, and answers find their questions."""

import json

import anyio
import pytest

from tests.mcp.service import asked, registry, running
from toolserver.mcp import messages
from toolserver.mcp.definitions import ToolChoices
from toolserver.mcp.fast_path import FastPath
from toolserver.mcp.sdk_bridge import SdkBridge


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
