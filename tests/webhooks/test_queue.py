import asyncio
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from tests.calls.parts import RICH
from tests.requirements import proves
from tests.size import sized
from tests.webhooks import growth, receivers
from tests.webhooks.kills import count_steps, torment
from tests.webhooks.receivers import receiving, status
from tests.webhooks.room import LOCAL, SLOT_S, open_room
from toolserver.webhooks import queue as queues
from toolserver.webhooks.conditions import ConditionInput
from toolserver.webhooks.delivery import DeliveryNetwork
from toolserver.webhooks.subscription_operations import AddSubscription

DAY = 86_400


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow("a second history of kills"))])
@proves("webhook.kills")
async def test_after_any_number_of_kills_every_delivered_fire_is_charged_once_and_nothing_else_is(tmp_path, seed):
    findings = await torment(tmp_path, sized(12, fast=3), seed, jumps=seed == 2)
    assert findings.problems == ()
    assert findings.charged + findings.gifts == findings.delivered > 0


@pytest.mark.slow("a hundred processes")
@pytest.mark.timeout(300)
@proves("webhook.kills")
def test_a_process_that_is_killed_at_any_step_leaves_nothing_undone():
    times = str(sized(1, fast=1, long=5))
    command = [sys.executable, "-m", "tests.webhooks.sigkills", times]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("problems=()") >= 20


async def test_the_kills_reach_every_step_of_a_fire(tmp_path):
    assert 20 <= await count_steps(tmp_path) <= 40


async def test_two_timers_at_once_deliver_each_fire_once(tmp_path):
    async with open_room(tmp_path) as room, receiving() as receiver:
        for _ in range(5):
            await room.subscribe(receiver.url())
        room.clock.advance(SLOT_S)
        await asyncio.gather(*(room.hooks.queue.work_due() for _ in range(4)))
        assert len(receiver.requests) == 5
        assert await room.spent() == 5


@pytest.mark.parametrize("jump", [DAY, -DAY])
async def test_a_clock_that_jumps_a_day_neither_stops_nor_repeats_anything(tmp_path, jump):
    async with open_room(tmp_path) as room, receiving() as receiver:
        await room.subscribe(receiver.url())
        await room.pass_slots(2)
        room.clock.advance(jump)
        await room.hooks.queue.keep_house()
        sent = len(receiver.requests)
        await room.pass_slots(3)
        assert 3 <= len(receiver.requests) - sent <= 4
        ids = [request.headers["webhook-id"] for request in receiver.requests]
        assert len(ids) == len(set(ids)) == await room.spent()


async def test_a_clock_that_jumps_while_a_delivery_is_under_way_does_not_lose_its_charge(tmp_path):
    async with open_room(tmp_path) as room:

        async def jump(writer):
            receiver.answer = status(200)
            room.clock.advance(DAY)
            await room.shop.ledger.sweep()
            await status(200)(writer)

        async with receiving(jump) as receiver:
            await room.subscribe(receiver.url())
            await room.pass_slots()
            assert (len(receiver.requests), await room.spent()) == (2, 2), "the second is that of the day after"


async def test_dead_endpoints_and_hung_names_do_not_delay_the_good_ones(tmp_path):
    """Dead ones are never given up here: who waits for one of them waits for ever."""
    release = threading.Event()

    def lookup(host):
        if host.startswith("hung"):
            release.wait()
        return ["127.0.0.1"]

    async with (
        open_room(tmp_path, network=DeliveryNetwork(lookup=lookup, total_s=3600.0)) as room,
        receiving() as good,
        receiving(receivers.hang) as dead,
    ):
        try:
            await fill(room, good, 60, "good", dead, 10)
            room.clock.advance(SLOT_S)
            running = asyncio.create_task(room.hooks.queue.run())
            async with asyncio.timeout(60):
                while len(good.requests) < 60:  # noqa: ASYNC110 - a receiver in this loop tells nobody
                    await asyncio.sleep(0.01)
            assert dead.requests, "dead ones were tried beside the good ones"
            running.cancel()
        finally:
            release.set()


async def fill(room, good, goods, name, dead, deads, hung=12):
    """Subscriptions of many owners: good ones at hosts of their own, dead ones, and some whose names hang."""
    first = await room.subscribe(good.url())
    await room.hooks.subscriptions.cancel(RICH, first.id)
    targets = [(f"{name}{n}.localhost", good.port) for n in range(goods)]
    targets += [(f"dead{n}.localhost", dead.port) for n in range(deads)]
    targets += [(f"hung{n}.localhost", good.port) for n in range(hung)]
    for number, (host, port) in enumerate(targets):
        row = first._replace(
            id=f"wh_{number:016x}",
            owner=f"{number:064x}",
            payer=f"{number:064x}",
            url=f"http://{host}:{port}/",
            host=host,
            due_at=first.due_at,
        )
        await room.hooks.store.apply(AddSubscription(row))


