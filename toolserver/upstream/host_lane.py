"""Keeps the state of a host group, or of one host in a group that counts per host: running and waiting requests.

This module does not wait: `Throttle` does, and checks the lane again whenever `changed` is set.
"""

from collections import deque
from dataclasses import dataclass

import anyio

LONGEST_QUEUE = 32  # callers' queries that may wait at the same time
BURST = 0.25  # the part of the callers' share that may be used at once; it is refilled evenly over the period


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
