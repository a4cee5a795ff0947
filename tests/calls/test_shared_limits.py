"""The contract of all limits, in memory and in Redis: the same calls are refused, with the same words and headers."""

from contextlib import asynccontextmanager, suppress

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.calls.test_quotas import Clock
from tests.redis_server import LostMemory, memory_in
from tests.size import sized
from toolserver.calls.rate_limit import WIDER, FreeLimits, PersonalLimits, Quota, UnchargedLimit
from toolserver.calls.shared_limits import SharedFreeLimits, SharedPersonalLimits, SharedUnchargedLimit, share
from toolserver.errors import RateLimited

START = 1_800_000_000.0
DISTINCT = Quota("distinct ip", 3, 3600)


class Leaving:
    """A memory that three instances share, until it is away."""

    instances = 3

    def __init__(self, memory):
        self._memory, self.is_lost = memory, False

    async def run(self, script, keys, arguments, *, bulk=False):
        return await (LostMemory(3) if self.is_lost else self._memory).run(script, keys, arguments, bulk=bulk)


@asynccontextmanager
async def counted_in(server):
    """A memory that must have done all of it: else an instance's own limits would answer for it, unnoticed."""
    async with memory_in(server) as memory:
        yield memory
        assert (memory.lost, memory.refused) == (0, 0)


@pytest.fixture
def clock():
    clock = Clock()
    clock.now = START
    return clock


@asynccontextmanager
async def limits_of(engine, clock, server, **more):
    """The limits of the free tier by one of the engines: in memory, in Redis, and alone while Redis is away."""
    named = {"daily": 5, "spacing_s": 30, "monotonic": clock, **more}
    if engine == "memory":
        yield FreeLimits(**named)
    elif engine == "lost":
        yield SharedFreeLimits(LostMemory(1), now=clock, **named)
    else:
        async with counted_in(server) as memory:
            yield SharedFreeLimits(memory, now=clock, **named)


engines = pytest.mark.parametrize("engine", ["memory", "redis", "lost"])


