"""Pauses requests to hosts that refuse us: data centres, countries or clients without a browser.

A refusal is not a failure of the upstream: every client at this address gets it, and retrying soon changes nothing. The
first refusal closes a host for a source for an hour, the next one in a row for a day. A host may refuse everyone a
single page, so it is closed to all its sources only after it has refused two of them.
"""

import logging
from typing import NamedTuple

from toolserver.clock import Clock
from toolserver.upstream.source_errors import HostRefused

log = logging.getLogger(__name__)

HOUR_S, DAY_S = 3_600.0, 86_400.0
SEVERAL = 2  # refused sources of a host after which it refuses us, not just a page


class HostRefusal(NamedTuple):
    """The last refusal of a host: its status, its time, and the end of the pause; times in Unix seconds."""

    host: str
    status: int
    seen_at: float
    until: float


class HostRefusals:
    """Remembers each last refusal until a day after its pause. Callers' queries obey refusals but add none."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refusals: dict[str, dict[str, HostRefusal]] = {}  # by host and source

    def admit(self, host: str, source: str) -> None:
        """Admit a source's request to a host. Raise HostRefused while requests to the host are paused."""
        if (refusals := self._refusals.get(host)) is None:
            return
        now = self._clock.time()
        closed = {name: each for name, each in refusals.items() if now < each.until}
        refusal = closed.get(source) or (max(closed.values(), key=_end) if len(closed) >= SEVERAL else None)
        if refusal is not None:
            left_min = (refusal.until - now) / 60
            raise HostRefused(f"{host} answered {refusal.status}; asked again in {left_min:.0f} min", was_sent=False)

    def record(self, host: str, source: str, status: int) -> None:
        """Record that a host refused a source, and pause requests to it: for a day if a refusal is already recorded."""
        now, refusals = self._clock.time(), self._find(host)
        pause_s = DAY_S if source in refusals else HOUR_S
        self._refusals.setdefault(host, {})[source] = HostRefusal(host, status, now, now + pause_s)
        if not refusals:
            log.warning("a host refuses us", extra={"host": host, "status": status, "pause_s": pause_s})

    def forget(self, host: str, source: str) -> None:
        """Forget a refusal, because the host answers the source again."""
        refusals = self._refusals.get(host)
        if refusals is not None and refusals.pop(source, None) is not None and not refusals:
            del self._refusals[host]
            log.warning("a host no longer refuses us", extra={"host": host})

    def list_all(self) -> list[HostRefusal]:
        """Return the recorded refusals by host: of several, the one that lasts longest."""
        return [max(refusals.values(), key=_end) for host in sorted(self._refusals) if (refusals := self._find(host))]

    def list_closed(self) -> list[tuple[str, int, float]]:
        """Return the hosts that are currently paused, each with the status of its refusal and the seconds left."""
        now = self._clock.time()
        return [(each.host, each.status, each.until - now) for each in self.list_all() if now < each.until]

    def _find(self, host: str) -> dict[str, HostRefusal]:
        """Return the refusals of a host, each until a day after its pause."""
        now, refusals = self._clock.time(), self._refusals.get(host, {})
        return {source: each for source, each in refusals.items() if now <= each.until + DAY_S}


def _end(refusal: HostRefusal) -> float:
    return refusal.until
