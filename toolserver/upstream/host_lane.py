"""Keeps the state of a host group: its seats, the distances between its requests, and its budgets.

There are two lanes. Queries that callers choose (coordinates, names, addresses) wait behind
all others, use at most a share of the budget, never take the last seat, and have a bounded
queue. Callers therefore cannot use up what the answers to default arguments need.

After a pause a host gets a burst of requests without a distance. The requests that one
composition sends to a host at the same time are one unit: they get their turns together or
not at all, so that no answer is partly new because another composition came in between.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

import anyio

from toolserver.core.waiting_room import WaitingRoom, WaitLimits
from toolserver.upstream.fan_out import FanOut
from toolserver.upstream.source import SourceLimited

LONGEST_QUEUE = 32  # callers' queries that may wait at the same time
CHOSEN_WAITS = WaitLimits(most=LONGEST_QUEUE, share=12, crowd_share=20)
BURST = 0.25  # the part of the callers' share that may be used at once; it is refilled evenly over the period


class RequestWithheld(SourceLimited):
    """We did not send the request: the budget is used up, its turn is too far away, or the host asked us to wait."""

    word = "budget"
    was_sent = False

    def repeat(self) -> "RequestWithheld":
        """Return the same error for another request."""
        return RequestWithheld(str(self), word=self.word, retry_after_s=self.retry_after_s)


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
        self.room = WaitingRoom("upstream", CHOSEN_WAITS)  # for callers' queries
        self.budget = budget
        self.period_s = period_s
        self._all_gap_s = gap_s
        self._all_burst = burst
        self.is_alone, self._instances = False, instances
        self._own_budget = max(1, budget // instances)
        self._own_period_s = period_s if budget >= instances else period_s * instances / budget
        self._due = 0.0
        self._gathering: dict[tuple[FanOut, bool], Unit] = {}
        self._changed: anyio.Event | None = None
        self._seats = {False: parallel, True: parallel if reserve == 0 else max(1, parallel - 1)}
        self._under_way: list[Ticket] = []
        self._queues: dict[bool, deque[Unit]] = {False: deque(), True: deque()}
        self._sent: deque[float] = deque()
        self._chosen = None if reserve == 0 else ChosenShare(int(budget * (1 - reserve)), period_s)
        self._own_chosen = ChosenShare(int(self._own_budget * (1 - reserve)), self._own_period_s)
        self._closed_until = {False: 0.0, True: 0.0}

    @property
    def changed(self) -> anyio.Event:
        """The event that is set with the next change. It is made for those who wait: most requests never do."""
        if self._changed is None:
            self._changed = anyio.Event()
        return self._changed

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
        if self._changed is not None:
            self._changed.set()
            self._changed = None
