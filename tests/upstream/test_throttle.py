"""How many requests run at once, how far apart, how many per period, and how long a host is left alone."""

import anyio
import pytest

import toolserver.upstream.throttle as throttle_module
from tests.calls.parts import START
from tests.requirements import proves
from toolserver.clock import ManualClock
from toolserver.core.shared_memory import SharedMemoryLost
from toolserver.core.waiting_room import waiting_client
from toolserver.upstream.fan_out import FanOut
from toolserver.upstream.host_lane import LONGEST_QUEUE, RequestWithheld
from toolserver.upstream.shared_lanes import LaneVerdict
from toolserver.upstream.source import HostGroup, SourceLimited
from toolserver.upstream.throttle import HOLD_S, Throttle
from toolserver.world.state import SharedSimClock, SimClock

HOST = "api.test.example"


@pytest.fixture
def clock():
    return ManualClock(START)


def throttle_of(clock, *, hold_s=HOLD_S, **keys):
    return Throttle(clock=clock, keys=keys, hold_s=hold_s)


async def take(throttle, group, host=HOST, patience_s=5.0, **lane):
    async with throttle.turn(group, host, patience_s=patience_s, **lane):
        pass


async def refusal_of(throttle, group, host=HOST, patience_s=5.0, **lane):
    with pytest.raises(SourceLimited) as caught:
        await take(throttle, group, host, patience_s, **lane)
    assert caught.value.was_sent is False
    return caught.value


@pytest.mark.parametrize(
    ("told_s", "closed_s"), [(None, 30), (0.0, 30), (-5.0, 30), (1.0, 30), (120.0, 120), (3600.0, 3600), (1e9, 3600)]
)
async def test_a_host_is_left_alone_as_long_as_it_said_but_at_least_30_s_and_at_most_an_hour(clock, told_s, closed_s):
    throttle, group = throttle_of(clock), HostGroup("g", 1, 0, 100, 60)
    throttle.close(group, HOST, told_s)
    clock.advance(closed_s - 1)
    refusal = await refusal_of(throttle, group)
    assert (refusal.word, refusal.retry_after_s) == ("rate_limited", 1)
    clock.advance(1)
    await take(throttle, group)


async def test_a_shorter_closure_does_not_end_a_longer_one(clock):
    throttle, group = throttle_of(clock), HostGroup("g", 1, 0, 100, 60)
    throttle.close(group, HOST, 600)
    throttle.close(group, HOST, 60)
    clock.advance(599)
    await refusal_of(throttle, group)


async def test_a_budget_is_per_period_and_the_period_slides(clock):
    throttle, group = throttle_of(clock), HostGroup("g", 1, 0, 2, 60)
    await take(throttle, group)
    clock.advance(30)
    await take(throttle, group)
    clock.advance(29)
    assert (await refusal_of(throttle, group)).word == "budget"
    clock.advance(1)
    await take(throttle, group)
    await refusal_of(throttle, group)


async def test_requests_keep_their_distance_and_one_that_would_come_too_late_is_refused(clock):
    throttle, group, begun = throttle_of(clock), HostGroup("g", 3, 4, 100, 60), clock.monotonic()
    await take(throttle, group)
    assert clock.monotonic() == begun
    await take(throttle, group, patience_s=4)
    assert clock.monotonic() == begun + 4
    assert (await refusal_of(throttle, group, patience_s=3.9)).word == "budget"
    clock.advance(10)
    await take(throttle, group, patience_s=0.1)
    assert clock.monotonic() == begun + 14


async def test_after_a_pause_a_burst_goes_at_once_and_then_the_distance_applies_again(clock):
    throttle, group, begun = throttle_of(clock), HostGroup("g", 3, 4, 100, 60, burst=3), clock.monotonic()
    for _ in range(3):
        await take(throttle, group)
    assert clock.monotonic() == begun
    for later_s in (4, 8):
        await take(throttle, group)
        assert clock.monotonic() == begun + later_s
    clock.advance(8)  # two have come back, the third has not
    for _ in range(2):
        await take(throttle, group)
    assert clock.monotonic() == begun + 16
    await take(throttle, group)
    assert clock.monotonic() == begun + 20


