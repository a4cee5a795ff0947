"""Stops requests to a service that keeps failing, and sends single probes to find out when it works again.

closed ── too many failures (see BreakerPolicy) ──▶ open ── the wait is over ──▶ half_open
   ▲                                                 ▲ a probe fails: twice the wait  │
   └───────────── enough probes succeed ─────────────┴────────────────────────────────┘
"""

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import anyio

from toolserver.clock import Clock

State = Literal["closed", "open", "half_open"]

MOST_RESULTS = 1000  # results kept for the window; more would hardly change the share


@dataclass(frozen=True, slots=True)
class FailureWindow:
    """Opens a circuit when `failed_share` of at least `least_calls` results of the last `length_s` seconds failed."""

    length_s: float = 30.0
    least_calls: int = 20
    failed_share: float = 0.5


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """When a circuit opens, how long it stays open, and what closes it. Times are in seconds.

    The circuit opens after `failures_in_a_row`, and by its `window`, if it has one. A wait
    varies randomly by `spread`, so that several instances do not probe at the same time.
    """

    failures_in_a_row: int = 5
    first_wait_s: float = 30.0
    longest_wait_s: float = 300.0
    probes: int = 2
    spread: float = 0.2
    window: FailureWindow | None = FailureWindow()


class CircuitBreaker:
    """The circuit of one service. A refusal by the service counts as a success, because the service answered."""

    def __init__(
        self, clock: Clock, policy: BreakerPolicy | None = None, *, chance: Callable[[], float] = random.random
    ) -> None:
        self._clock, self._policy, self._chance = clock, policy or BreakerPolicy(), chance
        self.state: State = "closed"
        self.opened = 0  # how many times it went from closed to open
        self.tripped = anyio.Event()  # set while the circuit is not closed
        self._results: deque[tuple[float, bool]] = deque(maxlen=MOST_RESULTS)
        self._failures = self._good_probes = 0
        self._is_probing = False
        self._wait_s, self._open_until = self._policy.first_wait_s, 0.0

    @property
    def closed(self) -> bool:
        """True if requests may be sent."""
        return self.state == "closed"

    @property
    def wait_s(self) -> float:
        """Seconds until the next probe may be sent; 0 unless the circuit is open."""
        return max(0.0, self._open_until - self._clock.monotonic()) if self.state == "open" else 0.0

    def record(self, *, good: bool) -> None:
        """Count the result of a request. Results that arrive after the circuit has opened are ignored."""
        if not self.closed:
            return
        self._failures = 0 if good else self._failures + 1
        window = self._policy.window
        mostly_failed = window is not None and self._record_in(window, good)
        if not good and (mostly_failed or self._failures >= self._policy.failures_in_a_row):
            self._open()

    def start_probe(self) -> bool:
        """Enter half-open and return True if the wait has ended and no other probe is in progress."""
        if self.closed or self._is_probing or self.wait_s > 0:
            return False
        self.state, self._is_probing = "half_open", True
        return True

    def abandon_probe(self) -> None:
        """Allow another probe after one that ended without a result."""
        self._is_probing = False

    def record_probe(self, *, good: bool) -> None:
        """Count the result of a probe: a failure doubles the wait, enough successes close the circuit."""
        self._is_probing = False
        if not good:
            self._wait_s = min(2 * self._wait_s, self._policy.longest_wait_s)
            self._open()
            return
        self._good_probes += 1
        if self._good_probes >= self._policy.probes:
            self._close()

    def adopt(self, state: State, wait_s: float) -> None:
        """Adopt the state of the circuit among several instances. If it is half-open, this instance sends the probe."""
        if state == "closed":
            if not self.closed:
                self._close()
            return
        self.opened += self.closed
        self.state, self._good_probes, self._is_probing = state, 0, state == "half_open"
        self._open_until = self._clock.monotonic() + wait_s
        self.tripped.set()

    def _record_in(self, window: FailureWindow, good: bool) -> bool:
        """Add a result to the window and return True if too large a share of the window failed."""
        now, results = self._clock.monotonic(), self._results
        results.append((now, good))
        if good:
            return False
        while results[0][0] < now - window.length_s:
            results.popleft()
        failed = sum(not each for _, each in results)
        return len(results) >= window.least_calls and failed >= window.failed_share * len(results)

    def _open(self) -> None:
        self.opened += self.closed
        self.state, self._good_probes = "open", 0
        varied = self._wait_s * (1 + self._policy.spread * (2 * self._chance() - 1))
        self._open_until = self._clock.monotonic() + varied
        self.tripped.set()

    def _close(self) -> None:
        self.state, self._wait_s, self._failures = "closed", self._policy.first_wait_s, 0
        self._results.clear()
        self.tripped = anyio.Event()
