"""Paces and budgets of hosts hold over all instances, to the last request; without Redis each takes its share."""

import itertools
from contextlib import AsyncExitStack, suppress

import anyio
import pytest

from tests.calls.parts import START
from tests.redis_server import LostMemory, memory_in
from toolserver.clock import ManualClock, SystemClock
from toolserver.upstream import shared_lanes as lanes_module
from toolserver.upstream.fan_out import FanOut
from toolserver.upstream.host_lane import RequestWithheld
from toolserver.upstream.shared_lanes import SharedLanes
from toolserver.upstream.source import HostGroup, SourceLimited
from toolserver.upstream.throttle import Throttle

HOST = "api.test.example"


class Instances:
    """The throttles of three instances."""

    def __init__(self, server, stack, name):
        self._server, self._stack, self.prefix = server, stack, f"{name}:"

    async def start(self, count=3, clock=None):
        started = []
        for _ in range(count):
            memory = await self._stack.enter_async_context(memory_in(self._server, prefix=self.prefix, instances=3))
            clock = clock or SystemClock()
            started.append(Throttle(clock=clock, keys={}, shared=SharedLanes(memory, clock)))
        return started

    def sent(self):
        (key,) = self._server.command("keys", f"{self.prefix}lane:*:sent").splitlines()
        return [float(at) for at in self._server.command("lrange", key, "0", "-1").splitlines()]


@pytest.fixture
async def instances(redis_server, request):
    async with AsyncExitStack() as stack:
        yield Instances(redis_server, stack, request.node.name)


async def count_let_through(throttles, group, each=4, patience_s=5.0, **lane):
    """How many of so many requests to each instance, all at once, are let through; and the most at a time."""
    done, under_way, most = 0, 0, 0

    async def ask(throttle):
        nonlocal done, under_way, most
        try:
            async with throttle.turn(group, HOST, patience_s=patience_s, **lane):
                under_way += 1
                most = max(most, under_way)
                await anyio.sleep(0.01)
                under_way -= 1
                done += 1
        except RequestWithheld:
            pass

    async with anyio.create_task_group() as tasks:
        for throttle in throttles * each:
            tasks.start_soon(ask, throttle)
    return done, most


async def refusal_of(throttle, group, **lane):
    with pytest.raises(SourceLimited) as caught:
        async with throttle.turn(group, HOST, patience_s=1, **lane):
            pass
    return caught.value


async def test_a_budget_is_exact_over_all_instances(instances):
    three = await instances.start()
    group = HostGroup("g", 5, 0, 7, 600)
    assert (await count_let_through(three, group))[0] == 7
    assert (await refusal_of(three[0], group)).word == "budget"
    assert len(instances.sent()) == 7


async def test_a_budget_comes_back_as_the_period_slides(instances):
    one, two, _ = await instances.start()
    group = HostGroup("g", 5, 0, 2, 0.4)
    assert (await count_let_through([one, two], group))[0] == 2
    await anyio.sleep(0.45)
    assert (await count_let_through([two, one], group, each=1))[0] == 2


async def test_requests_of_different_instances_keep_their_distance(instances):
    three = await instances.start()
    assert (await count_let_through(three, HostGroup("g", 5, 0.05, 100, 600), each=2))[0] == 6
    times = instances.sent()
    assert min(later - earlier for earlier, later in itertools.pairwise(times)) >= 0.0499


async def test_a_burst_is_shared_by_all_instances_and_paid_back_later(instances):
    three = await instances.start()
    assert (await count_let_through(three, HostGroup("g", 5, 0.05, 100, 600, burst=4), each=2))[0] == 6
    times = instances.sent()
    assert times[3] - times[0] < times[4] - times[0]
    assert times[5] - times[0] >= 2 * 0.05 - 0.0001


async def count_let_through_together(throttle, group, count):
    """How many of so many requests of one fan-out are let through."""
    fan_out, done = FanOut(), 0
    parts = [fan_out.add() for _ in range(count)]

    async def ask(part):
        nonlocal done
        with suppress(RequestWithheld):
            async with throttle.turn(group, HOST, patience_s=1, part=part):
                done += 1

    async with anyio.create_task_group() as tasks:
        for part in parts:
            tasks.start_soon(ask, part)
    return done


