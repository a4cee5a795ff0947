"""Manage leases: which instance does what only one may do at a time, and until when. Anyone may take an expired lease.

Every change of holder raises the number of the lease (its fence). A task that runs under a
lease checks the number in the transaction of each write. So a task that was delayed beyond
the end of its lease, and continues with old data, is refused. Times are in milliseconds, by
the clock of the database if instances share one.
"""

import secrets
from collections.abc import Callable
from typing import Protocol, TypeVar

from toolserver.clock import Clock
from toolserver.errors import ToolserverError
from toolserver.sql.connection import SqlConnection, is_shared, read_clock
from toolserver.sql.group_commit import GroupCommit

R = TypeVar("R")

_TAKE = """INSERT INTO lease(name, holder, expires_at, fence) VALUES(?1,?2,?3,1) ON CONFLICT(name) DO UPDATE
  SET holder=excluded.holder, expires_at=excluded.expires_at,
    fence=lease.fence + CASE WHEN lease.holder=excluded.holder THEN 0 ELSE 1 END
  WHERE lease.holder=excluded.holder OR lease.expires_at<=?4 RETURNING fence"""
LEASE_S = 150.0  # longer than the pause of every such task plus one of its runs
ROOM = "leases"


class LeaseLost(ToolserverError):
    """Another instance has taken over this task."""


def take_lease(db: SqlConnection, name: str, holder: str, *, now: int, until: int) -> int | None:
    """Take or extend a lease within the caller's transaction. Returns its number, or None if another holds it.

    The lease lasts for `until` minus `now`. If instances share a database, its clock counts.
    """
    clock = read_clock(db, now)
    row = db.execute(_TAKE, (name, holder, clock + until - now, clock)).fetchone()
    return None if row is None else int(row[0])


def require_fence(db: SqlConnection, name: str, fence: int) -> None:
    """Raise LeaseLost unless a lease still has this number. Nobody can take it until the transaction ends."""
    stays = " FOR SHARE" if is_shared(db) else ""
    row = db.execute(f"SELECT fence FROM lease WHERE name=?{stays}", (name,)).fetchone()
    if row is None or row[0] != fence:
        raise LeaseLost(f"another instance does this now: {name}")


class Turn(Protocol):
    """Decides whose turn it is to do a task."""

    async def take(self) -> bool:
        """Return True if it is our turn, now and for LEASE_S. Raises StorageFailed."""
        ...


class LeasedTask:
    """The turns of one instance at one task. With a file, which only one process writes, it is always its turn."""

    def __init__(self, file: GroupCommit, name: str, clock: Clock, *, lease_s: float = LEASE_S) -> None:
        self._file = file
        self._name = name
        self._clock = clock
        self._lease_ms = int(lease_s * 1000)
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


async def is_our_turn(turn: Turn | None) -> bool:
    """Return True if a task must be done here. Without turns, it always is."""
    return turn is None or await turn.take()
