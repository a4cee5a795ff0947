"""Stores the results of calls with an Idempotency-Key, in memory or in the ledger's file.

A cached answer is sold to many callers. Its bytes are hashed, compressed and stored once. The
row of a key has the part that belongs to its call alone, and names the shared bytes by their
SHA-256.
"""

import zlib
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import Any

from toolserver.calls.idempotency import KeptResult, KeyedCall, KeyName, NewKeyedCall, SharedBytes, join_result
from toolserver.clock import Clock, milliseconds
from toolserver.money.receipts.sign import receipt_id
from toolserver.money.receipts.sql_store import find_receipts
from toolserver.sql.connection import SqlConnection, in_order, insert, pairs
from toolserver.sql.group_commit import GroupCommit

KEEP_MS = 24 * 3600 * 1000
TOGETHER = 64  # names looked up by one statement
LONGER_MS = 3600 * 1000  # shared bytes are kept longer, so that not every new key has to extend them


def find_keyed(db: SqlConnection, names: Sequence[KeyName], now: int) -> dict[KeyName, KeyedCall]:
    """Return the calls under these names, and delete those older than a day. `now` is in milliseconds."""
    calls = {}
    for at in range(0, len(names), TOGETHER):
        for scope, key, request, call_id, *parts, expires_at in _read_rows(db, names[at : at + TOGETHER]):
            if expires_at > now:
                calls[scope, key] = KeyedCall(request, call_id, _unpack(db, call_id, *parts))
            else:
                db.execute("DELETE FROM idempotency WHERE scope=? AND key=? AND expires_at<=?", (scope, key, now))
    return calls


def _read_rows(db: SqlConnection, names: Sequence[KeyName]) -> list[Any]:
    table, parameters = pairs(db, names)
    sql = f"""SELECT i.scope, i.key, i.request, i.call_id, i.outcome, i.own, i.shared, s.packed, i.expires_at
      FROM {table} CROSS JOIN idempotency i ON i.scope = asked.a AND i.key = asked.b
      LEFT JOIN shared_result s ON s.sha256 = i.shared"""
    return db.execute(in_order(db, sql), parameters).fetchall()


def _unpack(
    db: SqlConnection,
    call_id: str,
    outcome: bytes | None,
    own: bytes | None,
    shared: bytes | None,
    packed: bytes | None,
) -> bytes | None:
    """Return a kept result, or None if there is none or its shared bytes are gone; the call is then made again."""
    if own is None:
        return None if outcome is None else zlib.decompress(outcome)
    if shared is None:
        return bytes(own)
    if packed is None:
        return None
    receipt = find_receipts(db, [receipt_id(call_id)]).get(receipt_id(call_id))
    return join_result(own, receipt.jws if receipt else "", zlib.decompress(packed))


def store_keyed(db: SqlConnection, calls: Sequence[NewKeyedCall], now: int) -> None:
    """Store calls with their results. Raise IntegrityError if another instance has already stored one of them."""
    _store_shared(db, [call.result.shared for call in calls], now)
    rows = [
        (*claim.name, claim.request, call_id, now + KEEP_MS, *_parts_of(result)) for claim, call_id, result in calls
    ]
    insert(db, "INSERT INTO idempotency(scope, key, request, call_id, expires_at, own, shared) VALUES", rows)


def keep_result(db: SqlConnection, name: KeyName, result: KeptResult, now: int) -> bytes | None:
    """Store the result of a stored call, unless another instance has stored one first.

    Returns the whole result that is now stored, or None if the call is gone.
    """
    call = find_keyed(db, [name], now).get(name)
    if call is None:
        return None
    if not _has_receipt(db, call.call_id, result):
        result = KeptResult(result.whole)
    _store_shared(db, [result.shared], now)
    sql, values = "UPDATE idempotency SET own=?, shared=? WHERE scope=? AND key=?", (*_parts_of(result), *name)
    if db.execute(f"{sql} AND own IS NULL AND outcome IS NULL", values).rowcount:
        return result.whole
    call = find_keyed(db, [name], now).get(name)
    if call is None or call.result is not None:
        return call and call.result
    db.execute(sql, values)  # the stored result has lost its shared bytes
    return result.whole


def _has_receipt(db: SqlConnection, call_id: str, result: KeptResult) -> bool:
    """Return True if the result's receipt is stored for its call; the receipt of a remade answer has another id."""
    id = receipt_id(call_id)
    stored = find_receipts(db, [id]).get(id)
    return result.receipt == (stored.jws if stored else "")


def delete_keyed(db: SqlConnection, name: KeyName, call_id: str) -> None:
    """Delete the call under this name, if it is still the one with this call_id."""
    db.execute("DELETE FROM idempotency WHERE scope=? AND key=? AND call_id=?", (*name, call_id))


def _parts_of(result: KeptResult) -> tuple[Any, ...]:
    return result.own, None if result.shared is None else result.shared.sha256


