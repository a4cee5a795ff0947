import asyncio
import threading

import pytest

from toolserver.webhooks.dns_lane import DaemonThreads


async def test_calls_run_beside_each_other_up_to_the_bound():
    pool, gate, inside, three = DaemonThreads(3, "t"), threading.Event(), [], threading.Barrier(4, timeout=5)

    def work(n):
        inside.append(n)
        if n < 3:
            three.wait()
        gate.wait(5)
        return n

    asked = [pool.run(work, n) for n in range(5)]
    await asyncio.to_thread(three.wait)
    assert sorted(inside) == [0, 1, 2]
    gate.set()
    assert await asyncio.gather(*asked) == [0, 1, 2, 3, 4]
    pool.close()


async def test_what_a_call_raises_arrives():
    pool = DaemonThreads(1, "t")
    with pytest.raises(ZeroDivisionError):
        await pool.run(lambda: 1 / 0)
    assert await pool.run(lambda: 2) == 2
    pool.close()


async def test_a_call_that_nobody_waits_for_any_more_ends_quietly():
    pool, gate = DaemonThreads(1, "t"), threading.Event()
    asked = pool.run(gate.wait, 5)
    asked.cancel()
    gate.set()
    assert await pool.run(lambda: 3) == 3
    pool.close()


def test_a_thread_that_hangs_does_not_keep_the_process():
    async def hang():
        pool = DaemonThreads(1, "hanging")
        pool.run(threading.Event().wait)
        await asyncio.sleep(0)

    asyncio.run(hang())
    hanging = [thread for thread in threading.enumerate() if thread.name.startswith("hanging")]
    assert hanging
    assert all(thread.daemon for thread in hanging)
