"""What a follower wrote down of its calls before it asked the owner of the ledger, so that a crash forgets no release.

    reserving ──▶ committing ──▶ committed ──▶ (gone: the answer was sent)
        └─────────────┴──────────────┴───────▶ releasing ──▶ (gone: the owner has acknowledged it)

A call that is still on the way when its process dies was not delivered: it is released at the next start.
"""

import json
import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Literal, NamedTuple

from toolserver.billing.ledger import milliseconds
from toolserver.clock import Clock
from toolserver.storage.durable import Durable

Step = Literal["reserving", "committing", "committed"]
State = Literal["reserving", "committing", "committed", "releasing"]

FIRST_WAIT_MS = 1000
LONGEST_WAIT_MS = 300_000


class Release(NamedTuple):
    """A release the owner has not acknowledged yet."""

    call_id: str
    reason: str
    tries: int


class Waiting(NamedTuple):
    """Releases that wait; `next_s` is None when there is none."""

    size: int
    next_s: float | None


class Journal:
    """The follower's calls on the way, and the outbox of its releases."""

    def __init__(self, file: Durable, clock: Clock) -> None:
        self._file, self._now = file, milliseconds(clock)

    async def note(self, call_id: str, step: Step) -> State | None:
        """The call is about to be reserved or committed, or was. A call to be released stays so. What it was before."""
        return await self._file.alone(partial(_noted, call_id, step))

    async def release(self, call_id: str, reason: str, *, wait_s: float = 0.0) -> None:
        """The call is to be released, whatever the owner knows of it; until `done`. It is due after so many seconds."""
        await self._file.alone(partial(_released, call_id, reason, self._now() + int(wait_s * 1000)))

    async def done(self, call_id: str) -> None:
        """The answer was sent, or the release acknowledged."""
        await self._file.alone(partial(_done, call_id))

    async def delivered(self, call_ids: Sequence[str]) -> None:
        """These answers were sent. Calls that are to be released all the same stay so."""
        await self._file.alone(partial(_delivered, json.dumps(call_ids)))

    async def waiting(self) -> Waiting:
        """How many releases wait, and until when the next one does."""
        size, next_at = await self._file.read(_waiting)
        return Waiting(size, None if next_at is None else max(0.0, (next_at - self._now()) / 1000))

    async def due(self, limit: int = 100) -> list[Release]:
        """Releases to be sent now, the longest waiting first."""
        now = self._now()
        return await self._file.read(lambda db: _due(now, limit, db))

    async def later(self, call_id: str) -> None:
        """The owner did not answer: try again, after twice as long every time."""
        await self._file.alone(partial(_later, call_id, self._now()))

    async def recover(self) -> int:
        """After a start: everything on the way died with the process before; how much."""
        return await self._file.alone(partial(_recovered, self._now()))


def _noted(call_id: str, step: Step, db: sqlite3.Connection) -> State | None:
    before = db.execute("SELECT state FROM journal WHERE call_id=?", (call_id,)).fetchone()
    sql = """INSERT INTO journal(call_id, state, next_at) VALUES(?, ?, 0)
      ON CONFLICT DO UPDATE SET state=excluded.state WHERE state<>'releasing'"""
    db.execute(sql, (call_id, step))
    return before[0] if before else None


def _released(call_id: str, reason: str, now: int, db: sqlite3.Connection) -> None:
    sql = """INSERT INTO journal(call_id, state, reason, next_at) VALUES(?, 'releasing', ?, ?)
      ON CONFLICT DO UPDATE SET state='releasing', reason=excluded.reason, next_at=excluded.next_at
      WHERE state<>'releasing'"""
    db.execute(sql, (call_id, reason, now))


def _done(call_id: str, db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM journal WHERE call_id=?", (call_id,))


def _delivered(call_ids: str, db: sqlite3.Connection) -> None:
    sql = """DELETE FROM journal WHERE call_id IN (SELECT value FROM json_each(?))
      AND state IN ('committing', 'committed')"""
    db.execute(sql, (call_ids,))


def _waiting(db: sqlite3.Connection) -> tuple[int, int | None]:
    sql = "SELECT count(*), min(next_at) FROM journal WHERE state='releasing'"
    found: tuple[int, int | None] = db.execute(sql).fetchone()
    return found


def _due(now: int, limit: int, db: sqlite3.Connection) -> list[Release]:
    sql = "SELECT call_id, reason, tries FROM journal WHERE state='releasing' AND next_at<=? ORDER BY next_at LIMIT ?"
    return [Release(*row) for row in db.execute(sql, (now, limit))]


def _later(call_id: str, now: int, db: sqlite3.Connection) -> None:
    sql = "UPDATE journal SET tries=tries+1, next_at=? + min(?, ? << min(tries, 20)) WHERE call_id=?"
    db.execute(sql, (now, LONGEST_WAIT_MS, FIRST_WAIT_MS, call_id))


def _recovered(now: int, db: sqlite3.Connection) -> int:
    sql = "UPDATE journal SET state='releasing', reason='delivery_failed', next_at=? WHERE state<>'releasing'"
    return db.execute(sql, (now,)).rowcount