async def send_together(throttle, group, count, *, fan_out=None, patience_s=5.0, **lane):
    """The words of so many requests of one fan-out: `sent`, or why not."""
    fan_out, words = fan_out or FanOut(), []
    parts = [fan_out.add() for _ in range(count)]

    async def send(part):
        try:
            async with throttle.turn(group, HOST, patience_s=patience_s, part=part, **lane):
                words.append("sent")
        except RequestWithheld as refusal:
            words.append(refusal.word)

    async with anyio.create_task_group() as tasks:
        for part in parts:
            tasks.start_soon(send, part)
    return words


async def test_a_fan_out_is_sent_as_a_whole_or_not_at_all(clock):
    throttle, group = throttle_of(clock), HostGroup("g", 2, 0, 4, 60, burst=4)
    await take(throttle, group)
    await take(throttle, group)
    assert await send_together(throttle, group, 3) == ["budget"] * 3
    assert throttle.list_budgets()[0].left == 2
    assert await send_together(throttle, group, 2) == ["sent"] * 2


async def test_a_fan_out_waits_until_all_of_it_may_be_sent_and_each_knows_that_it_waits_long(clock):
    throttle, group = throttle_of(clock), HostGroup("g", 1, 2, 100, 60, burst=3)
    for _ in range(3):
        await take(throttle, group)
    begun, held = clock.monotonic(), anyio.Event()
    assert await send_together(throttle, group, 3, patience_s=5.9, held=held) == ["budget"] * 3
    assert clock.monotonic() == begun
    assert await send_together(throttle, group, 2, held=held) == ["sent"] * 2
    assert (clock.monotonic(), held.is_set()) == (begun + 4, True)


async def test_a_simulated_clock_that_is_frozen_keeps_no_request_waiting():
    clock = SharedSimClock(SimClock(START.timestamp(), frozen=True))
    throttle, group = throttle_of(clock), HostGroup("g", 1, 0.02, 100, 60)
    with anyio.fail_after(5):
        for _ in range(3):
            await take(throttle, group)
    assert clock.now() == START


async def test_nobody_comes_between_the_requests_of_a_fan_out(clock):
    throttle, group, order, gate = throttle_of(clock), HostGroup("g", 1, 0, 100, 60), [], anyio.Event()
    fan_out = FanOut()
    parts = [fan_out.add() for _ in range(2)]

    async def send(name, part=None):
        async with throttle.turn(group, HOST, patience_s=60, part=part):
            order.append(name)
            await gate.wait()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send, "first")
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(send, "one", parts[0])
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        tasks.start_soon(send, "other")
        tasks.start_soon(send, "two", parts[1])
        await anyio.wait_all_tasks_blocked()
        gate.set()
    assert [name for name in order if name != "other"] == ["first", "one", "two"]
    assert abs(order.index("one") - order.index("two")) == 1


async def test_a_fan_out_larger_than_a_burst_goes_in_bursts(clock):
    throttle, group, begun = throttle_of(clock), HostGroup("g", 5, 1, 100, 60, burst=2), clock.monotonic()
    assert await send_together(throttle, group, 5, patience_s=10) == ["sent"] * 5
    assert clock.monotonic() == begun + 3


async def test_callers_may_ask_for_more_at_once_than_their_share_and_get_it_bit_by_bit(clock):
    throttle, group = throttle_of(clock), HostGroup("g", 2, 0, 12, 3600)
    assert sorted(await send_together(throttle, group, 3, is_chosen=True)) == ["budget", "budget", "sent"]


async def test_one_turn_is_taken_from_all_instances_for_a_whole_fan_out(clock):
    others, group = AllInstances(), HostGroup("g", 3, 0, 100, 60, each_host=True, burst=3)
    assert await send_together(Throttle(clock=clock, keys={}, shared=others), group, 3) == ["sent"] * 3
    assert [count for _, _, count, _ in others.asked] == [3, 0, 0]
    refusing = AllInstances(LaneVerdict("spent", 0.0))
    assert await send_together(Throttle(clock=clock, keys={}, shared=refusing), group, 3) == ["budget"] * 3
    assert len(refusing.asked) == 1


