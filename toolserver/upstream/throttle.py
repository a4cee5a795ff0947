"""Limits the requests to a group of hosts: how many at once, how far apart, and how many per period.

There are two lanes. Queries that callers choose (coordinates, names, addresses) wait behind
all others, use at most a share of the budget, never take the last seat, and have a bounded
queue. Callers therefore cannot use up what the answers to default arguments need.

After a pause a host gets a burst of requests without a distance. The requests that one composition sends to a host at
the same time are one unit: they get their turns together or not at all, so that no answer is partly new because another
composition came in between.

`HostLane` keeps the state of a host group, and `Throttle` waits. With shared memory, `SharedLanes` decides over all
instances: its script repeats the rules of `HostLane`, and the seat of a dead instance becomes free after a while.
"""

import secrets
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import anyio
from msgspec.msgpack import encode

from toolserver.clock import Clock
from toolserver.core.shared_memory import Script, SharedMemory, SharedMemoryLost, hash_name
from toolserver.upstream.fan_out import FanOut, FanOutPart
from toolserver.upstream.shared_clock import AHEAD, READ_NOW, SharedClock
from toolserver.upstream.source import HostGroup, Keys, SourceLimited

SHORTEST_CLOSURE_S, LONGEST_CLOSURE_S = 30.0, 3600.0
BUSY_S = 0.1  # how often to check whether other instances have freed a seat
HOLD_S = 1.5  # seconds of waiting because of our own pacing after which a free call gets kept data
LONGEST_QUEUE = 32  # callers' queries that may wait at the same time
BURST = 0.25  # the part of the callers' share that may be used at once; it is refilled evenly over the period
SEAT_S = 20.0  # longer than nearly all exchanges; after this an unreleased seat is free

TURN = Script(
    """
-- Keys: how far clocks are ahead, times of requests, the lane, seats, seats of callers' queries.
-- Takes `count` turns and a seat, or only a seat if the request's unit has its turns already.
-- Returns {what, microseconds}: "go", "wait" so long, "busy", "spent", or "closed" for so long.
local asked = cmsgpack.unpack(ARGV[1])
"""
    + READ_NOW
    + """
local function left(word, seconds) return {word, math.max(1, math.ceil(seconds * 1e6))} end
local lane = redis.call('HMGET', KEYS[3], 'due', 'full', 'closed', 'closed_chosen')
local closed = tonumber(lane[asked.chosen and 4 or 3] or 0)
if closed > now then return left('closed', closed - now) end
while tonumber(redis.call('LINDEX', KEYS[2], 0) or now) <= now - asked.period do redis.call('LPOP', KEYS[2]) end
if asked.count > 0 and redis.call('LLEN', KEYS[2]) + asked.count > asked.budget then return {'spent', 0} end
local full = math.max(tonumber(lane[2] or 0), now)
local is_shared = asked.chosen and asked.interval > 0 and asked.count > 0
local filled = full + asked.count * asked.interval
if is_shared and filled - now > asked.burst * asked.interval + 1e-6 then return {'spent', 0} end
for _, seats in ipairs({KEYS[4], KEYS[5]}) do redis.call('ZREMRANGEBYSCORE', seats, '-inf', now) end
if redis.call('ZCARD', KEYS[4]) >= asked.seats then return {'busy', 0} end
if asked.chosen and redis.call('ZCARD', KEYS[5]) >= asked.chosen_seats then return {'busy', 0} end
if asked.count > 0 then
  local due = math.max(tonumber(lane[1] or 0), now) + asked.count * asked.gap
  local next_at = due - asked.at_once * asked.gap
  if next_at > now + 1e-6 then return left('wait', next_at - now) end
  local ms = math.ceil((asked.period + asked.at_once * asked.gap) * 1000) + 1000
  for _ = 1, asked.count do redis.call('RPUSH', KEYS[2], string.format('%.6f', now)) end
  redis.call('PEXPIRE', KEYS[2], ms)
  redis.call('HSET', KEYS[3], 'due', string.format('%.6f', due))
  if is_shared then redis.call('HSET', KEYS[3], 'full', string.format('%.6f', filled)) end
  redis.call('PEXPIRE', KEYS[3], math.max(ms, redis.call('PTTL', KEYS[3])))
end
for i = 4, asked.chosen and 5 or 4 do
  redis.call('ZADD', KEYS[i], string.format('%.6f', now + asked.seat), asked.token)
  redis.call('PEXPIRE', KEYS[i], math.ceil(asked.seat * 1000))
end
return {'go', 0}
"""
)
LEAVE = Script("for _, seats in ipairs(KEYS) do redis.call('ZREM', seats, ARGV[1]) end")
CLOSE = Script(
    """
-- Keys: how far clocks are ahead, the lane. A shorter time never ends a longer one.
local asked = cmsgpack.unpack(ARGV[1])
"""
    + READ_NOW
    + """
for _, name in ipairs(asked.names) do
  local known = tonumber(redis.call('HGET', KEYS[2], name) or 0)
  if known < now + asked.seconds then redis.call('HSET', KEYS[2], name, string.format('%.6f', now + asked.seconds)) end
end
redis.call('PEXPIRE', KEYS[2], math.max(math.ceil(asked.seconds * 1000), redis.call('PTTL', KEYS[2])))
"""
)

