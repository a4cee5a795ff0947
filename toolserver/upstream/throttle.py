"""Limits the requests to a group of hosts: how many at once, how far apart, and how many per period.

`HostLane` keeps the state of a host group, and `Throttle` waits. With shared memory,
`SharedLanes` decides over all instances.
"""

import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from typing import NamedTuple

import anyio

from toolserver.clock import Clock
from toolserver.core.shared_memory import SharedMemoryLost
from toolserver.core.waiting_room import WaitCounts, WaitRefused
from toolserver.upstream.fan_out import FanOut, FanOutPart
from toolserver.upstream.host_lane import LONGEST_QUEUE, HostLane, RequestWithheld, Ticket
from toolserver.upstream.shared_lanes import LaneName, SharedLanes
from toolserver.upstream.source import HostGroup, Keys

SHORTEST_CLOSURE_S, LONGEST_CLOSURE_S = 30.0, 3600.0
BUSY_S = 0.1  # how often to check whether other instances have freed a seat
HOLD_S = 1.5  # seconds of waiting because of our own pacing after which a free call gets kept data


class Budget(NamedTuple):
    """The requests left to a host group within its period. `chosen_left` is the part for callers' queries."""

    group: str
    host: str
    total: int
    left: int
    chosen_left: int


class Throttle:
    """Admits requests in turn. A request that would exceed the budget or wait too long is refused at once.

    Each wait for a turn is a block of `while_waiting`, which may end it by an exception.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        keys: Keys,
        shared: SharedLanes | None = None,
        while_waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
        hold_s: float = HOLD_S,
    ) -> None:
        self._clock = clock
        self._keys = keys
        self._shared = shared
        self._while_waiting = while_waiting
        self._hold_s = hold_s
        self._lanes: dict[tuple[str, str], HostLane] = {}

    @asynccontextmanager
    async def turn(
        self,
        group: HostGroup,
        host: str,
        *,
        patience_s: float,
        is_chosen: bool = False,
        held: anyio.Event | None = None,
        part: FanOutPart | None = None,
    ) -> AsyncIterator[None]:
        """Wait up to `patience_s` for a turn to send one request, and hold it while the block runs.

        `held` is set as soon as it is clear that the wait will take longer than HOLD_S. With a
        `part`, the request gets its turn together with those of other parts of the fan-out
        that want to send to the same host.

        Raises:
            RequestWithheld: the host asked us to wait, the budget is used up, or the turn would come too late.
        """
        name, lane = _name(group, host), self._lane(group, host)
        lane.is_alone = self._shared is not None and self._shared.is_lost
        self._refuse_when_closed(lane, is_chosen=is_chosen)
        fan_out = None if part is None else part.fan_out
        ticket = lane.join(fan_out, is_chosen=is_chosen, held=held)
        if part is not None:
            part.settle()
        waiting = _Waiting(
            name,
            lane,
            ticket,
            patience_s=patience_s,
            hold_s=self._hold_s,
            token="" if self._shared is None else secrets.token_hex(8),
        )
        try:
            if is_chosen:
                try:
                    async with lane.room.wait():
                        await self._line_up(waiting, group, fan_out)
                except WaitRefused:
                    raise RequestWithheld(f"{group.name} is busy") from None
            else:
                await self._line_up(waiting, group, fan_out)
            try:
                yield
            finally:
                lane.leave(ticket)
        finally:
            lane.withdraw(ticket)
            if self._shared is not None and waiting.has_seat:
                self._shared.leave(name, waiting.token)

    def close(self, group: HostGroup, host: str, seconds: float | None, *, is_chosen: bool = False) -> None:
        """Refuse requests for the time that the host requested: at least 30 s (also if it named none), at most an hour.

        A limit caused by a caller's query applies only to callers' queries. If the host means
        all requests, the next default one will show it.
        """
        wait = min(max(seconds or SHORTEST_CLOSURE_S, SHORTEST_CLOSURE_S), LONGEST_CLOSURE_S)
        self._lane(group, host).close(self._clock.monotonic() + wait, is_chosen=is_chosen)
        if self._shared is not None:
            self._shared.close(_name(group, host), wait, is_chosen=is_chosen)

    def list_budgets(self) -> list[Budget]:
        """Return the remaining budget of each host queried so far."""
        now = self._clock.monotonic()
        return [
            Budget(group, host, lane.budget, lane.count_left(now), lane.count_chosen_left(now))
            for (group, host), lane in self._lanes.items()
        ]

    def count_waits(self) -> WaitCounts:
        """Return how many callers' queries wait for their turn, over all hosts, and how many were refused."""
        rooms = [lane.room for lane in self._lanes.values()]
        refused = sum((room.refused for room in rooms), Counter[str]())
        return WaitCounts("upstream", sum(map(len, rooms)), LONGEST_QUEUE * len(rooms), dict(refused))

    async def _line_up(self, waiting: "_Waiting", group: HostGroup, fan_out: FanOut | None) -> None:
        """Wait for the other parts of the fan-out, and then with them for a turn. Raises RequestWithheld."""
        if fan_out is not None:
            await fan_out.gather()
        waiting.lane.enqueue(waiting.ticket.unit)
        await self._wait(waiting, group)

    async def _wait(self, waiting: "_Waiting", group: HostGroup) -> None:
        """Wait for this request's turn and take it. Raise RequestWithheld for all requests of the unit."""
        lane, unit = waiting.lane, waiting.ticket.unit
        try:
            if not unit.turns:
                self._refuse_hopeless(waiting, group)
            await self._wait_for_turn(waiting, group)
        except RequestWithheld as refusal:
            if not unit.turns:
                lane.refuse(unit, refusal)
            raise

    def _refuse_hopeless(self, waiting: "_Waiting", group: HostGroup) -> None:
        lane, unit, now = waiting.lane, waiting.ticket.unit, self._clock.monotonic()
        if unit.refusal is not None:
            raise unit.refusal.repeat()
        if not lane.has_budget(unit, now, waiting=True):
            raise RequestWithheld(f"{lane.budget} per {lane.period_s:g} s")
        if (wait_s := lane.foresee_wait(unit, now)) > waiting.left_s:
            raise RequestWithheld(f"{group.name}: next turn in {wait_s:.0f} s")
        if wait_s > self._hold_s:
            waiting.ticket.held.set()

    async def _wait_for_turn(self, waiting: "_Waiting", group: HostGroup) -> None:
        lane, ticket = waiting.lane, waiting.ticket
        unit = ticket.unit
        while True:
            if unit.refusal is not None:
                raise unit.refusal.repeat()
            now, next_at = self._clock.monotonic(), 0.0
            if not unit.turns:
                next_at = lane.next_at(lane.size_of(unit), now)
            if not lane.is_next(ticket):
                with self._while_waiting():
                    await waiting.wait_for_change(group)
            elif next_at > now:
                with self._while_waiting():
                    await self._clock.sleep(next_at - now)
            elif await self._may_go(waiting, group):
                break
        now = self._clock.monotonic()
        self._refuse_when_closed(lane, is_chosen=ticket.is_chosen)
        if not unit.turns and not lane.has_budget(unit, now, waiting=False):
            raise RequestWithheld(f"{lane.budget} per {lane.period_s:g} s")
        lane.take(ticket, now)

    async def _may_go(self, waiting: "_Waiting", group: HostGroup) -> bool:
        """Return True if all instances together allow the request now, or False after a part of the wait.

        Raises:
            RequestWithheld: they do not allow it, or not in time.
        """
        if self._shared is None or waiting.has_seat:
            return True
        lane, unit = waiting.lane, waiting.ticket.unit
        count = 0 if unit.turns else lane.size_of(unit)
        try:
            turn = await self._shared.take(waiting.name, lane, waiting.token, count=count, is_chosen=unit.is_chosen)
        except SharedMemoryLost:
            lane.is_alone = True
            return True
        lane.is_alone = False
        if turn.word == "spent":
            raise RequestWithheld(f"{lane.budget} per {lane.period_s:g} s")
        if turn.word == "closed":
            raise RequestWithheld(f"closed for {turn.wait_s:.0f} s", word="rate_limited", retry_after_s=turn.wait_s)
        waiting.has_seat = turn.word == "go"
        if not waiting.has_seat:
            with self._while_waiting():
                await waiting.sleep(turn.wait_s or BUSY_S, group)
        return waiting.has_seat

    def _refuse_when_closed(self, lane: HostLane, *, is_chosen: bool) -> None:
        left = lane.closed_until(is_chosen=is_chosen) - self._clock.monotonic()
        if left > 0:
            raise RequestWithheld(f"closed for {left:.0f} s", word="rate_limited", retry_after_s=left)

    def _lane(self, group: HostGroup, host: str) -> HostLane:
        name = _name(group, host)
        lane = self._lanes.get(name)
        if lane is None:
            keyed = group.key is not None and group.key in self._keys
            gap = group.keyed_gap_s if keyed and group.keyed_gap_s is not None else group.gap_s
            budget = group.keyed_budget if keyed and group.keyed_budget else group.budget
            instances = 1 if self._shared is None else self._shared.instances
            lane = self._lanes[name] = HostLane(
                group.parallel, gap, budget, group.period_s, group.reserve, instances, group.burst
            )
        return lane