async def test_a_part_that_is_cancelled_leaves_the_others_their_turns(clock):
    throttle, group, done = throttle_of(clock), HostGroup("g", 1, 0, 100, 60), []
    fan_out = FanOut()
    parts = [fan_out.add() for _ in range(3)]
    scope = anyio.CancelScope()

    async def send(part):
        async with throttle.turn(group, HOST, patience_s=5, part=part):
            done.append(part)

    async def give_up(part):
        with scope:
            await send(part)

    async with anyio.create_task_group() as tasks:
        async with throttle.turn(group, HOST, patience_s=5):
            tasks.start_soon(give_up, parts[0])
            tasks.start_soon(send, parts[1])
            tasks.start_soon(send, parts[2])
            await anyio.wait_all_tasks_blocked()
            scope.cancel()
            await anyio.wait_all_tasks_blocked()
    assert done == parts[1:]
    assert throttle.list_budgets()[0].left == 97


async def test_no_more_requests_run_at_once_than_the_group_allows(clock):
    throttle, group, running, most = throttle_of(clock), HostGroup("g", 2, 0, 100, 60), 0, []
    gate = anyio.Event()

    async def send():
        nonlocal running
        async with throttle.turn(group, HOST, patience_s=60):
            running += 1
            most.append(running)
            await gate.wait()
            running -= 1

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(send)
        await anyio.wait_all_tasks_blocked()
        assert running == 2
        assert (await refusal_of(throttle, group, patience_s=0)).word == "budget"
        gate.set()
    assert (len(most), max(most)) == (5, 2)


async def test_a_group_shares_its_numbers_unless_they_are_counted_for_each_host(clock):
    throttle = throttle_of(clock)
    together, apart = HostGroup("together", 1, 0, 1, 60), HostGroup("apart", 1, 0, 1, 60, each_host=True)
    await take(throttle, together)
    await refusal_of(throttle, together, "other.example")
    await take(throttle, apart)
    await take(throttle, apart, "other.example")
    await refusal_of(throttle, apart)


async def test_an_api_key_raises_the_budget_and_narrows_the_gap(clock):
    group = HostGroup("g", 1, 60, 1, 3600, key="API_KEY", keyed_budget=3, keyed_gap_s=0)
    keyed = throttle_of(clock, API_KEY="k")
    for _ in range(3):
        await take(keyed, group)
    await refusal_of(keyed, group)
    unkeyed = throttle_of(clock)
    await take(unkeyed, group)
    await refusal_of(unkeyed, group)


async def test_a_request_that_is_cancelled_gives_its_place_back(clock):
    throttle, group = throttle_of(clock), HostGroup("g", 1, 0, 100, 60)

    async def hang():
        async with throttle.turn(group, HOST, patience_s=5):
            await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hang)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    await take(throttle, group, patience_s=0.01)


async def test_callers_queries_take_their_share_of_the_budget_and_leave_the_rest(clock):
    throttle, group = throttle_of(clock), HostGroup("g", 2, 0, 40, 60)
    for _ in range(5):  # a quarter of their half at once
        await take(throttle, group, is_chosen=True)
    assert (await refusal_of(throttle, group, is_chosen=True)).word == "budget"
    clock.advance(4)
    await take(throttle, group, is_chosen=True)
    await refusal_of(throttle, group, is_chosen=True)
    (budget,) = throttle.list_budgets()
    assert (budget.group, budget.total, budget.left, budget.chosen_left) == ("g", 40, 34, 0)
    for _ in range(34):
        await take(throttle, group)
    await refusal_of(throttle, group)


async def test_whatever_callers_ask_in_a_period_half_of_the_budget_is_left(clock):
    throttle, group, sent = throttle_of(clock), HostGroup("g", 2, 0, 40, 60), 0
    for _ in range(600):
        clock.advance(0.1)
        try:
            await take(throttle, group, is_chosen=True)
        except SourceLimited:
            continue
        sent += 1
    assert 15 <= sent <= 20
    assert throttle.list_budgets()[0].left >= 20


async def test_a_group_that_only_callers_use_needs_no_reserve(clock):
    throttle, group = throttle_of(clock), HostGroup("g", 1, 0, 4, 60, reserve=0)
    for _ in range(4):
        await take(throttle, group, is_chosen=True)
    await refusal_of(throttle, group, is_chosen=True)


