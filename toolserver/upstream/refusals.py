"""Hosts that refuse us: data centres, countries or clients without a browser. They are left alone for long.

A refusal is no failure of the upstream: everybody who asks from here gets it, and asking again soon changes
nothing. The first one closes a host for an hour, the next one in a row for a day.
"""

import logging
from typing import NamedTuple

from toolserver.clock import Clock
from toolserver.upstream.source_errors import HostRefused

log = logging.getLogger(__name__)

HOUR_S, DAY_S = 3_600.0, 86_400.0


class HostRefusal(NamedTuple):
    """The last refusal of a host: its status, when it was, until when the host is not asked; times in Unix seconds."""

    host: str
    status: int
    seen_at: float
    until: float


class HostRefusals:
    """Remembers each host's last refusal until a day after its pause. Queries of callers obey it and add nothing."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, HostRefusal] = {}

    def admit(self, host: str) -> None:
        """Let a request to a host through. Raises HostRefused while the host is left alone."""
        kept = self._kept.get(host)
        if kept is not None and self._clock.time() < kept.until:
            left_s = kept.until - self._clock.time()
            raise HostRefused(f"{host} answered {kept.status}; asked again in {left_s / 60:.0f} min", asked=False)

    def record(self, host: str, status: int) -> None:
        """Remember that a host refused, and leave it alone: for a day if its last refusal is remembered still."""
        now, known = self._clock.time(), self._find(host)
        pause_s = HOUR_S if known is None else DAY_S
        self._kept[host] = HostRefusal(host, status, now, now + pause_s)
        if known is None:
            log.warning("a host refuses us", extra={"host": host, "status": status, "pause_s": pause_s})

    def forget(self, host: str) -> None:
        """A host answers again."""
        if self._kept.pop(host, None) is not None:
            log.warning("a host no longer refuses us", extra={"host": host})

    def list_all(self) -> list[HostRefusal]:
        """Return what is remembered, by host."""
        return [found for host in sorted(self._kept) if (found := self._find(host)) is not None]

    def _find(self, host: str) -> HostRefusal | None:
        """The refusal of a host, until a day after its pause."""
        kept = self._kept.get(host)
        return kept if kept is not None and self._clock.time() <= kept.until + DAY_S else None
