"""The clock of the simulated world."""

from datetime import UTC, datetime

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.world.toy import T
from toolserver.clock import Clock
from toolserver.world.state import SharedSimClock, SimClock


def test_it_starts_at_its_epoch_and_runs_with_real_time(ticks):
    clock = SimClock(T, monotonic=ticks)
    ticks.at += 5
    assert clock.now() == T + 5
    assert clock.elapsed() == 5


def test_without_an_epoch_it_starts_at_the_machines_time(ticks):
    clock = SimClock(wall=lambda: T, monotonic=ticks)
    assert (clock.epoch, clock.now(), clock.offset_s) == (T, T, 0)


def test_speed_counts_from_where_it_was_changed(ticks):
    clock = SimClock(T, monotonic=ticks)
    ticks.at += 10
    clock.run(60)
    ticks.at += 1
    assert clock.now() == T + 70
    assert clock.speed == 60


def test_frozen_it_stands_still_and_can_still_be_moved(ticks):
    clock = SimClock(T, monotonic=ticks)
    clock.freeze()
    ticks.at += 100
    assert clock.frozen_at == T
    clock.advance(30)
    assert (clock.now(), clock.frozen_at) == (T + 30, T + 30)
    clock.thaw()
    ticks.at += 2
    assert (clock.now(), clock.frozen_at) == (T + 32, None)


@pytest.mark.parametrize(("speed", "passed"), [(0.1, 100), (1, 100), (60, 6000)])
def test_frozen_or_slow_the_time_between_requests_passes_as_fast_as_waits_do(ticks, speed, passed):
    clock = SimClock(T, speed=speed, frozen=True, monotonic=ticks)
    ticks.at += 100
    assert (clock.now(), clock.elapsed()) == (T, passed)
    clock.thaw()
    ticks.at += 100
    assert (clock.now(), clock.elapsed()) == (T + 100 * speed, 2 * passed)


def test_a_speed_set_while_frozen_holds_from_the_thaw_on(ticks):
    clock = SimClock(T, frozen=True, monotonic=ticks)
    clock.run(10)
    ticks.at += 1
    assert clock.now() == T
    clock.thaw()
    ticks.at += 1
    assert clock.now() == T + 10


def test_set_back_the_wall_time_goes_back_and_the_elapsed_time_does_not(ticks):
    clock = SimClock(T, monotonic=ticks)
    ticks.at += 50
    clock.set(T - 1000)
    assert (clock.now(), clock.elapsed()) == (T - 1000, 50)
    ticks.at += 1
    assert clock.elapsed() == 51


def test_restart_goes_back_to_the_start_in_everything_but_elapsed_time(ticks):
    clock = SimClock(T, frozen=True, monotonic=ticks)
    clock.thaw()
    clock.run(5)
    clock.advance(100)
    clock.restart()
    assert (clock.now(), clock.speed, clock.frozen_at) == (T, 1, T)
    assert clock.elapsed() == 100


@pytest.mark.parametrize("wrong", [-1.0, 5e9, float("nan")])
def test_an_instant_nobody_can_live_in_is_refused(wrong):
    with pytest.raises(ValueError, match="now must be between"):
        SimClock(T).set(wrong)


def test_a_service_reads_it_as_its_own_clock(ticks):
    sim = SimClock(T, monotonic=ticks)
    clock: Clock = SharedSimClock(sim)
    before = clock.monotonic()
    sim.advance(60)
    assert clock.now() == datetime(2027, 1, 15, 8, 1, tzinfo=UTC)
    assert clock.monotonic() - before == 60


moves = st.one_of(
    st.tuples(st.just("advance"), st.floats(-1e6, 1e6)),
    st.tuples(st.just("run"), st.floats(0, 3600)),
    st.tuples(st.just("set"), st.floats(T - 1e6, T + 1e6)),
    st.tuples(st.sampled_from(["freeze", "thaw", "restart"]), st.none()),
    st.tuples(st.just("wait"), st.floats(0, 1000)),
)


@given(st.lists(moves, max_size=30))
def test_elapsed_time_never_goes_back_whatever_is_done_to_the_clock(done):
    real = [0.0]
    clock = SimClock(T, monotonic=lambda: real[0])
    last = clock.elapsed()
    for name, value in done:
        if name == "wait":
            real[0] += value
        else:
            getattr(clock, name)(*([] if value is None else [value]))
        assert clock.elapsed() >= last
        last = clock.elapsed()


async def test_a_sleeper_wakes_when_the_clock_is_set_forward():
    clock = SimClock(T)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(SharedSimClock(clock).sleep, 3600)
            await anyio.sleep(0.05)
            clock.advance(3601)
