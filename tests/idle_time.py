"""Provide an event loop in which time passes only while it has nothing to do.

A slow or busy machine then makes no deadline pass and starts no spare source. Tests show how long things wait for one
another, regardless of the speed of the machine.
"""

import asyncio
import selectors
import time
from typing import Any


class IdleLoop(asyncio.SelectorEventLoop):
    """Its clock is the time it has spent waiting: for a timer, for a socket or for a thread."""

    def __init__(self) -> None:
        self._selector_with_clock = _IdleClock()
        super().__init__(self._selector_with_clock)
        self.set_task_factory(_make_task)

    def time(self) -> float:
        return self._selector_with_clock.idle_s


def _make_task(loop: asyncio.AbstractEventLoop, coro: Any, **named: Any) -> asyncio.Task[Any]:
    """Make a task that asyncio forgets when it is done.

    The tasks of thousands of tests stay until garbage is collected, and each end of a loop looks at every one of them.
    """
    task = asyncio.Task(coro, loop=loop, **named)
    task.add_done_callback(asyncio._unregister_task)
    return task


class _IdleClock(selectors.DefaultSelector):
    """A selector that counts how long it waits, and no longer than it was to wait: the rest is a busy machine's."""

    def __init__(self) -> None:
        super().__init__()
        self.idle_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        began = time.monotonic()
        ready = super().select(timeout)
        waited = time.monotonic() - began
        self.idle_s += waited if timeout is None else min(waited, max(timeout, 0.0))
        return ready