@engines
async def test_a_day_holds_so_many_calls_and_they_grow_back(engine, clock, redis_server):
    async with limits_of(engine, clock, redis_server) as free:
        for number in range(5):
            states = await free.count("a", f"endpoint {number}")
        assert [state.remaining for state in states] == [0, 0]
        assert [state.header for state in states] == ['"daily";r=0;t=86400', '"spacing";r=0;t=30']
        with pytest.raises(RateLimited) as refused:
            await free.count("a", "another")
        assert refused.value.extra == {"retry_after_seconds": 86400 // 5, "limit": "daily"}
        assert (await free.count("b", "another"))[0].remaining == 4
        clock.now += 86400 / 5
        assert (await free.count("a", "another"))[0].remaining == 0


@engines
async def test_a_call_that_is_too_soon_is_refused_and_costs_nothing(engine, clock, redis_server):
    async with limits_of(engine, clock, redis_server) as free:
        await free.count("a", "gas")
        clock.now += 20
        for _ in range(20):
            with pytest.raises(RateLimited, match="gas is answered once in 30 s for a client") as refused:
                await free.count("a", "gas")
        assert refused.value.headers == {
            "Retry-After": "10",
            "RateLimit-Policy": '"spacing";q=1;w=30',
            "RateLimit": '"spacing";r=0;t=10',
        }
        assert (await free.count("a", "forex"))[0].remaining == 3
        clock.now += 10
        await free.count("a", "gas")


@engines
async def test_an_answer_that_the_client_had_is_not_spaced_and_one_that_is_given_back_neither(
    engine, clock, redis_server
):
    async with limits_of(engine, clock, redis_server) as free:
        for _ in range(2):
            assert len(await free.count("a", "gas", spaced=False)) == 1
        await free.count("a", "gas")
        free.give_back_spacing("a", "gas")
        await free.count("a", "gas")
        with pytest.raises(RateLimited):
            await free.count("a", "gas")


@engines
async def test_a_token_is_spaced_by_question_and_asks_so_many(engine, clock, redis_server):
    async with limits_of(engine, clock, redis_server, daily=100) as free:
        for number in range(12):
            await free.count("token a", "gas", question=("gas", number))
        with pytest.raises(RateLimited, match="The same arguments are answered once in 30 s"):
            await free.count("token a", "gas", question=("gas", 3))
        with pytest.raises(RateLimited, match="gas answers 12 different questions per 30 s") as refused:
            await free.count("token a", "gas", question=("gas", 12))
        assert refused.value.extra["limit"] == "questions gas"
        clock.now += 30
        await free.count("token a", "gas", question=("gas", 12))


@engines
async def test_so_many_different_values_and_those_as_often_as_one_likes(engine, clock, redis_server):
    async with limits_of(engine, clock, redis_server, daily=1000) as free:
        for round in range(2):
            for value in "abc":
                await free.count("a", f"look {round}{value}", distinct=(DISTINCT, value))
                clock.now += 1
        with pytest.raises(RateLimited, match="3 different values of ip") as refused:
            await free.count("a", "look up", distinct=(DISTINCT, "d"))
        assert refused.value.extra["retry_after_seconds"] == 3600 - 6
        clock.now += 3600 - 6
        await free.count("a", "look up", distinct=(DISTINCT, "d"))


@engines
async def test_a_48_shares_sixteen_times_what_one_network_may(engine, clock, redis_server):
    async with limits_of(engine, clock, redis_server, daily=2) as free:
        for number in range(2 * WIDER):
            await free.count(f"2001:db8:0:{number // 2:x}::/64", f"endpoint {number}")
        with pytest.raises(RateLimited) as refused:
            await free.count("2001:db8:0:ff::/64", "endpoint")
        assert refused.value.extra["limit"] == "daily of a /48"
        await free.count("2001:db8:1::/64", "endpoint")


@engines
async def test_limits_that_are_off_count_nothing(engine, clock, redis_server):
    async with limits_of(engine, clock, redis_server, enabled=False) as free:
        for _ in range(20):
            assert await free.count("a", "gas") == []
        free.give_back_spacing("a", "gas")


calls = st.lists(
    st.tuples(
        st.sampled_from(["a", "token t", "2001:db8::/64", "2001:db8:0:1::/64"]),
        st.sampled_from(["gas", "forex"]),
        st.integers(0, 3),
        st.booleans(),
        st.sampled_from([None, "x", "y", "z", "w"]),
        st.sampled_from([0.0, 0.5, 10, 30, 3601]),
    ),
    max_size=30,
)


@settings(max_examples=sized(30, fast=25, long=1000), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(calls)
def test_redis_allows_exactly_what_memory_allows(redis_server, made):
    async def compare():
        clock = Clock()
        clock.now = START
        named = {"daily": 6, "spacing_s": 30, "monotonic": clock}
        async with counted_in(redis_server) as memory:
            both = FreeLimits(**named), SharedFreeLimits(memory, now=clock, **named)
            for client, endpoint, question, spaced, value, wait in made:
                distinct = None if value is None else (DISTINCT, value)
                found = []
                for free in both:
                    try:
                        states = await free.count(client, endpoint, question=question, spaced=spaced, distinct=distinct)
                        found.append([(state.quota.name, state.remaining) for state in states])
                    except RateLimited as refused:
                        found.append((refused.extra, str(refused)))
                assert found[0] == found[1]
                clock.now += wait

    anyio.run(compare)


async def test_three_instances_allow_together_what_one_allows(clock, redis_server):
    async with counted_in(redis_server) as memory:
        instances = [SharedFreeLimits(memory, now=clock, daily=50, spacing_s=30, monotonic=clock) for _ in range(3)]
        allowed = []

        async def call(free, number):
            with suppress(RateLimited):
                await free.count("a", f"endpoint {number}")
                allowed.append(number)

        async with anyio.create_task_group() as tasks:
            for number in range(300):
                tasks.start_soon(call, instances[number % 3], number)
        assert len(allowed) == 50


async def test_while_redis_is_away_each_instance_allows_its_share_and_remembers_what_it_counted(clock, redis_server):
    async with counted_in(redis_server) as memory:
        leaving = Leaving(memory)
        free = SharedFreeLimits(leaving, now=clock, daily=30, spacing_s=30, monotonic=clock)
        for number in range(4):
            await free.count("a", f"endpoint {number}")
        leaving.is_lost = True
        allowed = 0
        for number in range(10, 40):
            with suppress(RateLimited):
                await free.count("a", f"endpoint {number}")
                allowed += 1
        assert allowed == 6  # a third of thirty, of which four are counted already
        await free.count("b", "gas")
        with pytest.raises(RateLimited) as refused:
            await free.count("b", "gas")
        assert refused.value.extra["retry_after_seconds"] == 90


def test_a_share_is_never_more_than_its_part():
    assert share(Quota("daily", 100, 60), 3) == Quota("daily", 33, 60)
    assert share(Quota("spacing", 1, 30), 3) == Quota("spacing", 1, 90)
    assert share(Quota("few", 2, 60), 4) == Quota("few", 1, 120)


@asynccontextmanager
async def personal_of(engine, clock, server, per_minute=3):
    named = {"per_minute": per_minute, "monotonic": clock}
    if engine == "memory":
        yield PersonalLimits(**named)
    elif engine == "lost":
        yield SharedPersonalLimits(LostMemory(1), now=clock, **named)
    else:
        async with counted_in(server) as memory:
            yield SharedPersonalLimits(memory, now=clock, **named)


@engines
async def test_payment_tools_allow_so_many_a_minute_and_their_own_quotas(engine, clock, redis_server):
    async with personal_of(engine, clock, redis_server) as personal:
        await personal.look("a", "try", [(1, 3600)])
        await personal.count("a", "try", [(1, 3600)])
        for ask in (personal.look, personal.count):
            with pytest.raises(RateLimited) as refused:
                await ask("a", "try", [(1, 3600)])
            assert refused.value.extra == {"retry_after_seconds": 3600, "limit": "try"}
        for _ in range(2):
            await personal.look("a", "balance")
            await personal.count("a", "balance")
        with pytest.raises(RateLimited) as refused:
            await personal.count("a", "balance")
        assert refused.value.extra == {"retry_after_seconds": 20, "limit": "personal"}
        await personal.count("b", "balance")


@asynccontextmanager
async def uncharged_of(engine, clock, server):
    named = {"per_hour": 2, "monotonic": clock}
    if engine == "memory":
        yield UnchargedLimit(**named)
    elif engine == "lost":
        yield SharedUnchargedLimit(LostMemory(1), now=clock, **named)
    else:
        async with counted_in(server) as memory:
            yield SharedUnchargedLimit(memory, now=clock, **named)


@engines
async def test_calls_without_a_charge_are_bounded(engine, clock, redis_server):
    async with uncharged_of(engine, clock, redis_server) as limit:
        for charged in (True, False, True, False):
            async with limit.admit("token", "report") as call:
                call.charged = charged
        with pytest.raises(RateLimited, match="2 calls of report an hour may end without a charge"):
            async with limit.admit("token", "report"):
                pass
        with pytest.raises(RateLimited):
            await limit.count("token", "report")
        for _ in range(2):
            await limit.count("account", "report")
        with pytest.raises(RateLimited):
            await limit.count("account", "report")
        clock.now += 1800
        async with limit.admit("token", "report") as call:
            call.charged = True
        await limit.count("account", "report")