LaneName = tuple[str, str]
"""A host group, and a host in it if each has its own lane."""


class RequestWithheld(SourceLimited):
    """We did not send the request: the budget is used up, its turn is too far away, or the host asked us to wait."""

    word = "budget"
    was_sent = False

    def repeat(self) -> "RequestWithheld":
        """Return the same error for another request."""
        return RequestWithheld(str(self), word=self.word, retry_after_s=self.retry_after_s)


class Budget(NamedTuple):
    """The requests left to a host group within its period. `chosen_left` is the part for callers' queries."""

    group: str
    host: str
    total: int
    left: int
    chosen_left: int


@dataclass(slots=True, eq=False)
class Unit:
    """The requests that get their turns together: those of one fan-out, or a single one.

    `waiting` are those without a seat, `turns` is how many of them have their turn. `refusal` is the reason for all.
    """

    is_chosen: bool
    fan_out: FanOut | None = None
    waiting: "list[Ticket]" = field(default_factory=list)
    turns: int = 0
    refusal: RequestWithheld | None = None

    def add(self, held: anyio.Event | None = None) -> "Ticket":
        """Add a request. `held` is set when it has to wait for long."""
        self.waiting.append(ticket := Ticket(self, held or anyio.Event()))
        return ticket


@dataclass(frozen=True, slots=True, eq=False)
class Ticket:
    """One request that waits or is running."""

    unit: Unit
    held: anyio.Event

    @property
    def is_chosen(self) -> bool:
        """True if a caller's argument decided the query."""
        return self.unit.is_chosen


class ChosenShare:
    """The part of a budget for callers' queries: at most `share` within a period, with bounded bursts."""

    def __init__(self, share: int, period_s: float) -> None:
        self.most = max(1.0, share * BURST)
        self._per_s = max(share - self.most, 1.0) / period_s
        self._left, self._counted_at = self.most, 0.0

    @property
    def interval_s(self) -> float:
        """The seconds after which one more request may be sent."""
        return 1 / self._per_s

    def count_left(self, now: float) -> float:
        """Return how many requests may be sent at once; `now` is monotonic, in seconds."""
        self._left = min(self.most, self._left + (now - self._counted_at) * self._per_s)
        self._counted_at = now
        return self._left

    def take(self, count: int, now: float) -> None:
        self._left = self.count_left(now) - count


