"""Bound a wait that strangers can cause: how many wait, how many places of them one client has, and for how long.

A place is taken for as long as the block of `wait` runs, or from `take` to `leave`. A client
is an IPv4 address or the /64 of an IPv6 address; what a /48 has counts together too. When all
places are taken, the oldest of the crowd with most makes room. Work of our own has no client:
it has no share to exceed and never makes room, and counts among all.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import anyio

from toolserver.core.caller import crowd_of
from toolserver.errors import ToolserverError

Reason = Literal["share", "full", "late"]
WAIT_REASONS: tuple[Reason, ...] = get_args(Reason)

waiting_client: ContextVar[str | None] = ContextVar("waiting_client", default=None)
"""Who the work of the current call is done for, by address. None for work of our own."""


@dataclass(frozen=True, slots=True)
class WaitLimits:
    """How many may wait in all (`most`), how many for one client (`share`) and for all clients
    of a /48, and for how many seconds.
    """

    most: int
    share: int
    crowd_share: int
    longest_s: float = float("inf")


class WaitRefused(ToolserverError):
    """There is no place to wait. `share`: the client has its share, or made room; `full`: all
    are taken; `late`: the time is over.
    """

    def __init__(self, room: str, reason: Reason) -> None:
        super().__init__(f"{room}: {reason}")
        self.reason = reason


class WaitCounts(NamedTuple):
    """How many wait in a room, how many places it has, and how many it refused since its start, by reason."""

    room: str
    waiting: int
    most: int
    refused: dict[str, int]


class WaitingPlace:
    """A place of one client. `end` ends its wait when it makes room for another."""

    __slots__ = ("client", "crowd", "end", "has_made_room")

    def __init__(self, client: str | None, end: Callable[[], None]) -> None:
        self.client, self.end = client, end
        self.crowd = None if client is None else crowd_of(client)
        self.has_made_room = False


class WaitingRoom:
    """The places of one kind of wait, called by the `name` that its metrics have."""

    def __init__(self, name: str, limits: WaitLimits) -> None:
        self.name, self.limits = name, limits
        self._places: dict[WaitingPlace, None] = {}  # the oldest first
        self._clients: Counter[str | None] = Counter()
        self._crowds: Counter[str | None] = Counter()
        self.refused: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._places)

    def count(self) -> WaitCounts:
        """Return the figures of its metrics."""
        return WaitCounts(self.name, len(self), self.limits.most, dict(self.refused))

    def take(self, client: str | None, end: Callable[[], None]) -> WaitingPlace:
        """Take a place until `leave`. Raises WaitRefused.

        `end` is called once, if this place has to make room; it must end the wait, which then leaves.
        """
        place = WaitingPlace(client, end)
        limits = self.limits
        if client is not None and (
            self._clients[client] >= limits.share or self._crowds[place.crowd] >= limits.crowd_share
        ):
            raise self._refuse("share")
        if len(self._places) >= limits.most:
            self._make_room()
        self._places[place] = None
        self._clients[client] += 1
        self._crowds[place.crowd] += 1
        return place

    def leave(self, place: WaitingPlace) -> None:
        """Give a place back. One that has made room already is ignored."""
        if place not in self._places:
            return
        del self._places[place]
        for counts, key in ((self._clients, place.client), (self._crowds, place.crowd)):
            counts[key] -= 1
            if not counts[key]:
                del counts[key]

    @asynccontextmanager
    async def wait(self, client: str | None = None) -> AsyncIterator[None]:
        """Have a place while the block runs, which waits. Without a `client`, it is that of the current call.

        The block is cancelled when its time is over or it makes room.

        Raises:
            WaitRefused
        """
        with anyio.CancelScope(deadline=anyio.current_time() + self.limits.longest_s) as scope:
            place = self.take(client or waiting_client.get(), scope.cancel)
            try:
                yield
            finally:
                self.leave(place)
        if scope.cancelled_caught:
            raise self._refuse("share" if place.has_made_room else "late")

    def _make_room(self) -> None:
        """End the oldest wait of the crowd with most. Raises WaitRefused if all places are ours."""
        strangers = [place for place in self._places if place.client is not None]
        if not strangers:
            raise self._refuse("full")
        victim = max(strangers, key=lambda place: self._crowds[place.crowd])  # of equals, max returns the first
        victim.has_made_room = True
        self.leave(victim)
        victim.end()

    def _refuse(self, reason: Reason) -> WaitRefused:
        self.refused[reason] += 1
        return WaitRefused(self.name, reason)
