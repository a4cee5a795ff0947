"""Limits the requests to a group of hosts: how many at once, how far apart, and how many per period.

There are two lanes. Queries that callers choose (coordinates, names, addresses) wait behind
all others, use at most a share of the budget, never take the last seat, and have a bounded
queue. Callers therefore cannot use up what the answers to default arguments need.

`HostLane` keeps the state of a host group, and `Throttle` waits. With shared memory, `SharedLanes` decides over all
instances: its script repeats the rules of `HostLane`, and the seat of a dead instance becomes free after a while.
"""

import secrets
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal, NamedTuple

import anyio
from msgspec.msgpack import encode

from toolserver.clock import Clock
from toolserver.core.shared_memory import Script, SharedMemory, SharedMemoryLost, hash_name
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
-- Returns {what, microseconds}: "go", "wait" so long, "busy", "spent", or "closed" for so long.
local asked = cmsgpack.unpack(ARGV[1])
"""
    + READ_NOW
    + """
local function left(word, seconds) return {word, math.max(1, math.ceil(seconds * 1e6))} end
local lane = redis.call('HMGET', KEYS[3], 'next', 'full', 'closed', 'closed_chosen')
local closed = tonumber(lane[asked.chosen and 4 or 3] or 0)
if closed > now then return left('closed', closed - now) end
while tonumber(redis.call('LINDEX', KEYS[2], 0) or now) <= now - asked.period do redis.call('LPOP', KEYS[2]) end
if redis.call('LLEN', KEYS[2]) >= asked.budget then return {'spent', 0} end
local full = math.max(tonumber(lane[2] or 0), now)
local is_shared = asked.chosen and asked.interval > 0
if is_shared and full + asked.interval - now > asked.burst * asked.interval + 1e-6 then return {'spent', 0} end
for _, seats in ipairs({KEYS[4], KEYS[5]}) do redis.call('ZREMRANGEBYSCORE', seats, '-inf', now) end
if redis.call('ZCARD', KEYS[4]) >= asked.seats then return {'busy', 0} end
if asked.chosen and redis.call('ZCARD', KEYS[5]) >= asked.chosen_seats then return {'busy', 0} end
local next_at = tonumber(lane[1] or 0)
if next_at > now then return left('wait', next_at - now) end
local ms = math.ceil((asked.period + asked.gap) * 1000) + 1000
redis.call('RPUSH', KEYS[2], string.format('%.6f', now))
redis.call('PEXPIRE', KEYS[2], ms)
redis.call('HSET', KEYS[3], 'next', string.format('%.6f', now + asked.gap))
if is_shared then redis.call('HSET', KEYS[3], 'full', string.format('%.6f', full + asked.interval)) end
redis.call('PEXPIRE', KEYS[3], math.max(ms, redis.call('PTTL', KEYS[3])))
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


class Budget(NamedTuple):
    """The requests left to a host group within its period. `chosen_left` is the part for callers' queries."""

    group: str
    host: str
    total: int
    left: int
    chosen_left: int


@dataclass(frozen=True, slots=True, eq=False)
class Ticket:
    """One request that waits or is running. `is_chosen` says that a caller's argument decided the query."""

    is_chosen: bool


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

    def take(self, now: float) -> None:
        self._left = self.count_left(now) - 1


