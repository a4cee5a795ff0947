"""Predicts calls for slow answers, so that an answer requested at a steady pace is composed shortly before the call.

An answer is slow if its sources may only be queried some seconds apart. Its callers would have to wait for the pacing
of requests, or get a kept answer marked stale although nothing is wrong. Composing ahead of the call costs no extra
request.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

from toolserver.registry.registry import Operation

LEAD_S = 60.0  # seconds before the expected call, or half of the answer's lifetime if that is less
AGAIN_S, TRIES = 12.0, 4  # a partial answer is composed again: some hosts are queried for one source at a time


@dataclass(slots=True)
class _Rhythm:
    """The last call for a slow answer, its distance from the call before, and when the answer was last prepared."""

    operation: Operation
    ttl_s: float
    called_at: float
    interval_s: float | None = None
    prepared_at: float = 0.0
    tries: int = 0

    def expected_soon(self, now: float) -> float | None:
        """Return when the next call is expected, if that is soon and the answer is not prepared yet."""
        if self.interval_s is None or self.tries == TRIES or now - self.prepared_at < AGAIN_S:
            return None
        expected = self.called_at + self.interval_s
        return expected if 0 <= expected - now <= min(LEAD_S, self.ttl_s / 2) else None


class Expected(NamedTuple):
    """A call that is expected soon: its cache key, its operation, and its time (epoch seconds)."""

    key: Hashable
    operation: Operation
    at: float


class CallRhythm:
    """The calls for slow answers to default arguments, by cache key. All times are epoch seconds."""

    def __init__(self) -> None:
        self._rhythms: dict[Hashable, _Rhythm] = {}

    def add(self, key: Hashable, operation: Operation, ttl_s: float, called_at: float) -> None:
        """Record an answer as slow, starting with a call."""
        self._rhythms.setdefault(key, _Rhythm(operation, ttl_s, called_at))

    def note(self, key: Hashable, now: float) -> None:
        """Record a call. Calls within half a lifetime of the answer count as one, because they share its bytes."""
        rhythm = self._rhythms.get(key)
        if rhythm is None:
            return
        if now - rhythm.called_at > rhythm.ttl_s / 2:
            rhythm.interval_s = now - rhythm.called_at
        rhythm.called_at, rhythm.tries = now, 0

    def next_expected(self, now: float) -> Expected | None:
        """Return a call that is expected soon, each up to `TRIES` times because the prepared answer may be partial."""
        for key, rhythm in self._rhythms.items():
            if (at := rhythm.expected_soon(now)) is not None:
                rhythm.prepared_at, rhythm.tries = now, rhythm.tries + 1
                return Expected(key, rhythm.operation, at)
        return None
