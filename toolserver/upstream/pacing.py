"""Politeness: how many requests to a group of hosts run at once, how far apart, and how many per period."""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

from toolserver.clock import Clock
from toolserver.errors import SourceLimited
from toolserver.upstream.source import HostGroup, Keys

SHORTEST_CLOSURE_S, LONGEST_CLOSURE_S = 30.0, 3600.0


@dataclass(slots=True)
class _Lane:
    """The state of one group, or of one host of a group that counts per host."""

    seats: anyio.CapacityLimiter
    gap_s: float
    budget: int
    period_s: float
    next_at: float = 0.0
    closed_until: float = 0.0
    sent: deque[float] = field(default_factory=deque)


class Pacer:
    """Lets requests through one by one; one that would be over budget or too late is refused, not queued for ever."""

    def __init__(self, *, clock: Clock, keys: Keys) -> None:
        self._clock, self._keys = clock, keys
        self._lanes: dict[tuple[str, str], _Lane] = {}

    @asynccontextmanager
    async def turn(self, group: HostGroup, host: str, *, patience_s: float) -> AsyncIterator[None]:
        """A turn to send one request.

        Raises:
            SourceLimited: the host asked us to stay away, the budget is used up, or the turn comes too late.
        """
        lane = self._lane(group, host)
        self._refuse_when_closed(lane)
        try:
            with anyio.fail_after(patience_s):
                await lane.seats.acquire_on_behalf_of(turn := object())
        except TimeoutError:
            raise SourceLimited(f"{group.name} is busy", word="budget") from None
        try:
            await self._wait_for_gap(lane, group, patience_s)
            yield
        finally:
            lane.seats.release_on_behalf_of(turn)

    def close(self, group: HostGroup, host: str, seconds: float | None) -> None:
        """The host said "later": stay away for what it said, within 30 s and an hour."""
        wait = min(max(seconds or SHORTEST_CLOSURE_S, SHORTEST_CLOSURE_S), LONGEST_CLOSURE_S)
        lane = self._lane(group, host)
        lane.closed_until = max(lane.closed_until, self._clock.monotonic() + wait)

    async def _wait_for_gap(self, lane: _Lane, group: HostGroup, patience_s: float) -> None:
        self._refuse_when_closed(lane)
        now = self._clock.monotonic()
        while lane.sent and lane.sent[0] <= now - lane.period_s:
            lane.sent.popleft()
        if len(lane.sent) >= lane.budget:
            raise SourceLimited(f"{lane.budget} per {lane.period_s:g} s", word="budget")
        start = max(now, lane.next_at)
        if start - now > patience_s:
            raise SourceLimited(f"{group.name}: next turn in {start - now:.0f} s", word="budget")
        lane.next_at = start + lane.gap_s
        lane.sent.append(start)
        if start > now:
            await self._clock.sleep(start - now)

    def _refuse_when_closed(self, lane: _Lane) -> None:
        left = lane.closed_until - self._clock.monotonic()
        if left > 0:
            raise SourceLimited(f"closed for {left:.0f} s", retry_after_s=left)

    def _lane(self, group: HostGroup, host: str) -> _Lane:
        name = (group.name, host if group.each_host else "")
        lane = self._lanes.get(name)
        if lane is None:
            keyed = group.key is not None and group.key in self._keys
            gap = group.keyed_gap_s if keyed and group.keyed_gap_s is not None else group.gap_s
            budget = group.keyed_budget if keyed and group.keyed_budget else group.budget
            lane = self._lanes[name] = _Lane(anyio.CapacityLimiter(group.parallel), gap, budget, group.period_s)
        return lane