class HostLane:
    """Seats, distances and budgets of a lane. Callers' queries come after all others and leave one seat free.

    While `is_alone` is set, this is one of several `instances` without contact, and it uses its share.
    """

    def __init__(
        self, parallel: int, gap_s: float, budget: int, period_s: float, reserve: float, instances: int = 1
    ) -> None:
        self.budget, self.period_s, self._gap_s = budget, period_s, gap_s
        self.is_alone, self._instances = False, instances
        self._own_budget = max(1, budget // instances)
        self._own_period_s = period_s if budget >= instances else period_s * instances / budget
        self.next_at = 0.0
        self.changed = anyio.Event()
        self._seats = {False: parallel, True: parallel if reserve == 0 else max(1, parallel - 1)}
        self._under_way: list[Ticket] = []
        self._queues: dict[bool, deque[Ticket]] = {False: deque(), True: deque()}
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
            "gap": self._gap_s,
            "seats": self._seats[False],
            "chosen_seats": self._seats[True],
            "interval": chosen.interval_s if chosen else 0,
            "burst": chosen.most if chosen else 0,
        }

    @property
    def is_crowded(self) -> bool:
        """Return True if too many callers' queries are already waiting."""
        return len(self._queues[True]) >= LONGEST_QUEUE

    def enqueue(self, ticket: Ticket) -> None:
        self._queues[ticket.is_chosen].append(ticket)

    def withdraw(self, ticket: Ticket) -> None:
        """Forget a request that no longer waits."""
        if ticket in self._queues[ticket.is_chosen]:
            self._queues[ticket.is_chosen].remove(ticket)
        self._tell()

    def is_next(self, ticket: Ticket) -> bool:
        """Return True if a request is first in its queue, no other queue precedes it, and a seat is free."""
        queue = self._queues[ticket.is_chosen]
        if not queue or queue[0] is not ticket or len(self._under_way) >= self._seats[False]:
            return False
        if not ticket.is_chosen:
            return True
        chosen = sum(each.is_chosen for each in self._under_way)
        return not self._queues[False] and chosen < self._seats[True]

    def foresee_wait(self, ticket: Ticket, now: float) -> float:
        """Return the minimum seconds until a request may be sent, judging only by the distances between requests."""
        ahead = list(self._queues[False]) + (list(self._queues[True]) if ticket.is_chosen else [])
        before = ahead.index(ticket) if ticket in ahead else len(ahead)
        return max(0.0, self.next_at - now) + before * self._gap_s

    def has_budget(self, ticket: Ticket, now: float, *, waiting: bool) -> bool:
        """Return True if a request fits the budgets, counting the waiting requests if `waiting` is set."""
        queued = {lane: len(queue) if waiting else 0 for lane, queue in self._queues.items()}
        if ticket.is_chosen and self.count_chosen_left(now) < 1 + queued[True]:
            return False
        return self.count_left(now) > queued[False]

    def take(self, ticket: Ticket, now: float) -> None:
        """Admit a request."""
        self._queues[ticket.is_chosen].remove(ticket)
        self._under_way.append(ticket)
        self.next_at = now + self._gap_s * (self._instances if self.is_alone else 1)
        self._sent.append(now)
        if ticket.is_chosen and self._chosen is not None:
            self._chosen.take(now)
            self._own_chosen.take(now)
        self._tell()

    def leave(self, ticket: Ticket) -> None:
        """Free the seat of a request that has ended."""
        self._under_way.remove(ticket)
        self._tell()

    def close(self, until: float, *, is_chosen: bool) -> None:
        """Refuse requests until a time: callers' queries only, or all."""
        for lane in {True, is_chosen}:
            self._closed_until[lane] = max(self._closed_until[lane], until)

    def closed_until(self, ticket: Ticket) -> float:
        return self._closed_until[ticket.is_chosen]

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

    async def take(self, name: LaneName, lane: HostLane, token: str, *, is_chosen: bool) -> LaneVerdict:
        """Take a turn for a request, identified by a token, or return why there is none. Raise SharedMemoryLost."""
        terms = self._clock.date(lane.terms | {"token": token, "chosen": is_chosen, "seat": SEAT_S})
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
    ) -> AsyncIterator[None]:
        """Wait up to `patience_s` for a turn to send one request, and hold it while the block runs.

        `held` is set as soon as it is clear that the wait will take longer than HOLD_S.

        Raises:
            RequestWithheld: the host asked us to wait, the budget is used up, or the turn would come too late.
        """
        name, lane, ticket = _name(group, host), self._lane(group, host), Ticket(is_chosen)
        lane.is_alone = self._shared is not None and self._shared.is_lost
        self._refuse_hopeless(lane, ticket, group, patience_s)
        waiting = _Waiting(name, lane, ticket, patience_s, held or anyio.Event())
        lane.enqueue(ticket)
        try:
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

    def _refuse_hopeless(self, lane: HostLane, ticket: Ticket, group: HostGroup, patience_s: float) -> None:
        now = self._clock.monotonic()
        self._refuse_when_closed(lane, ticket)
        if not lane.has_budget(ticket, now, waiting=True):
            raise RequestWithheld(f"{lane.budget} per {lane.period_s:g} s")
        if ticket.is_chosen and lane.is_crowded:
            raise RequestWithheld(f"{group.name} is busy")
        if (wait_s := lane.foresee_wait(ticket, now)) > patience_s:
            raise RequestWithheld(f"{group.name}: next turn in {wait_s:.0f} s")

    async def _wait(self, waiting: "_Waiting", group: HostGroup) -> None:
        """Wait for this request's turn and take it."""
        lane, ticket = waiting.lane, waiting.ticket
        if lane.foresee_wait(ticket, self._clock.monotonic()) > HOLD_S:
            waiting.held.set()
        while True:
            now = self._clock.monotonic()
            if not lane.is_next(ticket):
                await waiting.wait_for_change(group)
            elif lane.next_at > now:
                await self._clock.sleep(lane.next_at - now)
            elif await self._may_go(waiting, group):
                break
        now = self._clock.monotonic()
        self._refuse_when_closed(lane, ticket)
        if not lane.has_budget(ticket, now, waiting=False):
            raise RequestWithheld(f"{lane.budget} per {lane.period_s:g} s")
        lane.take(ticket, now)

    async def _may_go(self, waiting: "_Waiting", group: HostGroup) -> bool:
        """Return True if all instances together allow the request now, or False after a part of the wait.

        Raises:
            RequestWithheld: they do not allow it, or not in time.
        """
        if self._shared is None or waiting.has_seat:
            return True
        lane = waiting.lane
        try:
            turn = await self._shared.take(waiting.name, lane, waiting.token, is_chosen=waiting.ticket.is_chosen)
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

    def _refuse_when_closed(self, lane: HostLane, ticket: Ticket) -> None:
        left = lane.closed_until(ticket) - self._clock.monotonic()
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
            lane = self._lanes[name] = HostLane(group.parallel, gap, budget, group.period_s, group.reserve, instances)
        return lane


