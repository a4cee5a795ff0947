"""Whether another service is asked at all: after failures it is left alone, and only a probe finds it well again.

closed ── 5 failures in a row, or half of 20 within 30 s ──▶ open ── its time is over ──▶ half_open
   ▲                                                           ▲ a probe fails: twice as long │
   └───────────────────────── two probes succeed ──────────────┴─────────────────────────────┘
"""

import random
from collections import deque
from collections.abc import Callable
from typing import Literal

import anyio

from toolserver.clock import Clock

State = Literal["closed", "open", "half_open"]

IN_A_ROW = 5
WINDOW_S, ENOUGH, SHARE = 30.0, 20, 0.5
REMEMBERED = 1000  # results within the window; more say nothing new
FIRST_S, LONGEST_S, SPREAD = 30.0, 300.0, 0.2
PROBES = 2


class Breaker:
    """Counts what became of requests. A refusal is a success: whoever refuses is there."""

    def __init__(self, clock: Clock, *, chance: Callable[[], float] = random.random) -> None:
        self._clock, self._chance = clock, chance
        self.state: State = "closed"
        self.opened = 0  # how often
        self.tripped = anyio.Event()  # set while it is not closed
        self._results: deque[tuple[float, bool]] = deque(maxlen=REMEMBERED)
        self._in_a_row = self._probes = 0
        self._length_s, self._until = FIRST_S, 0.0

    @property
    def closed(self) -> bool:
        """Whether calls are let through."""
        return self.state == "closed"

    @property
    def wait_s(self) -> float:
        """How long until it may be worth asking again; 0 when it is now."""
        return max(0.0, self._until - self._clock.monotonic()) if self.state == "open" else 0.0

    def told(self, *, good: bool) -> None:
        """What became of a request. Those that were on the way when it opened change nothing any more."""
        if not self.closed:
            return
        now = self._clock.monotonic()
        self._results.append((now, good))
        self._in_a_row = 0 if good else self._in_a_row + 1
        if not good and (self._in_a_row >= IN_A_ROW or self._mostly_bad(now)):
            self._open()

    def half_open(self) -> None:
        """A probe is sent now."""
        self.state = "half_open"

    def probed(self, *, good: bool) -> None:
        """What became of a probe."""
        if not good:
            self._length_s = min(2 * self._length_s, LONGEST_S)
            self._open()
            return
        self._probes += 1
        if self._probes >= PROBES:
            self.state, self._length_s = "closed", FIRST_S
            self._results.clear()
            self._in_a_row = 0
            self.tripped = anyio.Event()

    def _mostly_bad(self, now: float) -> bool:
        while self._results and self._results[0][0] < now - WINDOW_S:
            self._results.popleft()
        bad = sum(not good for _, good in self._results)
        return len(self._results) >= ENOUGH and bad >= SHARE * len(self._results)

    def _open(self) -> None:
        self.opened += self.closed
        self.state, self._probes = "open", 0
        self._until = self._clock.monotonic() + self._length_s * (1 + SPREAD * (2 * self._chance() - 1))
        self.tripped.set()