async def test_a_fan_out_has_its_turns_over_all_instances_or_none(instances):
    one, two, three = await instances.start()
    group = HostGroup("g", 2, 0, 7, 600)
    assert await count_let_through_together(one, group, 5) == 5
    assert await count_let_through_together(two, group, 3) == 0
    assert len(instances.sent()) == 5
    assert await count_let_through_together(three, group, 2) == 2
    assert len(instances.sent()) == 7


async def test_a_turn_that_is_too_far_away_is_refused_and_one_of_seconds_is_made_known(instances):
    one, two, _ = await instances.start()
    group = HostGroup("g", 5, 1.7, 100, 600)
    held = anyio.Event()
    assert (await count_let_through([one], group, each=1))[0] == 1
    assert "next turn in" in str(await refusal_of(two, group))
    with anyio.move_on_after(0.2):
        async with two.turn(group, HOST, patience_s=5, held=held):
            raise AssertionError("it did not wait")
    assert held.is_set()


async def test_so_many_are_under_way_at_a_time_over_all_instances(instances):
    three = await instances.start()
    assert await count_let_through(three, HostGroup("g", 2, 0, 100, 600), each=2, patience_s=20) == (6, 2)


async def test_the_seat_of_an_instance_that_died_is_free_after_a_while(instances, monkeypatch):
    monkeypatch.setattr(lanes_module, "SEAT_S", 0.3)
    one, two, _ = await instances.start()
    monkeypatch.setattr(SharedLanes, "leave", lambda *given: None)
    group = HostGroup("g", 1, 0, 100, 600)
    assert (await count_let_through([one], group, each=1))[0] == 1
    with anyio.fail_after(5):
        assert (await count_let_through([two], group, each=1))[0] == 1
    times = instances.sent()
    assert times[1] - times[0] >= 0.3


async def test_callers_queries_share_their_part_and_leave_the_rest_to_the_others(instances):
    three = await instances.start()
    group = HostGroup("g", 5, 0, 16, 6000)
    assert (await count_let_through(three, group, is_chosen=True))[0] == 2, "a quarter of their half at once"
    assert (await count_let_through(three, group, each=5))[0] == 14


async def test_what_a_host_told_one_instance_all_keep_to(instances):
    one, two, three = await instances.start()
    group = HostGroup("g", 5, 0, 100, 600)
    one.close(group, HOST, 100, is_chosen=True)
    async with one.turn(group, HOST, patience_s=1):
        pass
    refusal = await refusal_of(two, group, is_chosen=True)
    assert (refusal.word, 98 < refusal.retry_after_s <= 100) == ("rate_limited", True)
    assert (await count_let_through([three], group, each=1))[0] == 1
    one.close(group, HOST, 200)
    one.close(group, HOST, 40)
    assert "closed" in str(await refusal_of(one, group))
    await anyio.sleep(0.05)
    assert 190 < (await refusal_of(two, group)).retry_after_s <= 200


async def test_a_simulated_clock_that_leaps_gives_the_budget_back_to_all(instances):
    clock = ManualClock(START)
    one, two, _ = await instances.start(clock=clock)
    group = HostGroup("g", 5, 0, 1, 600)
    assert (await count_let_through([one, two], group))[0] == 1
    clock.advance(601)
    assert (await count_let_through([two], group))[0] == 1


@pytest.mark.parametrize(("budget", "let_through"), [(9, 3), (3, 1), (2, 1)])
async def test_without_redis_each_takes_its_share(budget, let_through):
    clock = ManualClock(START)
    throttle = Throttle(clock=clock, keys={}, shared=SharedLanes(LostMemory(3), clock))
    group = HostGroup("g", 5, 0, budget, 60)
    assert (await count_let_through([throttle], group, each=9))[0] == let_through
    clock.advance(61)
    assert (await count_let_through([throttle], group, each=9))[0] == (0 if budget < 3 else let_through)
    clock.advance(30)
    assert (await count_let_through([throttle], group, each=9))[0] == (1 if budget < 3 else 0)


async def test_without_redis_the_distance_is_that_of_all(instances):
    clock = ManualClock(START)
    throttle = Throttle(clock=clock, keys={}, shared=SharedLanes(LostMemory(3), clock))
    began = clock.monotonic()
    await count_let_through([throttle], HostGroup("g", 1, 1, 100, 600), each=2, patience_s=10)
    assert clock.monotonic() - began == 3
