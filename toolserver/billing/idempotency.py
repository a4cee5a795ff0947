"""Answers by the caller's own key, in the ledger's file: a repeated call is one call even across a crash."""

import logging
import sqlite3
import zlib
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import anyio

from toolserver import ids
from toolserver.billing.ledger import milliseconds
from toolserver.clock import Clock
from toolserver.idempotency import KEEP_S, Known, Work, once_here, same
from toolserver.storage.durable import Durable

log = logging.getLogger(__name__)

T = TypeVar("T")

Name = tuple[str, str]
SWEPT = 500  # rows deleted in one go


class DurableIdempotency:
    """Before work begins its call_id is written down, and when it is done, its result.

    Found again without a result, the call_id belongs to work that died with its process. It is used once more: if the
    ledger had charged it, it stays charged once.
    """

    def __init__(self, file: Durable, clock: Clock) -> None:
        self._file, self._now = file, milliseconds(clock)
        self._running: Known = {}

    async def once(
        self,
        scope: str,
        key: str,
        request: str,
        work: Work[T],
        *,
        pack: Callable[[T], bytes],
        unpack: Callable[[bytes], T],
    ) -> T:
        name = (scope, key)

        async def run() -> T:
            known, call_id, kept = await self._file.alone(partial(_begun, name, request, ids.call_id(), self._now()))
            same(known, request)
            if kept is not None:
                return unpack(zlib.decompress(kept))
            result = await self._worked(name, work, call_id)
            await self._tried(partial(_kept, name, pack(result)))
            return result

        return await once_here(self._running, name, request, run, keep=False)

    async def sweep(self) -> int:
        """Forget what is older than a day; how much."""
        forgotten = 0
        while found := await self._file.alone(partial(_forgotten, self._now())):
            forgotten += found
        return forgotten

    async def _worked(self, name: Name, work: Work[T], call_id: str) -> T:
        try:
            return await work(call_id)
        except BaseException:  # a failure is not kept: the next try is a new call
            with anyio.CancelScope(shield=True):
                await self._tried(partial(_dropped, name, call_id))
            raise

    async def _tried(self, job: Callable[[sqlite3.Connection], None]) -> None:
        """What is charged is answered, even when the answer cannot be kept."""
        try:
            await self._file.alone(job)
        except sqlite3.Error:
            log.exception("an idempotent answer could not be kept")


def _begun(name: Name, request: str, call_id: str, now: int, db: sqlite3.Connection) -> tuple[str, str, bytes | None]:
    """The request, call_id and result under this name; those of a new row if there is none."""
    db.execute("DELETE FROM idempotency WHERE scope=? AND key=? AND expires_at<=?", (*name, now))
    row = (*name, request, call_id, now + int(KEEP_S * 1000))
    db.execute("INSERT INTO idempotency VALUES(?,?,?,?,NULL,?) ON CONFLICT DO NOTHING", row)
    known = db.execute("SELECT request, call_id, outcome FROM idempotency WHERE scope=? AND key=?", name)
    return known.fetchone()  # type: ignore[no-any-return]


def _kept(name: Name, result: bytes, db: sqlite3.Connection) -> None:
    db.execute("UPDATE idempotency SET outcome=? WHERE scope=? AND key=?", (zlib.compress(result, 1), *name))


def _dropped(name: Name, call_id: str, db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM idempotency WHERE scope=? AND key=? AND call_id=?", (*name, call_id))


def _forgotten(now: int, db: sqlite3.Connection) -> int:
    sql = (
        "DELETE FROM idempotency WHERE (scope, key) IN (SELECT scope, key FROM idempotency WHERE expires_at<=? LIMIT ?)"
    )
    return db.execute(sql, (now, SWEPT)).rowcount
