"""Where the results of calls with an Idempotency-Key are kept: in memory, or in the ledger's file."""

import zlib
from collections import OrderedDict
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias

from toolserver.clock import Clock
from toolserver.ledger.protocol import milliseconds
from toolserver.storage.connection import SqlConnection
from toolserver.storage.group_commit import GroupCommit

KEEP_S = 24 * 3600.0
ENTRIES = 10_000  # in memory; beyond it the oldest are forgotten
SWEPT = 500  # rows deleted in one transaction

KeyName: TypeAlias = tuple[str, str]
"""A scope, such as the fingerprint of a token, and the caller's key within it."""


class KeyedCall(NamedTuple):
    """A call with a key: its request as a fingerprint, the call_id it charges under, and its result when it is done."""

    request: str
    call_id: str
    result: bytes | None = None


class IdempotencyStore(Protocol):
    """Calls by scope and key, each for `KEEP_S` seconds from when it began. Any method may raise StorageFailed."""

    async def begin(self, name: KeyName, request: str, call_id: str) -> KeyedCall:
        """The call under this name; when there is none, a new one with this request and call_id, stored on return."""
        ...

    async def keep(self, name: KeyName, result: bytes) -> None:
        """Store the result of the call under this name."""
        ...

    async def drop(self, name: KeyName, call_id: str) -> None:
        """Forget the call under this name, if it is still the one with this call_id."""
        ...

    async def sweep(self) -> int:
        """Forget expired calls. Returns how many."""
        ...


class MemoryIdempotencyStore:
    """Calls that end with the process, bounded."""

    def __init__(self, clock: Clock) -> None:
        self._now = clock.monotonic
        self._calls: OrderedDict[KeyName, tuple[KeyedCall, float]] = OrderedDict()  # with its expiry, oldest first

    async def begin(self, name: KeyName, request: str, call_id: str) -> KeyedCall:
        known, expires_at = self._calls.get(name, (None, 0.0))
        if known is not None and self._now() < expires_at:
            return known
        self._calls.pop(name, None)
        new = KeyedCall(request, call_id)
        self._calls[name] = new, self._now() + KEEP_S
        if len(self._calls) > ENTRIES:
            self._calls.popitem(last=False)
        return new

    async def keep(self, name: KeyName, result: bytes) -> None:
        if name in self._calls:
            known, expires_at = self._calls[name]
            self._calls[name] = known._replace(result=result), expires_at

    async def drop(self, name: KeyName, call_id: str) -> None:
        if name in self._calls and self._calls[name][0].call_id == call_id:
            del self._calls[name]

    async def sweep(self) -> int:
        expired = [name for name, (_, expires_at) in self._calls.items() if expires_at <= self._now()]
        for name in expired:
            del self._calls[name]
        return len(expired)


class SqliteIdempotencyStore:
    """Calls in the table `idempotency` of the ledger's file; results are compressed."""

    def __init__(self, file: GroupCommit, clock: Clock) -> None:
        self._file, self._now = file, milliseconds(clock)

    async def begin(self, name: KeyName, request: str, call_id: str) -> KeyedCall:
        return await self._file.alone(partial(_begin, name, KeyedCall(request, call_id), self._now()))

    async def keep(self, name: KeyName, result: bytes) -> None:
        await self._file.alone(partial(_keep, name, result))

    async def drop(self, name: KeyName, call_id: str) -> None:
        await self._file.alone(partial(_drop, name, call_id))

    async def sweep(self) -> int:
        swept = 0
        while found := await self._file.alone(partial(_sweep, self._now())):
            swept += found
        return swept


def _begin(name: KeyName, new: KeyedCall, now: int, db: SqlConnection) -> KeyedCall:
    db.execute("DELETE FROM idempotency WHERE scope=? AND key=? AND expires_at<=?", (*name, now))
    row = (*name, new.request, new.call_id, now + int(KEEP_S * 1000))
    db.execute("INSERT INTO idempotency VALUES(?,?,?,?,NULL,?) ON CONFLICT DO NOTHING", row)
    found = db.execute("SELECT request, call_id, outcome FROM idempotency WHERE scope=? AND key=?", name)
    request, call_id, packed = found.fetchone()
    return KeyedCall(request, call_id, None if packed is None else zlib.decompress(packed))


def _keep(name: KeyName, result: bytes, db: SqlConnection) -> None:
    db.execute("UPDATE idempotency SET outcome=? WHERE scope=? AND key=?", (zlib.compress(result, 1), *name))


def _drop(name: KeyName, call_id: str, db: SqlConnection) -> None:
    db.execute("DELETE FROM idempotency WHERE scope=? AND key=? AND call_id=?", (*name, call_id))


def _sweep(now: int, db: SqlConnection) -> int:
    sql = (
        "DELETE FROM idempotency WHERE (scope, key) IN (SELECT scope, key FROM idempotency WHERE expires_at<=? LIMIT ?)"
    )
    return db.execute(sql, (now, SWEPT)).rowcount