async def test_a_default_query_goes_before_all_that_callers_chose_and_one_seat_is_kept_free_for_it(clock):
    throttle, group, order = throttle_of(clock), HostGroup("g", 2, 0, 400, 60), []
    gates = [anyio.Event() for _ in range(4)]

    async def send(number, is_chosen):
        async with throttle.turn(group, HOST, patience_s=60, is_chosen=is_chosen):
            order.append(number)
            await gates[number].wait()

    async with anyio.create_task_group() as tasks:
        for number, is_chosen in enumerate([True, True, False, False]):
            tasks.start_soon(send, number, is_chosen)
            await anyio.wait_all_tasks_blocked()
        assert order == [0, 2]
        for number in (2, 0, 3, 1):
            gates[number].set()
            await anyio.wait_all_tasks_blocked()
    assert order == [0, 2, 3, 1]


async def test_the_queue_of_callers_has_an_end_and_a_default_query_does_not_stand_in_it(clock):
    throttle, group, gate = throttle_of(clock), HostGroup("g", 1, 0, 4000, 60), anyio.Event()

    async def send():
        async with throttle.turn(group, HOST, patience_s=60, is_chosen=True):
            await gate.wait()

    async with anyio.create_task_group() as tasks:
        for _ in range(LONGEST_QUEUE + 1):
            tasks.start_soon(send)
        await anyio.wait_all_tasks_blocked()
        assert "busy" in (await refusal_of(throttle, group, is_chosen=True)).reason
        gate.set()
        await take(throttle, group)


@proves("waits.upstream")
async def test_one_who_asks_for_much_keeps_nobody_else_from_the_queue_of_callers(clock):
    throttle, group, gate = throttle_of(clock), HostGroup("g", 1, 0, 4000, 60), anyio.Event()
    outcomes = []

    async def send(client):
        waiting_client.set(client)
        try:
            async with throttle.turn(group, HOST, patience_s=60, is_chosen=True):
                outcomes.append(client)
                await gate.wait()
        except RequestWithheld as refusal:
            outcomes.append(f"{client} {refusal.reason}")

    async with anyio.create_task_group() as tasks:
        for number in range(LONGEST_QUEUE + 1):
            tasks.start_soon(send, f"2001:db8:1:{number}::/64")  # twenty wait, and one is served
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(send, "192.0.2.1")
        await anyio.wait_all_tasks_blocked()
        assert throttle.count_waits()[:3] == ("upstream", 21, LONGEST_QUEUE)
        gate.set()
    assert outcomes.count("192.0.2.1") == 1
    assert sum("busy" in outcome for outcome in outcomes) == LONGEST_QUEUE - 20
    assert throttle.count_waits().refused == {"share": LONGEST_QUEUE - 20}


async def test_what_a_callers_query_brought_about_closes_the_lane_of_callers_only(clock):
    throttle, group = throttle_of(clock), HostGroup("g", 1, 0, 100, 60)
    throttle.close(group, HOST, 60, is_chosen=True)
    await refusal_of(throttle, group, is_chosen=True)
    await take(throttle, group)
    throttle.close(group, HOST, 60)
    await refusal_of(throttle, group)


@pytest.mark.parametrize(("gap_s", "is_held"), [(1.4, False), (1.6, True)])
async def test_a_long_wait_for_the_next_turn_is_known_at_once(clock, gap_s, is_held):
    throttle, group, held = throttle_of(clock), HostGroup("g", 1, gap_s, 100, 60), anyio.Event()
    await take(throttle, group, held=held)
    assert not held.is_set()
    await take(throttle, group, held=held)
    assert held.is_set() is is_held


async def test_a_long_wait_for_a_seat_is_known_when_it_has_become_one(clock):
    throttle, group, held = throttle_of(clock, hold_s=0.01), HostGroup("g", 1, 0, 100, 60), anyio.Event()
    async with throttle.turn(group, HOST, patience_s=5), anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: take(throttle, group, held=held))
        await held.wait()
        tasks.cancel_scope.cancel()
    await take(throttle, group)


