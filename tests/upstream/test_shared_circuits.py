"""Circuits of sources over all instances: three failures of any close it for all, and one instance probes."""

import pytest

from tests.calls.parts import START
from tests.redis_server import LostMemory, memory_in
from toolserver.clock import ManualClock
from toolserver.core.shared_memory import Script
from toolserver.upstream import source_health
from toolserver.upstream.host_lane import RequestWithheld
from toolserver.upstream.source import SourceDown
from toolserver.upstream.source_health import CircuitOpen, SharedCircuits, SourceHealth

DOWN = SourceDown("no route")
NOTHING = Script("return 1")


class TwoInstances:
    """What two instances know of sources. Real time passes beside their clock, so moments are not exact."""

    def __init__(self, memory, clock):
        self.memory, self.clock = memory, clock
        self.both = [SourceHealth(clock, memory=memory) for _ in range(2)]

    async def fail(self, which, times=1, error=DOWN):
        for _ in range(times):
            await self.both[which].admit_among_all("s")
            self.both[which].record_failure("s", error)
        await self.memory.run(NOTHING, [], [])

    async def succeed(self, which):
        self.both[which].record_success("s")
        await self.memory.run(NOTHING, [], [])

    async def is_open(self, which):
        try:
            await self.both[which].admit_among_all("s")
        except CircuitOpen:
            return True
        return False


@pytest.fixture
async def two(redis_server, request):
    async with memory_in(redis_server, prefix=f"{request.node.name}:") as memory:
        yield TwoInstances(memory, ManualClock(START))


async def test_three_failures_of_any_instances_in_a_row_open_it_for_all(two):
    await two.fail(0)
    await two.fail(1)
    assert not await two.is_open(0)
    await two.fail(0)
    assert [await two.is_open(0), await two.is_open(1)] == [True, True]
    assert [health.state("s") for health in two.both] == ["open", "open"]
    assert [name for name, _ in two.both[1].list_open()] == ["s"]


async def test_a_success_of_any_instance_begins_the_row_anew(two):
    await two.fail(0, 2)
    await two.succeed(1)
    await two.fail(1, 2)
    assert not await two.is_open(0)


async def test_one_instance_probes_and_its_success_closes_it_for_all(two):
    await two.fail(0, 3)
    two.clock.advance(28)
    assert await two.is_open(1)
    two.clock.advance(4)
    assert not await two.is_open(1)
    assert await two.is_open(0), "the other one is probing"
    await two.succeed(1)
    assert not await two.is_open(0)
    assert [health.state("s") for health in two.both] == ["closed", "closed"]


async def test_a_probe_that_fails_doubles_the_wait_for_all_up_to_ten_minutes(two):
    await two.fail(0, 3)
    for wait_s in (30, 60, 120, 240, 480, 600, 600):
        two.clock.advance(wait_s - 2)
        assert await two.is_open(0)
        two.clock.advance(4)
        await two.fail(1)
    two.clock.advance(598)
    assert await two.is_open(0)


async def test_a_probe_that_says_nothing_lets_the_next_request_probe(two):
    await two.fail(0, 3)
    two.clock.advance(32)
    await two.fail(0, error=RequestWithheld())
    assert not await two.is_open(1)


async def test_the_probe_of_an_instance_that_died_is_given_up(two):
    await two.fail(0, 3)
    two.clock.advance(32)
    assert not await two.is_open(0)
    two.clock.advance(source_health.PROBE_S - 2)
    assert await two.is_open(1)
    two.clock.advance(4)
    assert not await two.is_open(1)


async def test_late_results_do_not_matter_while_it_is_open(two):
    await two.fail(0, 3)
    await two.succeed(1)
    assert await two.is_open(0)


async def test_queries_of_callers_have_circuits_of_their_own(two):
    await two.fail(0, 3)
    callers = SourceHealth(two.clock, is_for_callers=True, memory=two.memory)
    await callers.admit_among_all("s")


async def test_without_redis_each_goes_by_what_it_knows():
    clock = ManualClock(START)
    health = SourceHealth(clock, memory=LostMemory())
    for _ in range(3):
        await health.admit_among_all("s")
        health.record_failure("s", DOWN)
    with pytest.raises(CircuitOpen):
        await health.admit_among_all("s")


async def test_an_instance_that_asks_is_told_the_seconds_until_the_next_probe(two):
    circuits = SharedCircuits(two.memory, two.clock, kind="defaults")
    assert await circuits.admit("s") == ("closed", 0)
    await two.fail(0, 3)
    state, wait_s = await circuits.admit("s")
    assert (state, 28 < wait_s <= 30) == ("open", True)
    with pytest.raises(CircuitOpen, match=r"probe in (29|30) s"):
        await two.both[1].admit_among_all("s")


async def test_failures_in_a_row_are_remembered_for_a_day(two):
    await two.fail(0)
    (key,) = SharedCircuits(two.memory, two.clock, kind="defaults")._keys("s")[1:]
    left_ms = await two.memory.run(Script("return redis.call('PTTL', KEYS[1])"), [key], [])
    assert 86_390_000 < left_ms <= 86_400_000
    assert (source_health.PROBE_S, source_health.KEEP_S) == (60, 86_400)
