"""A circuit per source, and one log line when a source goes down and one when it is back."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from toolserver.errors import SourceDown, SourceError

log = logging.getLogger(__name__)

FAILURES = 3
SHORTEST_S, LONGEST_S = 30.0, 600.0
_NOT_ITS_FAULT = {"budget", "no_key", "licence", "implausible", "breaker_open", "rate_limited"}


@dataclass(slots=True)
class Condition:
    """How a source has been doing. `opens_at` is when an open circuit lets a probe through."""

    failures: int = 0
    open_s: float = 0.0
    opens_at: float = 0.0
    probing: bool = False
    down_since: float | None = None
    last_error: str | None = None
    last_ok: float | None = None
    asked: int = 0
    failed: int = 0


class Health:
    """Three failures in a row open a source's circuit for 30 s, doubling to 10 min; then one probe decides."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self.conditions: dict[str, Condition] = {}

    def of(self, name: str) -> Condition:
        return self.conditions.setdefault(name, Condition())

    def admit(self, name: str) -> None:
        """Let a request through. Raises SourceDown while the circuit is open."""
        condition = self.of(name)
        if condition.open_s == 0:
            return
        left = condition.opens_at - self._monotonic()
        if left > 0 or condition.probing:
            raise SourceDown(f"probe in {max(left, 0):.0f} s", word="breaker_open")
        condition.probing = True

    def succeeded(self, name: str) -> None:
        condition = self.of(name)
        if condition.down_since is not None:
            log.warning("source is back", extra={"source": name})
        condition.failures, condition.open_s, condition.probing = 0, 0.0, False
        condition.down_since, condition.last_error = None, None
        condition.last_ok = self._monotonic()
        condition.asked += 1

    def failed(self, name: str, error: SourceError) -> None:
        """Count a failure. Our own refusals (budget, policy, an open circuit) say nothing about the source."""
        condition = self.of(name)
        condition.probing = False
        if error.word in _NOT_ITS_FAULT:
            return
        now = self._monotonic()
        if condition.down_since is None:
            log.warning("source is down", extra={"source": name, "reason": error.reason})
            condition.down_since = now
        condition.last_error = error.reason
        condition.asked += 1
        condition.failed += 1
        condition.failures += 1
        if condition.failures >= FAILURES or condition.open_s:
            condition.open_s = min(condition.open_s * 2 or SHORTEST_S, LONGEST_S)
            condition.opens_at = now + condition.open_s