@pytest.mark.parametrize(("each_s", "is_held"), [(0.015, True), (0.005, False)])
async def test_a_wait_for_several_requests_is_as_long_as_all_of_them(clock, each_s, is_held):
    throttle, group, held = throttle_of(clock, hold_s=0.02), HostGroup("g", 1, 0, 100, 60), anyio.Event()

    async def send():
        async with throttle.turn(group, HOST, patience_s=5):
            await anyio.sleep(each_s)

    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(send)
            await anyio.lowlevel.checkpoint()
        tasks.start_soon(lambda: take(throttle, group, held=held))
    assert held.is_set() is is_held


class AllInstances:
    """What all instances say together when they are asked for a turn: what a test arranges, and then `go`."""

    instances, is_lost = 2, False

    def __init__(self, *verdicts):
        self.verdicts, self.asked, self.left, self.closed = list(verdicts), [], [], []

    async def take(self, name, lane, token, *, count, is_chosen):
        self.asked.append((name, token, count, is_chosen))
        verdict = self.verdicts.pop(0) if self.verdicts else LaneVerdict("go", 0.0)
        if verdict is None:
            raise SharedMemoryLost
        return verdict

    def leave(self, name, token):
        self.left.append((name, token))

    def close(self, name, seconds, *, is_chosen):
        self.closed.append((name, seconds, is_chosen))


async def test_a_turn_that_all_instances_allow_is_taken_at_once_and_given_back(clock):
    others, group = AllInstances(), HostGroup("g", 1, 0, 100, 60, each_host=True)
    await take(Throttle(clock=clock, keys={}, shared=others), group, patience_s=0, is_chosen=True)
    ((name, token, count, is_chosen),) = others.asked
    assert (name, count, is_chosen) == (("g", HOST), 1, True)
    assert others.left == [(name, token)]


async def test_a_turn_that_others_have_is_asked_for_again_while_there_is_patience(clock):
    group = HostGroup("g", 1, 0, 100, 60)
    others, began = AllInstances(LaneVerdict("wait", 0.02), LaneVerdict("busy", 0.0)), anyio.current_time()
    await take(Throttle(clock=clock, keys={}, shared=others), group)
    assert anyio.current_time() - began > 0.11  # 0.02 as told, and 0.1 for a seat
    assert len(others.asked) == 3
    assert len({token for _, token, _, _ in others.asked}) == len(others.left) == 1
    late = AllInstances(LaneVerdict("wait", 9.0))
    refusal = await refusal_of(Throttle(clock=clock, keys={}, shared=late), group, patience_s=5)
    assert (refusal.reason, late.left) == ("budget: g: next turn in 9 s", [])


@pytest.mark.parametrize(
    ("verdict", "reason", "retry_after_s"),
    [
        (LaneVerdict("spent", 0.0), "budget: 100 per 60 s", None),
        (LaneVerdict("closed", 7.0), "rate_limited: closed for 7 s", 7.0),
    ],
)
async def test_a_turn_that_all_instances_refuse_is_refused_here(clock, verdict, reason, retry_after_s):
    group, others = HostGroup("g", 1, 0, 100, 60), AllInstances(verdict)
    refusal = await refusal_of(Throttle(clock=clock, keys={}, shared=others), group)
    assert (refusal.reason, refusal.retry_after_s) == (reason, retry_after_s)
    assert others.left == []


async def test_without_contact_an_instance_goes_on_with_its_part_of_the_budget(clock):
    group, others = HostGroup("g", 1, 0, 4, 60), AllInstances(None, None, None)
    throttle = Throttle(clock=clock, keys={}, shared=others)
    for _ in range(2):
        await take(throttle, group)
    (budget,) = throttle.list_budgets()
    assert (budget.total, budget.left, others.left) == (4, 0, [])
    assert (await refusal_of(throttle, group)).reason == "budget: 4 per 60 s"
    assert len(others.asked) == 3


async def test_all_instances_are_told_which_host_to_leave_alone(clock):
    group, others = HostGroup("g", 1, 0, 100, 60), AllInstances()
    Throttle(clock=clock, keys={}, shared=others).close(group, HOST, 7, is_chosen=True)
    assert others.closed == [(("g", ""), 30, True)]


@proves("answers.paced")
def test_a_wait_is_long_after_a_second_and_a_half():
    assert (throttle_module.HOLD_S, throttle_module.BUSY_S) == (1.5, 0.1)
    assert (throttle_module.SHORTEST_CLOSURE_S, throttle_module.LONGEST_CLOSURE_S) == (30, 3600)