class _Waiting:
    """One request in a queue, and how much longer it may wait."""

    def __init__(self, name: LaneName, lane: HostLane, ticket: Ticket, patience_s: float, held: anyio.Event) -> None:
        self.name, self.lane, self.ticket, self.held = name, lane, ticket, held
        self.token, self.has_seat = secrets.token_hex(8), False  # among all instances
        self._left_s, self._waited_s = patience_s, 0.0

    async def sleep(self, seconds: float, group: HostGroup) -> None:
        """Wait `seconds` for other instances. Raise RequestWithheld if that exceeds the request's patience."""
        if seconds > self._left_s:
            raise RequestWithheld(f"{group.name}: next turn in {seconds:.0f} s")
        if self._waited_s + seconds > HOLD_S:
            self.held.set()
        self._left_s, self._waited_s = self._left_s - seconds, self._waited_s + seconds
        await anyio.sleep(seconds)

    async def wait_for_change(self, group: HostGroup) -> None:
        """Wait until the lane has changed. Raise RequestWithheld when the request's patience has run out."""
        changed, began = self.lane.changed, anyio.current_time()
        with anyio.move_on_after(self._left_s):
            with anyio.move_on_after(max(0.0, HOLD_S - self._waited_s)):
                await changed.wait()
            if not changed.is_set():
                self.held.set()
                await changed.wait()
        waited_s = anyio.current_time() - began
        self._left_s, self._waited_s = self._left_s - waited_s, self._waited_s + waited_s
        if not changed.is_set():
            raise RequestWithheld(f"{group.name} is busy")


def _name(group: HostGroup, host: str) -> LaneName:
    return group.name, host if group.each_host else ""


def _keys(name: LaneName) -> list[bytes]:
    hashed = hash_name(" ".join(name))
    return [AHEAD, *(b"lane:" + hashed + part for part in (b":sent", b"", b":seats", b":chosen"))]
