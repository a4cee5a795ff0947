"""Which reads belong together, and how long the first waits for the others."""

import anyio
import pytest

import toolserver.upstream.fan_out as fan_out_module
from toolserver.upstream.fan_out import FanOut


async def has_gathered(fan_out):
    """Whether nothing has to be waited for."""
    gathered = False
    with anyio.move_on_after(0):
        await fan_out.gather()
        gathered = True
    return gathered


async def test_the_first_request_waits_for_each_read_on_its_way():
    fan_out = FanOut()
    assert await has_gathered(fan_out)
    first, second = fan_out.add(), fan_out.add()
    first.settle()
    first.settle()
    assert not await has_gathered(fan_out)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fan_out.gather)
        await anyio.wait_all_tasks_blocked()
        second.settle()
    assert await has_gathered(fan_out)


async def test_a_later_read_is_waited_for_again():
    fan_out = FanOut()
    fan_out.add().settle()
    later = fan_out.add()
    assert not await has_gathered(fan_out)
    later.settle()
    assert await has_gathered(fan_out)


async def test_a_read_that_does_not_come_is_not_waited_for_long():
    assert fan_out_module.GATHER_S == 0.1
    fan_out = FanOut()
    fan_out.add()
    with anyio.fail_after(5):
        await fan_out.gather(within_s=0.01)


@pytest.mark.parametrize("count", [1, 7])
async def test_reads_that_settle_before_anyone_waits_cost_no_wait(count):
    fan_out = FanOut()
    for part in [fan_out.add() for _ in range(count)]:
        part.settle()
    assert await has_gathered(fan_out)
