"""When slow answers are asked for again: what comes at a steady pace is composed shortly before it is expected.

An answer is slow when its sources may be asked only some seconds apart. Its callers would wait for our own pacing, or
be given what is kept, marked stale, although nothing is wrong. Composed ahead of the call it costs no request more.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

from toolserver.registry.registry import Operation

LEAD_S = 60.0  # seconds before the expected call; half of the answer's lifetime where that is less
AGAIN_S, TRIES = 12.0, 4  # what is still partial is composed again: of some hosts, one source comes at a time


@dataclass(slots=True)
class _Rhythm:
    """When a slow answer was last called for, how long after the call before, and when it was prepared for the next."""

    operation: Operation
    ttl_s: float
    called_at: float
    interval_s: float | None = None
    prepared_at: float = 0.0
    tries: int = 0

    def expected_soon(self, now: float) -> float | None:
        """Return when the next call is expected, if that is soon and not provided for."""
        if self.interval_s is None or self.tries == TRIES or now - self.prepared_at < AGAIN_S:
            return None
        expected = self.called_at + self.interval_s
        return expected if 0 <= expected - now <= min(LEAD_S, self.ttl_s / 2) else None


class Expected(NamedTuple):
    """A call that is expected soon: the cache key and the operation, and when (epoch seconds)."""

    key: Hashable
    operation: Operation
    at: float


class CallRhythm:
    """The calls for slow answers to default arguments, by cache key. All times are epoch seconds."""

    def __init__(self) -> None:
        self._rhythms: dict[Hashable, _Rhythm] = {}

    def add(self, key: Hashable, operation: Operation, ttl_s: float, called_at: float) -> None:
        """Remember an answer as slow, from a call on."""
        self._rhythms.setdefault(key, _Rhythm(operation, ttl_s, called_at))

    def note(self, key: Hashable, now: float) -> None:
        """Note a call. Calls within half a lifetime of the answer are one: they share its bytes."""
        rhythm = self._rhythms.get(key)
        if rhythm is None:
            return
        if now - rhythm.called_at > rhythm.ttl_s / 2:
            rhythm.interval_s = now - rhythm.called_at
        rhythm.called_at, rhythm.tries = now, 0

    def next_expected(self, now: float) -> Expected | None:
        """Return one call that is expected soon, each a few times: what is prepared may not be whole yet."""
        for key, rhythm in self._rhythms.items():
            if (at := rhythm.expected_soon(now)) is not None:
                rhythm.prepared_at, rhythm.tries = now, rhythm.tries + 1
                return Expected(key, rhythm.operation, at)
        return None
