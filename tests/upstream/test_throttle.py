"""How many requests run at once, how far apart, how many per period, and how long a host is left alone."""

import anyio
import pytest

import toolserver.upstream.throttle as throttle_module
from tests.calls.parts import START
from toolserver.clock import ManualClock
from toolserver.upstream.host_lane import LONGEST_QUEUE
from toolserver.upstream.source import HostGroup
from toolserver.upstream.source_errors import SourceLimited
from toolserver.upstream.throttle import Throttle

HOST = "api.test.example"


@pytest.fixture
def clock():
    return ManualClock(START)


def throttle_of(clock, **keys):
    return Throttle(clock=clock, keys=keys)


async def take(throttle, group, host=HOST, patience_s=5.0, **lane):
    async with throttle.turn(group, host, patience_s=patience_s, **lane):
        pass


async def refusal_of(throttle, group, host=HOST, patience_s=5.0, **lane):
    with pytest.raises(SourceLimited) as caught:
        await take(throttle, group, host, patience_s, **lane)
    assert caught.value.asked is False
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


async def test_a_long_wait_for_a_seat_is_known_when_it_has_become_one(clock, monkeypatch):
    monkeypatch.setattr(throttle_module, "HOLD_S", 0.01)
    throttle, group, held = throttle_of(clock), HostGroup("g", 1, 0, 100, 60), anyio.Event()
    async with throttle.turn(group, HOST, patience_s=5), anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: take(throttle, group, held=held))
        await held.wait()
        tasks.cancel_scope.cancel()
    await take(throttle, group)
