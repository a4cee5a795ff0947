"""Provides time as an object, so that tests, the demo and the simulated world can move it."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

import anyio
import anyio.lowlevel


class Clock(Protocol):
    """Wall time to show and store, monotonic seconds to measure."""

    def now(self) -> datetime:
        """Return the current time in UTC."""
        ...

    def time(self) -> float:
        """Return the current time in epoch seconds."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never decrease."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait `seconds` by this clock."""
        ...


def milliseconds(clock: Clock) -> Callable[[], int]:
    """Return a function that returns the clock's time as it is stored: integer milliseconds since 1970."""
    return lambda: int(clock.time() * 1000)


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


class ManualClock:
    """A clock that moves only on request or when a caller sleeps by it, which takes no real time."""

    def __init__(self, start: datetime) -> None:
        self._now = start
        self._monotonic = 1000.0

    def now(self) -> datetime:
        return self._now

    def time(self) -> float:
        return self._now.timestamp()

    def monotonic(self) -> float:
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)
        await anyio.lowlevel.checkpoint()

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds
