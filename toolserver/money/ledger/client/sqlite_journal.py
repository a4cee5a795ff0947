"""Keeps the follower's journal in SQLite, in the file that also holds its receipts."""

import json
from collections.abc import Sequence

from toolserver.clock import Clock
from toolserver.money.ledger.client.journal import (
    FIRST_WAIT_MS,
    LONGEST_WAIT_MS,
    JournalState,
    JournalStep,
    Release,
    Waiting,
)
from toolserver.money.ledger.protocol import milliseconds
from toolserver.money.ledger.state import DIED
from toolserver.sql.connection import SqlConnection
from toolserver.sql.group_commit import GroupCommit


class SqliteJournal:
    """A `Journal` whose entries are on disk before a request goes to the owner."""

    def __init__(self, file: GroupCommit, clock: Clock) -> None:
        self._file, self._now = file, milliseconds(clock)

    async def note(self, call_id: str, step: JournalStep) -> JournalState | None:
        return await self._file.alone(lambda db: _note(db, call_id, step))

    async def release(self, call_id: str, reason: str, *, wait_s: float = 0.0) -> None:
        due_at = self._now() + int(wait_s * 1000)
        await self._file.alone(lambda db: _release(db, call_id, reason, due_at))

    async def done(self, call_id: str) -> None:
        await self._file.alone(lambda db: _delete(db, call_id))

    async def delivered(self, call_ids: Sequence[str]) -> None:
        await self._file.alone(lambda db: _delete_delivered(db, call_ids) and None)

    def strike(self, call_id: str) -> None:
        self._file.ride(_delete_delivered, call_id)

    async def waiting(self) -> Waiting:
        size, next_at = await self._file.read(_count_releases)
        return Waiting(size, None if next_at is None else max(0.0, (next_at - self._now()) / 1000))

    async def due(self, limit: int = 100) -> list[Release]:
        now = self._now()
        return await self._file.read(lambda db: _list_due(db, now, limit))

    async def later(self, call_id: str) -> None:
        now = self._now()
        await self._file.alone(lambda db: _postpone(db, call_id, now))

    async def recover(self) -> list[str]:
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


def _delete(db: SqlConnection, call_id: str) -> None:
    db.execute("DELETE FROM journal WHERE call_id=?", (call_id,))


def _delete_delivered(db: SqlConnection, call_ids: Sequence[str]) -> list[None]:
    sql = """DELETE FROM journal WHERE call_id IN (SELECT value FROM json_each(?))
      AND state IN ('committing', 'committed')"""
    db.execute(sql, (json.dumps(list(call_ids)),))
    return [None] * len(call_ids)


def _count_releases(db: SqlConnection) -> tuple[int, int | None]:
    found: tuple[int, int | None] = db.execute(
        "SELECT count(*), min(next_at) FROM journal WHERE state='releasing'"
    ).fetchone()
    return found


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