class HostLane:
    """Seats, distances and budgets of a lane. Callers' queries come after all others and leave one seat free.

    `due` is the time at which the host has got all its requests if they had been `gap_s` apart; a burst is ahead of it.

    While `is_alone` is set, this is one of several `instances` without contact, and it uses its share.
    """

    def __init__(
        self,
        parallel: int,
        gap_s: float,
        budget: int,
        period_s: float,
        reserve: float,
        instances: int = 1,
        burst: int = 1,
    ) -> None:
        self.budget, self.period_s, self._all_gap_s, self._all_burst = budget, period_s, gap_s, burst
        self.is_alone, self._instances = False, instances
        self._own_budget = max(1, budget // instances)
        self._own_period_s = period_s if budget >= instances else period_s * instances / budget
        self._due = 0.0
        self._gathering: dict[tuple[FanOut, bool], Unit] = {}
        self.changed = anyio.Event()
        self._seats = {False: parallel, True: parallel if reserve == 0 else max(1, parallel - 1)}
        self._under_way: list[Ticket] = []
        self._queues: dict[bool, deque[Unit]] = {False: deque(), True: deque()}
        self._sent: deque[float] = deque()
        self._chosen = None if reserve == 0 else ChosenShare(int(budget * (1 - reserve)), period_s)
        self._own_chosen = ChosenShare(int(self._own_budget * (1 - reserve)), self._own_period_s)
        self._closed_until = {False: 0.0, True: 0.0}

    @property
    def terms(self) -> dict[str, object]:
        """Return the limits that all instances together obey, for the script that decides for them."""
        chosen = self._chosen
        return {
            "budget": self.budget,
            "period": self.period_s,
            "gap": self._all_gap_s,
            "at_once": self._all_burst,
            "seats": self._seats[False],
            "chosen_seats": self._seats[True],
            "interval": chosen.interval_s if chosen else 0,
            "burst": chosen.most if chosen else 0,
        }

    @property
    def is_crowded(self) -> bool:
        """Return True if too many callers' queries are already waiting."""
        return self._count_waiting(self._queues[True]) >= LONGEST_QUEUE

    @property
    def _gap_s(self) -> float:
        return self._all_gap_s * (self._instances if self.is_alone else 1)

    @property
    def _burst(self) -> int:
        return max(1, self._all_burst // self._instances) if self.is_alone else self._all_burst

    def join(self, fan_out: FanOut | None, *, is_chosen: bool, held: anyio.Event | None = None) -> Ticket:
        """Add a request to the unit of its fan-out that is still being gathered, or to a new one."""
        if fan_out is None:
            return Unit(is_chosen).add(held)
        return self._gathering.setdefault((fan_out, is_chosen), Unit(is_chosen, fan_out)).add(held)

    def enqueue(self, unit: Unit) -> None:
        """Let a unit wait for its turns. Requests that come later are in another unit."""
        self._end_gathering(unit)
        if unit not in self._queues[unit.is_chosen]:
            self._queues[unit.is_chosen].append(unit)

    def withdraw(self, ticket: Ticket) -> None:
        """Forget a request that no longer waits."""
        unit = ticket.unit
        if ticket in unit.waiting:
            unit.waiting.remove(ticket)
            unit.turns = min(unit.turns, len(unit.waiting))
        self._drop_if_done(unit)
        self._tell()

    def refuse(self, unit: Unit, refusal: RequestWithheld) -> None:
        """Refuse all requests of a unit."""
        unit.refusal = refusal
        self._tell()

    def size_of(self, unit: Unit) -> int:
        """Return how many turns a unit gets together: all that it needs, or as many as are ever given at once."""
        budget = self._own_budget if self.is_alone else self.budget
        most = min(self._burst, budget) if self._gap_s else budget
        share = self._own_chosen if self.is_alone else self._chosen
        if unit.is_chosen and share is not None:
            most = min(most, int(share.most))
        return min(len(unit.waiting) - unit.turns, max(1, most))

    def is_next(self, ticket: Ticket) -> bool:
        """Return True if a request is first in its queue, no other queue precedes it, and a seat is free."""
        queue, unit = self._queues[ticket.is_chosen], ticket.unit
        if not queue or queue[0] is not unit or unit.waiting[0] is not ticket:
            return False
        if len(self._under_way) >= self._seats[False]:
            return False
        if not ticket.is_chosen:
            return True
        chosen = sum(each.is_chosen for each in self._under_way)
        return not self._queues[False] and chosen < self._seats[True]

    def next_at(self, count: int, now: float) -> float:
        """Return the time at which so many requests may be sent together, judging only by their distances."""
        return max(self._due, now) + (count - self._burst) * self._gap_s

    def foresee_wait(self, unit: Unit, now: float) -> float:
        """Return the minimum seconds until a unit has all its turns, judging only by the distances between requests."""
        ahead = list(self._queues[False]) + (list(self._queues[True]) if unit.is_chosen else [])
        before = ahead[: ahead.index(unit)] if unit in ahead else ahead
        count = sum(len(each.waiting) - each.turns for each in [*before, unit])
        return max(0.0, self.next_at(count, now) - now)

    def has_budget(self, unit: Unit, now: float, *, waiting: bool) -> bool:
        """Return True if a unit fits the budgets, counting the other waiting requests if `waiting` is set."""
        queued = {
            lane: self._count_waiting(each for each in queue if each is not unit) if waiting else 0
            for lane, queue in self._queues.items()
        }
        size = self.size_of(unit)
        if unit.is_chosen and self.count_chosen_left(now) < size + queued[True]:
            return False
        if waiting:
            size = min(len(unit.waiting) - unit.turns, self._own_budget if self.is_alone else self.budget)
        return self.count_left(now) >= size + queued[False]

    def take(self, ticket: Ticket, now: float) -> None:
        """Admit a request; if its unit has no turns left, after taking turns for the unit."""
        unit = ticket.unit
        if not unit.turns:
            unit.turns = count = self.size_of(unit)
            self._due = max(self._due, now) + count * self._gap_s
            self._sent.extend([now] * count)
            if unit.is_chosen and self._chosen is not None:
                self._chosen.take(count, now)
                self._own_chosen.take(count, now)
        unit.turns -= 1
        unit.waiting.remove(ticket)
        self._drop_if_done(unit)
        self._under_way.append(ticket)
        self._tell()

    def leave(self, ticket: Ticket) -> None:
        """Free the seat of a request that has ended."""
        self._under_way.remove(ticket)
        self._tell()

    def close(self, until: float, *, is_chosen: bool) -> None:
        """Refuse requests until a time: callers' queries only, or all."""
        for lane in {True, is_chosen}:
            self._closed_until[lane] = max(self._closed_until[lane], until)

    def closed_until(self, *, is_chosen: bool) -> float:
        return self._closed_until[is_chosen]

    def count_left(self, now: float) -> int:
        """Return how many requests of the budget are left."""
        while self._sent and self._sent[0] <= now - self._own_period_s:
            self._sent.popleft()
        if self.is_alone:
            return self._own_budget - len(self._sent)
        is_longer = self._own_period_s > self.period_s
        return self.budget - (sum(at > now - self.period_s for at in self._sent) if is_longer else len(self._sent))

    def count_chosen_left(self, now: float) -> int:
        """Return how many callers' queries may be sent at once."""
        left = self.count_left(now)
        if self._chosen is None:
            return left
        share = self._own_chosen if self.is_alone else self._chosen
        return min(left, int(share.count_left(now) + 1e-9))

    @staticmethod
    def _count_waiting(units: Iterable[Unit]) -> int:
        """Return how many requests of the units wait without a turn."""
        return sum(len(unit.waiting) - unit.turns for unit in units)

    def _drop_if_done(self, unit: Unit) -> None:
        if unit.waiting:
            return
        self._end_gathering(unit)
        if unit in self._queues[unit.is_chosen]:
            self._queues[unit.is_chosen].remove(unit)

    def _end_gathering(self, unit: Unit) -> None:
        if unit.fan_out is not None and self._gathering.get((unit.fan_out, unit.is_chosen)) is unit:
            del self._gathering[unit.fan_out, unit.is_chosen]

    def _tell(self) -> None:
        self.changed.set()
        self.changed = anyio.Event()


class LaneVerdict(NamedTuple):
    """The verdict of all instances together: go, try again after `wait_s`, or refused for now."""

    word: Literal["go", "wait", "busy", "spent", "closed"]
    wait_s: float


class SharedLanes:
    """The lanes of all instances. While the memory is lost, budgets are divided by `instances`."""

    def __init__(self, memory: SharedMemory, clock: Clock) -> None:
        self._memory, self._clock = memory, SharedClock(clock)
        self.instances = memory.instances

    @property
    def is_lost(self) -> bool:
        """True while each instance has to use its own share."""
        return self._memory.is_lost

    async def take(self, name: LaneName, lane: HostLane, token: str, *, count: int, is_chosen: bool) -> LaneVerdict:
        """Take `count` turns and a seat for a request, identified by a token, or return why there is none.

        Raises:
            SharedMemoryLost: each instance has to decide on its own.
        """
        terms = lane.terms | {"token": token, "count": count, "chosen": is_chosen, "seat": SEAT_S}
        terms = self._clock.date(terms)
        word, wait_us = await self._memory.run(TURN, _keys(name), [encode(terms)])
        return LaneVerdict(word.decode(), wait_us / 1e6)

    def leave(self, name: LaneName, token: str) -> None:
        """Free the seat of a request that has ended."""
        self._memory.send(LEAVE, _keys(name)[3:], [token.encode()])

    def close(self, name: LaneName, seconds: float, *, is_chosen: bool) -> None:
        """Refuse requests of all instances for `seconds`: callers' queries only, or all."""
        names = ["closed_chosen"] if is_chosen else ["closed", "closed_chosen"]
        keys = _keys(name)
        self._memory.send(CLOSE, [keys[0], keys[2]], [encode(self._clock.date({"seconds": seconds, "names": names}))])


class Throttle:
    """Admits requests in turn. A request that would exceed the budget or wait too long is refused at once."""

    def __init__(self, *, clock: Clock, keys: Keys, shared: SharedLanes | None = None) -> None:
        self._clock, self._keys, self._shared = clock, keys, shared
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

        `held` is set as soon as it is clear that the wait will take longer than HOLD_S. With a `part`, the request
        gets its turn together with those of other parts of the fan-out that want to send to the same host.

        Raises:
            RequestWithheld: the host asked us to wait, the budget is used up, or the turn would come too late.
        """
        name, lane = _name(group, host), self._lane(group, host)
        lane.is_alone = self._shared is not None and self._shared.is_lost
        self._refuse_when_closed(lane, is_chosen=is_chosen)
        if is_chosen and lane.is_crowded:
            raise RequestWithheld(f"{group.name} is busy")
        fan_out = None if part is None else part.fan_out
        ticket = lane.join(fan_out, is_chosen=is_chosen, held=held)
        if part is not None:
            part.settle()
        waiting = _Waiting(name, lane, ticket, patience_s)
        try:
            if fan_out is not None:
                await fan_out.gather()
            lane.enqueue(ticket.unit)
            await self._wait(waiting, group)
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
        if wait_s > HOLD_S:
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
                await waiting.wait_for_change(group)
            elif next_at > now:
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
    """One request in a queue, and how much longer it may wait."""

    def __init__(self, name: LaneName, lane: HostLane, ticket: Ticket, patience_s: float) -> None:
        self.name, self.lane, self.ticket, self.held = name, lane, ticket, ticket.held
        self.token, self.has_seat = secrets.token_hex(8), False  # among all instances
        self.left_s, self._waited_s = patience_s, 0.0

    async def sleep(self, seconds: float, group: HostGroup) -> None:
        """Wait `seconds` for other instances. Raise RequestWithheld if that exceeds the request's patience."""
        if seconds > self.left_s:
            raise RequestWithheld(f"{group.name}: next turn in {seconds:.0f} s")
        if self._waited_s + seconds > HOLD_S:
            self.held.set()
        self.left_s, self._waited_s = self.left_s - seconds, self._waited_s + seconds
        await anyio.sleep(seconds)

    async def wait_for_change(self, group: HostGroup) -> None:
        """Wait until the lane has changed. Raise RequestWithheld when the request's patience has run out."""
        changed, began = self.lane.changed, anyio.current_time()
        with anyio.move_on_after(self.left_s):
            with anyio.move_on_after(max(0.0, HOLD_S - self._waited_s)):
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


def _keys(name: LaneName) -> list[bytes]:
    hashed = hash_name(" ".join(name))
    return [AHEAD, *(b"lane:" + hashed + part for part in (b":sent", b"", b":seats", b":chosen"))]