def _store_shared(db: SqlConnection, parts: Sequence[SharedBytes | None], now: int) -> None:
    """Store shared bytes that are missing or would expire before a key stored now, in the order of their hashes."""
    different = {part.sha256: part for part in parts if part is not None}
    for sha256, part in sorted(different.items()):
        sql = "SELECT 1 FROM shared_result WHERE sha256=? AND expires_at>=?"
        if db.execute(sql, (sha256, now + KEEP_MS)).fetchone() is None:
            db.execute(
                """INSERT INTO shared_result(sha256, packed, expires_at) VALUES(?,?,?)
                   ON CONFLICT(sha256) DO UPDATE SET expires_at=excluded.expires_at""",
                (sha256, part.packed, now + KEEP_MS + LONGER_MS),
            )


def sweep_shared(db: SqlConnection, now: int, limit: int) -> int:
    """Delete up to `limit` shared bytes that no key names any more, and return their number."""
    sql = "DELETE FROM shared_result WHERE sha256 IN (SELECT sha256 FROM shared_result WHERE expires_at<=? LIMIT ?)"
    return db.execute(sql, (now, limit)).rowcount


KEEP_S = KEEP_MS / 1000
ENTRIES = 10_000  # in memory; above it the oldest are forgotten
SWEPT = 500  # rows deleted in one transaction


class MemoryIdempotencyStore:
    """A bounded store that ends with the process."""

    def __init__(self, clock: Clock) -> None:
        self._now = clock.monotonic
        self._calls: OrderedDict[KeyName, tuple[KeyedCall, float]] = OrderedDict()  # with its expiry, oldest first

    def find(self, name: KeyName) -> KeyedCall | None:
        """Return the call under this name, or None."""
        call, expires_at = self._calls.get(name, (None, 0.0))
        return call if self._now() < expires_at else None

    async def begin(self, name: KeyName, request: str, call_id: str) -> KeyedCall:
        return self.find(name) or self.add(name, KeyedCall(request, call_id))

    def add(self, name: KeyName, new: KeyedCall) -> KeyedCall:
        """Store a new call, and return it."""
        self._calls.pop(name, None)
        self._calls[name] = new, self._now() + KEEP_S
        if len(self._calls) > ENTRIES:
            self._calls.popitem(last=False)
        return new

    async def keep(self, name: KeyName, result: KeptResult) -> bytes | None:
        if name not in self._calls:
            return None
        call, expires_at = self._calls[name]
        if call.result is None:
            call = call._replace(result=result.whole)
            self._calls[name] = call, expires_at
        return call.result

    async def drop(self, name: KeyName, call_id: str) -> None:
        self.remove(name, call_id)

    def remove(self, name: KeyName, call_id: str) -> None:
        """Forget the call under this name, if it is still the one with this call_id."""
        if name in self._calls and self._calls[name][0].call_id == call_id:
            del self._calls[name]

    async def sweep(self) -> int:
        expired = [name for name, (_, expires_at) in self._calls.items() if expires_at <= self._now()]
        for name in expired:
            del self._calls[name]
        return len(expired)


class SqlIdempotencyStore:
    """Calls in the table `idempotency` of the ledger's file; the shared parts of results are in `shared_result`."""

    def __init__(self, file: GroupCommit, clock: Clock) -> None:
        self._file, self._now = file, milliseconds(clock)

    async def begin(self, name: KeyName, request: str, call_id: str) -> KeyedCall:
        return await self._file.alone(partial(_begin, name, KeyedCall(request, call_id), self._now()))

    async def keep(self, name: KeyName, result: KeptResult) -> bytes | None:
        return await self._file.alone(lambda db: keep_result(db, name, result, self._now()))

    async def drop(self, name: KeyName, call_id: str) -> None:
        await self._file.alone(lambda db: delete_keyed(db, name, call_id))

    async def sweep(self) -> int:
        swept = 0
        while deleted := await self._file.alone(partial(_sweep, self._now())):
            swept += deleted
        while await self._file.alone(lambda db: sweep_shared(db, self._now(), SWEPT)):
            pass
        return swept


def _begin(name: KeyName, new: KeyedCall, now: int, db: SqlConnection) -> KeyedCall:
    find_keyed(db, [name], now)  # deletes an expired one
    sql = "INSERT INTO idempotency(scope, key, request, call_id, expires_at) VALUES(?,?,?,?,?) ON CONFLICT DO NOTHING"
    db.execute(sql, (*name, new.request, new.call_id, now + KEEP_MS))
    return find_keyed(db, [name], now)[name]


def _sweep(now: int, db: SqlConnection) -> int:
    sql = (
        "DELETE FROM idempotency WHERE (scope, key) IN (SELECT scope, key FROM idempotency WHERE expires_at<=? LIMIT ?)"
    )
    return db.execute(sql, (now, SWEPT)).rowcount
