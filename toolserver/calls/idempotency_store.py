"""Stores the results of calls with an Idempotency-Key, in memory or in the ledger's file."""

from collections import OrderedDict
from functools import partial
from typing import Protocol

from toolserver.calls.kept_result_store import KEEP_MS, delete_keyed, find_keyed, keep_result, sweep_shared
from toolserver.calls.kept_results import KeptResult, KeyedCall, KeyName
from toolserver.clock import Clock
from toolserver.money.ledger.protocol import milliseconds
from toolserver.sql.connection import SqlConnection
from toolserver.sql.group_commit import GroupCommit

KEEP_S = KEEP_MS / 1000
ENTRIES = 10_000  # in memory; above it the oldest are forgotten
SWEPT = 500  # rows deleted in one transaction


class IdempotencyStore(Protocol):
    """Calls by scope and key, each kept for `KEEP_S` seconds from its start. Any method may raise StorageFailed."""

    async def begin(self, name: KeyName, request: str, call_id: str) -> KeyedCall:
        """Return the call under this name, or a new one with this request and call_id, which is then stored."""
        ...

    async def keep(self, name: KeyName, result: KeptResult) -> bytes | None:
        """Store the result of the call under this name unless it has one. Return its result, or None if it is gone."""
        ...

    async def drop(self, name: KeyName, call_id: str) -> None:
        """Forget the call under this name, if it is still the one with this call_id."""
        ...

    async def sweep(self) -> int:
        """Forget expired calls, and return their number."""
        ...


class MemoryIdempotencyStore:
    """A bounded store that ends with the process."""

    def __init__(self, clock: Clock) -> None:
        self._now = clock.monotonic
        self._calls: OrderedDict[KeyName, tuple[KeyedCall, float]] = OrderedDict()  # with its expiry, oldest first

    def find(self, name: KeyName) -> KeyedCall | None:
        """Return the call under this name, or None."""
        known, expires_at = self._calls.get(name, (None, 0.0))
        return known if self._now() < expires_at else None

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
        known, expires_at = self._calls[name]
        if known.result is None:
            known = known._replace(result=result.whole)
            self._calls[name] = known, expires_at
        return known.result

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
        while found := await self._file.alone(partial(_sweep, self._now())):
            swept += found
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
