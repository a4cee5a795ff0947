"""Test time as an object: the machine's clock, and one that only tests move."""

from datetime import UTC, datetime

import anyio
import pytest

from toolserver.clock import ClockSkew, ManualClock, SteeredClock, SystemClock, milliseconds

START = datetime(2027, 1, 15, 8, tzinfo=UTC)


async def test_a_manual_clock_moves_all_its_times_together_and_sleeping_takes_no_real_time():
    clock = ManualClock(START)
    before = clock.monotonic()
    clock.advance(1.5)
    with anyio.fail_after(1):
        await clock.sleep(3600)

    assert clock.now().isoformat() == "2027-01-15T09:00:01.500000+00:00"
    assert clock.time() == START.timestamp() + 3601.5
    assert clock.monotonic() - before == 3601.5


def test_times_are_stored_as_whole_milliseconds():
    clock = ManualClock(START)
    read = milliseconds(clock)
    clock.advance(1.2345)
    assert read() == int(START.timestamp() * 1000) + 1234


async def test_sleeping_by_a_manual_clock_lets_others_run():
    seen = []

    async def other():
        seen.append(True)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        await ManualClock(START).sleep(0)
        assert seen == [True]


async def test_the_system_clock_is_in_utc_and_its_times_agree():
    clock = SystemClock()
    before = clock.monotonic()
    await clock.sleep(0)

    assert clock.now().tzinfo is UTC
    assert clock.time() == pytest.approx(clock.now().timestamp(), abs=1)
    assert clock.monotonic() >= before


@pytest.mark.parametrize(("skew_s", "offset_s"), [(4.9, 0), (-5, 0), (60, 60), (-3600, -3600)])
def test_a_clock_that_is_far_off_is_steered_by_the_databases_and_says_so(skew_s, offset_s):
    machine, skew = ManualClock(START), ClockSkew()
    steered = SteeredClock(machine, skew)
    skew.seconds = skew_s
    assert steered.time() - machine.time() == offset_s
    assert (steered.now() - machine.now()).total_seconds() == offset_s
    assert steered.monotonic() == machine.monotonic()
    said = skew.describe()
    assert (said is not None) is skew.is_off is bool(offset_s)
    if said is not None:
        assert ("60 s behind" if skew_s > 0 else "3600 s ahead of") in said
