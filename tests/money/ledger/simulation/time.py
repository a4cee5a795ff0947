"""An event loop whose time leaps to the next thing that is due, and clocks that go by it."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

import anyio

from tests.calls.parts import START

END_S = 10.0**8


class Deadlock(Exception):
    """Everything waits and nothing is due."""


class Leaping(selectors.SelectSelector):
    """Waits for nothing: there is no outside world."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None or (timeout and self.now > END_S):  # to wait for ever is to wait day by day
            raise Deadlock("everybody waits for something that never comes")
        self.now += max(0.0, timeout)
        return []


class SimulatedLoop(asyncio.SelectorEventLoop):
    """A loop that takes no real time."""

    def __init__(self) -> None:
        self._leaping = Leaping()
        super().__init__(self._leaping)
        self.set_exception_handler(lambda loop, context: None)  # what crashes leaves futures nobody asks for

    def time(self) -> float:
        return self._leaping.now


class SimulatedClock:
    """A machine's clock, wrong by some seconds."""

    def __init__(self, off_s: float = 0.0) -> None:
        self._start = START.timestamp() + off_s

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.time(), UTC)

    def time(self) -> float:
        return self._start + asyncio.get_running_loop().time()

    def monotonic(self) -> float:
        return 1000.0 + asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


def run(main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a simulation to its end."""
    return anyio.run(main, backend_options={"loop_factory": SimulatedLoop})
