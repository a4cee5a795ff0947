"""Provide the clock of the simulated world: it can be set, moved, sped up, stopped, and shared with a service."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

import anyio

LATEST = 4_102_444_800.0  # 2100-01-01
FASTEST = 86_400.0


class _Anchor(NamedTuple):
    """The clock's state at its last change, replaced as a whole so that every thread reads a consistent one."""

    real: float  # the machine's monotonic seconds
    now: float  # simulated epoch seconds
    elapsed: float  # total simulated seconds that have passed
    rate: float  # simulated per real second; 0 while frozen


class SimClock:
    """Simulated time. Starts at `epoch` (now, if None) and runs `speed` times as fast as real time.

    Wall time may be set back; `elapsed` never goes back, follows every step forward and stands still while frozen.
    """

    def __init__(
        self,
        epoch: float | None = None,
        *,
        speed: float = 1.0,
        frozen: bool = False,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._start = (epoch, speed, frozen)
        self._wall, self._monotonic = wall, monotonic
        self.epoch = wall() if epoch is None else epoch
        self._speed = _in_range("speed", speed, FASTEST)
        self._frozen = frozen
        self._anchor = _Anchor(monotonic(), _in_range("now", self.epoch, LATEST), 0.0, 0.0 if frozen else speed)

    def now(self) -> float:
        """Return simulated epoch seconds."""
        anchor = self._anchor
        return anchor.now + (self._monotonic() - anchor.real) * anchor.rate

    def elapsed(self) -> float:
        """Return simulated seconds since the start, which never go back."""
        anchor = self._anchor
        return anchor.elapsed + (self._monotonic() - anchor.real) * anchor.rate

    @property
    def speed(self) -> float:
        return self._speed

    @property
    def frozen_at(self) -> float | None:
        return self._anchor.now if self._frozen else None

    @property
    def offset_s(self) -> float:
        """How far simulated time is ahead of the machine's."""
        return self.now() - self._wall()

    def set(self, now: float) -> None:
        """Move the clock to an instant, forward or back."""
        self._move(_in_range("now", now, LATEST))

    def advance(self, seconds: float) -> None:
        self._move(_in_range("now", self.now() + seconds, LATEST))

    def run(self, speed: float) -> None:
        """Run at another speed from now on (after thawing, if frozen)."""
        self._speed = _in_range("speed", speed, FASTEST)
        self._move(self.now())

    def freeze(self) -> None:
        now = self.now()
        self._frozen = True
        self._move(now)

    def thaw(self) -> None:
        now = self.now()
        self._frozen = False
        self._move(now)

    def restart(self) -> None:
        """Return to the initial instant (or the machine's time if none was given), speed and state."""
        epoch, self._speed, self._frozen = self._start
        self.epoch = self._wall() if epoch is None else epoch
        self._move(self.epoch)

    def _move(self, now: float) -> None:
        elapsed = self.elapsed() + max(0.0, now - self.now())
        self._anchor = _Anchor(self._monotonic(), now, elapsed, 0.0 if self._frozen else self._speed)


class SharedSimClock:
    """The same clock with the interface of a service: aware datetimes, and seconds that never go back."""

    def __init__(self, clock: SimClock) -> None:
        self._clock = clock

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now(), UTC)

    def time(self) -> float:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.elapsed()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds / max(self._clock.speed, 1.0))


def _in_range(name: str, value: float, highest: float) -> float:
    if not 0 <= value <= highest:
        raise ValueError(f"{name} must be between 0 and {highest:.0f}")
    return value
