"""Run a task on only one of the instances that share a database. If that instance dies, another takes over soon."""

import secrets
from collections.abc import Callable
from typing import Protocol, TypeVar

from toolserver.clock import Clock
from toolserver.sql.connection import SqlConnection
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.leases import LeaseLost, require_fence, take_lease

R = TypeVar("R")

LEASE_S = 150.0  # longer than the pause of every such task plus one of its runs
ROOM = "leases"


class Turn(Protocol):
    """Decides whose turn it is to do a task."""

    async def take(self) -> bool:
        """Return True if it is our turn, now and for LEASE_S. Raises StorageFailed."""
        ...


class LeasedTask:
    """The turns of one instance at one task. With a file, which only one process writes, it is always its turn."""

    def __init__(self, file: GroupCommit, name: str, clock: Clock, *, lease_s: float = LEASE_S) -> None:
        self._file, self._name, self._clock, self._lease_ms = file, name, clock, int(lease_s * 1000)
        self._holder = secrets.token_hex(8)
        self._fence: int | None = None

    async def take(self) -> bool:
        if self._file.shared:
            self._fence = await self._file.alone(self._take, room=ROOM)
        return self._fence is not None or not self._file.shared

    def guard(self, job: Callable[[SqlConnection], R]) -> Callable[[SqlConnection], R]:
        """Wrap a write so that it raises LeaseLost if another instance has taken over the task."""

        def guarded(db: SqlConnection) -> R:
            if self._file.shared:
                if self._fence is None:
                    raise LeaseLost(f"another instance does this: {self._name}")
                require_fence(db, self._name, self._fence)
            return job(db)

        return guarded

    def _take(self, db: SqlConnection) -> int | None:
        now = int(self._clock.time() * 1000)
        return take_lease(db, self._name, self._holder, now=now, until=now + self._lease_ms)


def need_no_turn(name: str) -> None:
    """Return no turns: nobody else can do this task."""


async def is_our_turn(turn: Turn | None) -> bool:
    """Return True if a task must be done here. Without turns, it always is."""
    return turn is None or await turn.take()
