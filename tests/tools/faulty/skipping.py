"""Time that is not waited for: an event loop which jumps to the next timer, and the service's clock on it."""

import asyncio
import selectors
from datetime import datetime, timedelta

import anyio

SHORTEST_S = 1e-6  # a loop takes timers of less than its resolution for due: no time would pass, ever


class SkippingLoop(asyncio.SelectorEventLoop):
    """Its time stands still while there is work, and jumps when there is none. Nothing may run in other threads."""

    def __init__(self) -> None:
        self._passed = 0.0
        super().__init__(_Jumping(self))

    def time(self) -> float:
        return self._passed

    def jump(self, seconds: float) -> None:
        self._passed += seconds


class _Jumping(selectors.DefaultSelector):
    def __init__(self, loop: SkippingLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(None if timeout is None else 0)
        if not ready and timeout is not None and timeout > 0:
            self._loop.jump(timeout)
        return ready


class LoopClock:
    """The service's clock, driven by the loop: `start` is now, a wait costs no real time."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._began = asyncio.get_running_loop().time()

    @property
    def passed_s(self) -> float:
        return asyncio.get_running_loop().time() - self._began

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.passed_s)

    def time(self) -> float:
        return self.now().timestamp()

    def monotonic(self) -> float:
        return 1000.0 + self.passed_s

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(max(seconds, SHORTEST_S))
