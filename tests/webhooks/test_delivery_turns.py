import asyncio
from datetime import UTC, datetime

import pytest

from toolserver.clock import ManualClock
from toolserver.webhooks.delivery import WAITING, HostBusy, HostLimits


@pytest.fixture
def clock():
    return ManualClock(datetime(2027, 1, 1, tzinfo=UTC))


async def most_at_once(limits, targets):
    """How many of the deliveries were under way at one time."""
    now, most = 0, 0

    async def deliver(url, host):
        nonlocal now, most
        async with limits.turn(url, host):
            now += 1
            most = max(most, now)
            await asyncio.sleep(0)
            now -= 1

    await asyncio.gather(*(deliver(url, host) for url, host in targets))
    return most


async def test_an_endpoint_gets_one_at_a_time_a_host_four_and_others_do_not_wait(clock):
    assert await most_at_once(HostLimits(clock), [("https://a/1", "a")] * 10) == 1
    assert await most_at_once(HostLimits(clock), [(f"https://a/{n}", "a") for n in range(10)]) == 4
    assert await most_at_once(HostLimits(clock), [(f"https://{n}/", f"{n}") for n in range(10)]) == 10


async def test_a_host_that_never_answered_gets_sixty_a_minute_from_everyone_together(clock):
    limits = HostLimits(clock)
    for n in range(60):
        async with limits.turn(f"https://a/{n}", "a"):
            pass
    with pytest.raises(HostBusy) as busy:
        async with limits.turn("https://a/x", "a"):
            pass
    assert 0 < busy.value.wait_s <= 60
    clock.advance(61)
    async with limits.turn("https://a/x", "a"):
        pass


async def test_a_host_that_has_answered_has_no_such_limit(clock):
    limits = HostLimits(clock)
    limits.prove("a")
    for n in range(200):
        async with limits.turn(f"https://a/{n}", "a"):
            pass


async def test_whoever_gets_no_turn_in_time_comes_back_later(clock):
    limits = HostLimits(clock, wait_s=0.02)
    async with limits.turn("https://a/1", "a"):
        with pytest.raises(HostBusy):
            async with limits.turn("https://a/1", "a"):
                pass
    async with limits.turn("https://a/1", "a"):
        pass


async def test_only_so_many_wait_for_one_host(clock):
    limits = HostLimits(clock)
    async with limits.turn("https://a/1", "a"):
        waiting = [asyncio.create_task(hold(limits)) for _ in range(30)]
        await asyncio.sleep(0.01)
        assert sum(task.done() for task in waiting) == 30 - WAITING
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert sum(isinstance(outcome, HostBusy) for outcome in outcomes) == 30 - WAITING


async def hold(limits):
    async with limits.turn("https://a/1", "a"):
        pass


async def test_nothing_is_remembered_of_targets_that_nobody_uses(clock):
    limits = HostLimits(clock)
    for n in range(50):
        async with limits.turn(f"https://{n}/", str(n)):
            pass
    assert len(limits) == 0


async def test_a_turn_says_whether_it_was_waited_for(clock):
    limits, waits = HostLimits(clock), []

    async def deliver():
        async with limits.turn("https://a/1", "a") as waited:
            waits.append(waited)
            await asyncio.sleep(0)

    await asyncio.gather(deliver(), deliver())
    await deliver()
    assert waits == [False, True, False]
