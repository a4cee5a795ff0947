"""Test the loop on which tests run: work takes none of its time, waiting does."""

import time

import anyio
import anyio.to_thread

WORK_S = 0.05


async def test_no_deadline_passes_while_there_is_work():
    with anyio.move_on_after(WORK_S / 5) as scope:
        time.sleep(WORK_S)  # noqa: ASYNC251 - a machine that is busy
        await anyio.lowlevel.checkpoint()
    assert not scope.cancelled_caught


async def test_a_deadline_passes_while_there_is_nothing_to_do():
    with anyio.move_on_after(WORK_S) as scope:
        await anyio.sleep_forever()
    assert scope.cancelled_caught


async def test_what_a_thread_does_is_waited_for():
    began = anyio.current_time()
    await anyio.to_thread.run_sync(time.sleep, WORK_S)
    assert anyio.current_time() > began
