"""Defines the journal of a follower: it records calls before requests go to the ledger's owner, so no release is lost.

    reserving ──▶ committing ──▶ committed ──▶ (gone: the answer was sent)
        └─────────────┴──────────────┴───────▶ releasing ──▶ (gone: the owner has acknowledged it)

A call that is still in progress when its process dies was not delivered, so it is released at the next start.

It is in the SQLite file that also holds the receipts of the service.
"""

import json
from collections.abc import Sequence
from typing import Literal, NamedTuple

from toolserver.clock import Clock, milliseconds
from toolserver.money.ledger.state import DIED
from toolserver.sql.connection import SqlConnection
from toolserver.sql.group_commit import GroupCommit

JournalStep = Literal["reserving", "committing", "committed"]
JournalState = Literal["reserving", "committing", "committed", "releasing"]

FIRST_WAIT_MS = 1000
LONGEST_WAIT_MS = 300_000


class Release(NamedTuple):
    """A release that the owner has not acknowledged yet, and the number of failed tries."""

    call_id: str
    reason: str
    tries: int


class Waiting(NamedTuple):
    """The number of unacknowledged releases, and the seconds until the next one is due (None if there is none)."""

    size: int
    next_s: float | None


class Journal:
    """The follower's calls in progress, and its unacknowledged releases: on disk before a request goes to the owner.

    Any method may raise StorageFailed.
    """

    def __init__(self, file: GroupCommit, clock: Clock) -> None:
        self._file, self._now = file, milliseconds(clock)

    async def note(self, call_id: str, step: JournalStep) -> JournalState | None:
        """Note that the call is at this step and return its state before. A call that is to be
        released stays that way.
        """
        return await self._file.alone(lambda db: _note(db, call_id, step))

    async def release(self, call_id: str, reason: str, *, wait_s: float = 0.0) -> None:
        """Note that the call is to be released, due in `wait_s` seconds. The first reason stays."""
        due_at = self._now() + int(wait_s * 1000)
        await self._file.alone(lambda db: _release(db, call_id, reason, due_at))

    async def give_back(self, call_id: str) -> None:
        """Note that the call is to be released now, as its answer could not be sent, and forget its kept answer."""
        now = self._now()
        await self._file.alone(lambda db: _give_back(db, call_id, now))

    async def done(self, call_id: str) -> None:
        """Forget the call: its answer was sent, or its release acknowledged."""
        await self._file.alone(lambda db: _delete(db, call_id))

    async def delivered(self, call_ids: Sequence[str]) -> None:
        """Forget calls whose answers were sent, except those that are to be released."""
        await self._file.alone(lambda db: _delete_delivered(db, call_ids) and None)

    def strike(self, call_id: str) -> None:
        """Forget one delivered call in the next transaction that is committed anyway. Returns without waiting."""
        self._file.ride(_delete_delivered, call_id)

    async def waiting(self) -> Waiting:
        """Return how many releases are waiting, and the seconds until the next one is due."""
        size, next_at = await self._file.read(_count_releases)
        return Waiting(size, None if next_at is None else max(0.0, (next_at - self._now()) / 1000))

    async def due(self, limit: int = 100) -> list[Release]:
        """Return the releases that are due, the longest waiting first."""
        now = self._now()
        return await self._file.read(lambda db: _list_due(db, now, limit))

    async def later(self, call_id: str) -> None:
        """Note that the owner did not answer: the release is due again after a wait that doubles each time."""
        now = self._now()
        await self._file.alone(lambda db: _postpone(db, call_id, now))

    async def recover(self) -> list[str]:
        """Turn all calls in progress into releases after a start, because their process died. Returns their call_ids.

        The answers that are kept for their Idempotency-Keys are forgotten with them.
        """
        now = self._now()
        return await self._file.alone(lambda db: release_all(db, now))


def _note(db: SqlConnection, call_id: str, step: JournalStep) -> JournalState | None:
    before = db.execute("SELECT state FROM journal WHERE call_id=?", (call_id,)).fetchone()
    sql = """INSERT INTO journal(call_id, state, next_at) VALUES(?, ?, 0)
      ON CONFLICT DO UPDATE SET state=excluded.state WHERE state<>'releasing'"""
    db.execute(sql, (call_id, step))
    return before[0] if before else None


def _release(db: SqlConnection, call_id: str, reason: str, due_at: int) -> None:
    sql = """INSERT INTO journal(call_id, state, reason, next_at) VALUES(?, 'releasing', ?, ?)
      ON CONFLICT DO UPDATE SET state='releasing', reason=excluded.reason, next_at=excluded.next_at
      WHERE state<>'releasing'"""
    db.execute(sql, (call_id, reason, due_at))


def _give_back(db: SqlConnection, call_id: str, due_at: int) -> None:
    _release(db, call_id, DIED, due_at)
    db.execute("DELETE FROM idempotency WHERE call_id=?", (call_id,))


def _delete(db: SqlConnection, call_id: str) -> None:
    db.execute("DELETE FROM journal WHERE call_id=?", (call_id,))


def _delete_delivered(db: SqlConnection, call_ids: Sequence[str]) -> list[None]:
    sql = """DELETE FROM journal WHERE call_id IN (SELECT value FROM json_each(?))
      AND state IN ('committing', 'committed')"""
    db.execute(sql, (json.dumps(list(call_ids)),))
    return [None] * len(call_ids)


def _count_releases(db: SqlConnection) -> tuple[int, int | None]:
    size, next_at = db.execute("SELECT count(*), min(next_at) FROM journal WHERE state='releasing'").fetchone()
    return size, next_at


def _list_due(db: SqlConnection, now: int, limit: int) -> list[Release]:
    sql = "SELECT call_id, reason, tries FROM journal WHERE state='releasing' AND next_at<=? ORDER BY next_at LIMIT ?"
    return [Release(*row) for row in db.execute(sql, (now, limit))]


def _postpone(db: SqlConnection, call_id: str, now: int) -> None:
    sql = "UPDATE journal SET tries=tries+1, next_at=? + min(?, ? << min(tries, 20)) WHERE call_id=?"
    db.execute(sql, (now, LONGEST_WAIT_MS, FIRST_WAIT_MS, call_id))


def release_all(db: SqlConnection, now: int) -> list[str]:
    """Turn all calls in progress into releases due now, and forget their kept answers. Returns their call_ids."""
    died = [call for (call,) in db.execute("SELECT call_id FROM journal WHERE state<>'releasing'")]
    db.execute("UPDATE journal SET state='releasing', reason=?, next_at=? WHERE state<>'releasing'", (DIED, now))
    db.execute("DELETE FROM idempotency WHERE call_id IN (SELECT value FROM json_each(?))", (json.dumps(died),))
    return died
