"""A clock that follows that of a world elsewhere."""

import time

import anyio
import anyio.to_thread

from tests.world.toy import HOST, Running, T
from toolserver.world.remote_clock import LEAP_S, FollowedClock, follow, read_world_time


def standing_clock() -> FollowedClock:
    """A clock on a machine whose own clocks stand still."""
    return FollowedClock(wall=lambda: 1000.0, monotonic=lambda: 50.0)


def test_it_leaps_forward_and_measured_time_leaps_with_it():
    clock = standing_clock()
    clock.set(4600.0)

    assert (clock.time(), clock.monotonic()) == (4600.0, 3650.0)
    assert clock.now().timestamp() == 4600.0


def test_it_goes_back_without_measured_time_going_back():
    clock = standing_clock()
    clock.set(400.0)

    assert (clock.time(), clock.monotonic()) == (400.0, 50.0)


def test_a_difference_that_the_way_of_the_request_explains_changes_nothing():
    clock = standing_clock()
    clock.set(1000.0 + LEAP_S)

    assert clock.time() == 1000.0


async def test_it_follows_a_world_from_the_first_answer_on(world: Running):
    clock = FollowedClock()
    async with anyio.create_task_group() as tasks:
        with anyio.fail_after(20):
            await tasks.start(follow, clock, f"http://127.0.0.1:{world.port}/")
        shown = (await world.sim("GET", "/clock"))["now"]
        tasks.cancel_scope.cancel()

    assert abs(clock.time() - float(shown)) < 60
    assert abs(clock.time() - time.time()) > 60


async def test_where_no_world_answers_the_machines_clock_goes_on(world: Running):
    clock = FollowedClock()
    async with anyio.create_task_group() as tasks:
        with anyio.fail_after(20):
            await tasks.start(follow, clock, f"http://127.0.0.1:{world.port}/no-such-place")

    assert abs(clock.time() - time.time()) < 5


async def test_the_time_of_a_world_is_read_once_and_other_servers_have_none(world: Running):
    url = f"http://127.0.0.1:{world.port}"

    assert await anyio.to_thread.run_sync(read_world_time, url) == T
    assert await anyio.to_thread.run_sync(read_world_time, f"{url}/u/{HOST}") is None