class _Waiting:
    """One request in a queue, and how much longer it may wait. Its `token` is for the queue of all instances."""

    def __init__(
        self, name: LaneName, lane: HostLane, ticket: Ticket, *, patience_s: float, hold_s: float, token: str
    ) -> None:
        self.name, self.lane, self.ticket, self.held = name, lane, ticket, ticket.held
        self.token, self.has_seat = token, False
        self.left_s, self._waited_s, self._hold_s = patience_s, 0.0, hold_s

    async def sleep(self, seconds: float, group: HostGroup) -> None:
        """Wait `seconds` for other instances. Raise RequestWithheld if that exceeds the request's patience."""
        if seconds > self.left_s:
            raise RequestWithheld(f"{group.name}: next turn in {seconds:.0f} s")
        if self._waited_s + seconds > self._hold_s:
            self.held.set()
        self.left_s, self._waited_s = self.left_s - seconds, self._waited_s + seconds
        await anyio.sleep(seconds)

    async def wait_for_change(self, group: HostGroup) -> None:
        """Wait until the lane has changed. Raise RequestWithheld when the request's patience has run out."""
        changed, began = self.lane.changed, anyio.current_time()
        with anyio.move_on_after(self.left_s):
            with anyio.move_on_after(max(0.0, self._hold_s - self._waited_s)):
                await changed.wait()
            if not changed.is_set():
                self.held.set()
                await changed.wait()
        waited_s = anyio.current_time() - began
        self.left_s, self._waited_s = self.left_s - waited_s, self._waited_s + waited_s
        if not changed.is_set():
            raise RequestWithheld(f"{group.name} is busy")


def _name(group: HostGroup, host: str) -> LaneName:
    return group.name, host if group.each_host else ""