async def test_a_queue_that_runs_delivers_what_comes_due_and_goes_on_after_a_failure(tmp_path, monkeypatch):
    async with open_room(tmp_path) as room, receiving() as receiver:
        arrived = asyncio.Event()

        async def answer(writer):
            arrived.set()
            await status(204)(writer)

        receiver.answer = answer
        original, failures = room.hooks.store.next_due, [1, 2]

        async def fail_twice():
            if failures:
                room.hooks.queue.wake()  # instead of a second of waiting
                raise RuntimeError(f"arranged {failures.pop()}")
            return await original()

        monkeypatch.setattr(room.hooks.store, "next_due", fail_twice)
        running = asyncio.create_task(room.hooks.queue.run())
        await room.subscribe(receiver.url())
        room.clock.advance(SLOT_S)
        await asyncio.wait_for(arrived.wait(), 60)
        assert failures == []
        running.cancel()


async def test_a_new_condition_is_judged_at_once(tmp_path):
    async with open_room(tmp_path) as room, receiving() as receiver:
        arrived = asyncio.Event()

        async def answer(writer):
            arrived.set()
            await status(204)(writer)

        receiver.answer = answer
        running = asyncio.create_task(room.hooks.queue.run())
        await asyncio.sleep(0)
        await room.subscribe(receiver.url(), when=ConditionInput(path="one", above=0))
        await asyncio.wait_for(arrived.wait(), 60)
        running.cancel()


async def test_what_hangs_leaves_its_lane_to_others(tmp_path, monkeypatch):
    monkeypatch.setattr(queues, "LINGER_S", 0.05)
    monkeypatch.setattr(queues, "WIDTHS", dict.fromkeys(queues.WIDTHS, 2))
    monkeypatch.setattr(queues, "LINGERING", 3)
    patient = replace(LOCAL, total_s=3600.0)
    async with open_room(tmp_path, network=patient) as room, receiving(receivers.hang) as dead:
        await fill(room, dead, 5, "dead", dead, 0, hung=0)
        room.clock.advance(SLOT_S)
        running = asyncio.create_task(room.hooks.queue.run())
        async with asyncio.timeout(60):  # an attempt itself takes an hour
            while len(dead.requests) < 5:  # noqa: ASYNC110 - a receiver in this loop tells nobody
                await asyncio.sleep(0.01)
        running.cancel()


async def test_dead_endpoints_leave_few_rows_and_no_log_lines(tmp_path):
    traces = await growth.measure(tmp_path, 3, hours=2)
    assert traces["log_lines"] == 0
    assert traces["states"]["active", None] == 3
    assert traces["rows"]["webhook_fire"] <= 3 * 6, "in two hours the slots thin out: the 1st, 3rd, 7th, 13th and 21st"


async def test_an_answer_that_takes_long_delays_only_the_conditions_on_it(tmp_path, monkeypatch):
    async with open_room(tmp_path) as room, receiving() as receiver:
        arrived, slow = asyncio.Event(), asyncio.Event()

        async def answer(writer):
            arrived.set()
            await status(204)(writer)

        async def get_slowly(operation, arguments, key):
            if arguments.history == "30d":
                await slow.wait()
            return await original(operation, arguments, key)

        receiver.answer = answer
        original = room.shop.pipeline.answers.get
        monkeypatch.setattr(room.shop.pipeline.answers, "get", get_slowly)
        when = ConditionInput(path="one", above=0)
        await room.subscribe(receiver.url(), when=when, params={"history": "30d"})
        await room.subscribe(receiver.url())
        room.clock.advance(SLOT_S)
        running = asyncio.create_task(room.hooks.queue.run())
        await asyncio.wait_for(arrived.wait(), 60)
        arrived.clear()
        slow.set()
        await asyncio.wait_for(arrived.wait(), 60)
        running.cancel()


async def test_thirty_days_of_failures_end_a_subscription(tmp_path):
    async with open_room(tmp_path) as room, receiving(status(404)) as receiver:
        subscription = await room.subscribe(receiver.url())
        for _ in range(2 * (24 * 12 + 14)):
            await room.pass_time(SLOT_S / 2)
        assert (await room.subscription(subscription.id)).pause_reason == "endpoint_failing"
        room.clock.advance(28 * DAY)
        await room.hooks.queue.keep_house()
        assert (await room.subscription(subscription.id)).state == "paused"
        room.clock.advance(DAY)
        await room.hooks.queue.keep_house()
        assert (await room.subscription(subscription.id)).state == "cancelled"
        sent = len(receiver.requests)
        await room.pass_slots()
        assert len(receiver.requests) == sent


async def test_one_failure_and_a_month_in_which_nothing_was_to_be_told_end_nothing(tmp_path):
    async with open_room(tmp_path) as room, receiving(status(404)) as receiver:
        subscription = await room.subscribe(receiver.url(), when=ConditionInput(path="one", above=100))
        room.values(150)
        await room.pass_time(0)
        await room.pass_time(6.1)
        assert (await room.subscription(subscription.id)).failed_count == 1
        room.clock.advance(31 * DAY)
        await room.hooks.queue.keep_house()
        assert (await room.subscription(subscription.id)).state == "active"
