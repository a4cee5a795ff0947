"""A server killed by SIGKILL between every two steps of a fire. `python -m tests.webhooks.sigkills [times a step]`.

Each life is a process of its own, forked with nothing open; at a given step it kills itself, so that nothing is tidied
up. The next life finds what is on the disk, and goes on after the lease of what was claimed; then comes another slot.
"""

import asyncio
import os
import random
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.calls.parts import START
from tests.webhooks.kills import IMPATIENT, SLOT_S, Fate, Findings, compare, count_steps, moody, run_life
from tests.webhooks.receivers import Receiver, receiving, status
from toolserver.clock import ManualClock

FOREVER = 10**9
FAULTY = 0.1


class SuddenDeath(Fate):
    """Ends the process at the last step, without a word."""

    def step(self) -> None:
        self.left -= 1
        if self.left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)


def live(job: Coroutine[Any, Any, Any]) -> bool:
    """Run a job in a process of its own; True when it was killed. Any other failure is raised."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            asyncio.run(job)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    job.close()
    _, ended = os.waitpid(pid, 0)
    if os.WIFSIGNALED(ended):
        assert os.WTERMSIG(ended) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(ended) == 0, "a life ended with a failure"
    return False


@contextmanager
def receiving_apart(answer: Any) -> Iterator[Receiver]:
    """A receiver in a thread of this process, so that it outlives the lives."""
    started, ending = threading.Event(), asyncio.Event()
    running: list[Any] = []

    async def serve() -> None:
        async with receiving(answer) as receiver:
            running.extend((receiver, asyncio.get_running_loop()))
            started.set()
            await ending.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    started.wait()
    try:
        yield running[0]
    finally:
        running[1].call_soon_threadsafe(ending.set)
        thread.join()


def kill_at(folder: Path, step: int, times: int) -> Findings:
    """Kill a server so many times at one step of a fire; what was delivered and what was charged must agree."""
    clock, findings = ManualClock(START), Findings()
    answer, takes = moody(random.Random(step), FAULTY)
    with receiving_apart(answer) as receiver:
        live(run_life(folder, clock, Fate(FOREVER), [receiver.url()]))
        for _ in range(3 * times):  # a fire that is retried or refused has other steps than one that is not
            if findings.kills == times:
                break
            clock.advance(SLOT_S)
            killed = live(run_life(folder, clock, SuddenDeath(step), network=IMPATIENT))
            findings = replace(findings, kills=findings.kills + killed)
            clock.advance(61)
            live(run_life(folder, clock, Fate(FOREVER)))
        receiver.answer = status(200)
        for _ in range(4):
            clock.advance(61)
            live(run_life(folder, clock, Fate(FOREVER)))
        takes += [True] * (len(receiver.requests) - len(takes))
        return asyncio.run(compare(folder, clock, receiver, takes, findings))


def main(times: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        steps = asyncio.run(count_steps(Path(folder)))
    print(steps, "steps,", times, "kills at each", flush=True)
    problems: tuple[str, ...] = ()
    for step in range(1, steps + 1):
        with tempfile.TemporaryDirectory() as folder:
            findings = kill_at(Path(folder), step, times)
            print(step, findings, flush=True)
            problems += findings.problems
    sys.exit(len(problems))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
