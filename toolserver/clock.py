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


TOLERANCE_S = 5.0  # how far a machine's clock may be off before the database's is taken instead


class ClockSkew:
    """How many seconds the database's clock is ahead of this machine's, as it was last measured."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @property
    def is_off(self) -> bool:
        """True if this machine's clock is too far off to date money and webhooks by it."""
        return abs(self.seconds) > TOLERANCE_S

    def describe(self) -> str | None:
        """Say in a sentence that this machine's clock is off, and what is done; None if it is not."""
        if not self.is_off:
            return None
        side = "behind" if self.seconds > 0 else "ahead of"
        return (
            f"This machine's clock is {abs(self.seconds):.0f} s {side} the database's, whose time is taken instead:"
            " set it right, and let a time service (NTP) keep it."
        )


class SteeredClock:
    """A machine's clock, or the database's time where the two are too far apart."""

    def __init__(self, machine: Clock, skew: ClockSkew) -> None:
        self._machine, self._skew = machine, skew

    def now(self) -> datetime:
        return self._machine.now() + timedelta(seconds=self._offset_s)

    def time(self) -> float:
        return self._machine.time() + self._offset_s

    def monotonic(self) -> float:
        return self._machine.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._machine.sleep(seconds)

    @property
    def _offset_s(self) -> float:
        return self._skew.seconds if self._skew.is_off else 0.0


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
