"""A worker as its supervisor sees it: orders in, one line out, and how it ended."""

import sys

import anyio
import pytest

from toolserver.serving.worker_process import REPLACED, WorkerFailed, WorkerProcess, describe_status

slow = pytest.mark.slow("it starts Python")

ECHO = """
import json, sys
orders = json.loads(sys.stdin.readline())
print(json.dumps({"ready": True, "orders": orders}), flush=True)
sys.exit({"replaced\\n": 3, "stop\\n": 4, "": 5}[sys.stdin.readline()])
"""


async def start(script, orders=None):
    return await WorkerProcess.start(7, [sys.executable, "-c", script], orders or {}, [])


@slow
async def test_it_gets_its_orders_says_that_it_is_ready_and_hears_a_word():
    worker = await start(ECHO, {"number": 7})
    assert await worker.wait_until_ready(30) == {"ready": True, "orders": {"number": 7}}
    assert worker.is_running
    await worker.tell(REPLACED)
    assert await worker.wait() == 3
    assert not worker.is_running
    await worker.tell(REPLACED)  # which nobody hears, and which is no error
    await worker.close()


@slow
async def test_the_end_of_the_pipe_is_heard_as_well():
    worker = await start(ECHO)
    await worker.wait_until_ready(30)
    await worker._process.stdin.aclose()
    assert await worker.wait() == 5
    await worker.close()


@slow
@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("import sys; sys.stdin.readline(); sys.exit(9)", "worker 7 ended with status 9 before it was ready"),
        ("print('hello'); input()", "wrote something other than its ready line"),
        ("print('[]'); input()", "a line to standard output that is not an object"),
        ("import os; os.kill(os.getpid(), 9)", "worker 7 was ended by signal 9 before"),
    ],
)
async def test_one_that_does_not_become_ready_says_how_it_failed(script, why):
    with pytest.raises(WorkerFailed, match=why):  # noqa: PT012 - either of the two may notice
        worker = await start(script)
        try:
            await worker.wait_until_ready(30)
        finally:
            worker.kill()
            await worker.wait()
            await worker.close()


@slow
async def test_one_that_takes_too_long_has_failed_and_can_be_killed():
    worker = await start("import sys; sys.stdin.read()")
    with pytest.raises(WorkerFailed, match="worker 7 was not ready within 0 seconds"):
        await worker.wait_until_ready(0)
    worker.kill()
    assert await worker.wait() == -9
    worker.kill()  # again, which is no error
    await worker.close()


async def test_a_program_that_is_not_there_is_a_worker_that_failed():
    with anyio.fail_after(30), pytest.raises(WorkerFailed, match="worker 7 cannot be started: No such file"):
        await WorkerProcess.start(7, ["/nowhere/python"], {}, [])


def test_an_end_is_described_in_words():
    assert describe_status(-9) == "was ended by signal 9"
    assert describe_status(1) == "ended with status 1"
