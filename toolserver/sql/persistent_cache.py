"""Store the last good answers on disk: source bodies and rendered answers survive restarts and are shared by processes.

Losing this file costs only a warm start, so it is written asynchronously, after the answers are sent.
"""

import logging
import sqlite3
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiosqlite
import anyio
import anyio.to_thread
import msgspec
from anyio.abc import TaskStatus

from toolserver.core.metrics import KEEP_H
from toolserver.core.models import DataPoint
from toolserver.sql.errors import ForeignDatabase, MigrationChanged, StorageFailed
from toolserver.sql.failures import DATA_DIR, describe_disk_error
from toolserver.sql.migrate import CACHE_ID, Migration, migrate
from toolserver.sql.sqlite import BUSY_MS, private
from toolserver.upstream.member_watch import FORGET_S
from toolserver.upstream.source import StoredBody
from toolserver.upstream.source_health import CHANGES, QUARTER_S, QUARTERS, SourceChange, SourceQuarter

log = logging.getLogger(__name__)

MIGRATIONS = (
    Migration(
        1,
        "bodies_and_answers",
        """
    CREATE TABLE body(
      source TEXT NOT NULL, key TEXT NOT NULL, fetched_at REAL NOT NULL, drop_at REAL NOT NULL,
      validators TEXT NOT NULL, packed BLOB NOT NULL, PRIMARY KEY(source, key)) WITHOUT ROWID;
    CREATE INDEX body_drop_at ON body(drop_at);
    CREATE TABLE answer(
      key TEXT PRIMARY KEY, expires_at REAL NOT NULL, packed BLOB NOT NULL) WITHOUT ROWID;
    CREATE INDEX answer_expires_at ON answer(expires_at);
    """,
    ),
    Migration(
        2,
        "usage",
        """
    CREATE TABLE usage(
      hour INTEGER NOT NULL, family TEXT NOT NULL, hits INTEGER NOT NULL, PRIMARY KEY(hour, family)) WITHOUT ROWID;
    """,
    ),
    Migration(
        3,
        "points",
        """
    CREATE TABLE point(
      series TEXT NOT NULL, key TEXT NOT NULL, at REAL NOT NULL, value REAL NOT NULL, keep_s REAL NOT NULL,
      PRIMARY KEY(series, key, at)) WITHOUT ROWID;
    """,
    ),
    Migration(
        4,
        "source_history",
        """
    CREATE TABLE source_quarter(
      source TEXT NOT NULL, quarter INTEGER NOT NULL, good INTEGER NOT NULL, old INTEGER NOT NULL,
      failed INTEGER NOT NULL, good_at REAL, last_at REAL NOT NULL, last TEXT NOT NULL,
      PRIMARY KEY(source, quarter)) WITHOUT ROWID;
    CREATE TABLE source_change(
      at REAL NOT NULL, source TEXT NOT NULL, kind TEXT NOT NULL, reason TEXT NOT NULL,
      PRIMARY KEY(at, source)) WITHOUT ROWID;
    """,
    ),
    Migration(
        5,
        "member_counts",
        """
    CREATE TABLE member_counts(
      source TEXT NOT NULL, key TEXT NOT NULL, at REAL NOT NULL, counts TEXT NOT NULL,
      PRIMARY KEY(source, key)) WITHOUT ROWID;
    """,
    ),
)
WAITING = 2000  # maximum writes in the queue; beyond that, the oldest is dropped and counted
# Each statement is a trip to the connection's thread, so what arrives within this time is written together.
GATHER_S = 0.05
SWEEP_S = 600.0
MOST_BYTES = 256_000_000  # maximum file size; beyond that, the oldest answers are removed, a tenth at a time
MEASURE_EVERY = 200  # writes
_USED = """SELECT (page_count - freelist_count) * page_size
  FROM pragma_page_count, pragma_freelist_count, pragma_page_size"""
_REMOVE_OLDEST = tuple(
    f"""DELETE FROM {table} WHERE {order} <= (
      SELECT {order} FROM {table} ORDER BY {order} LIMIT 1 OFFSET (SELECT count(*) / 10 FROM {table}))"""
    for table, order in (("body", "fetched_at"), ("answer", "expires_at"))
)

_RENEW = "UPDATE body SET drop_at=drop_at+(?1-fetched_at), fetched_at=?1 WHERE source=?2 AND key=?3"

_Write = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A rendered answer and the facts its headers need."""

    payload: bytes
    facts: dict[str, Any]


class PersistentCache:
    """A write-behind store over one SQLite connection."""

    def __init__(
        self,
        db: aiosqlite.Connection,
        *,
        now: Callable[[], datetime],
        most_bytes: int = MOST_BYTES,
        measure_every: int = MEASURE_EVERY,
    ) -> None:
        self._db, self._now = db, now
        self._most_bytes, self._measure_every = most_bytes, measure_every
        self._waiting: dict[tuple[str, ...], _Write] = {}
        self._wake = anyio.Event()
        self.dropped = 0
        self._unmeasured = 0  # writes since the file was last measured

    async def load(self, source: str, key: str) -> StoredBody | None:
        """Return the last good body of a source's query."""
        sql = "SELECT packed, fetched_at, validators FROM body WHERE source=? AND key=?"
        rows = await self._read(sql, (source, key))
        if not rows:
            return None
        row = rows[0]
        return StoredBody(zlib.decompress(row[0]), datetime.fromtimestamp(row[1], UTC), msgspec.json.decode(row[2]))

    def save(self, source: str, key: str, stored: StoredBody, *, keep_s: float) -> None:
        at = stored.fetched_at.timestamp()
        validators = msgspec.json.encode(stored.validators).decode()
        sql = "INSERT OR REPLACE INTO body VALUES(?,?,?,?,?,?)"
        self._waiting.pop(("renew", source, key), None)  # renewals are written after all bodies
        self._soon(("body", source, key), (sql, (source, key, at, at + keep_s, validators, stored.body)))

    def renew(self, source: str, key: str, fetched_at: datetime) -> None:
        self._soon(("renew", source, key), (_RENEW, (fetched_at.timestamp(), source, key)))

    async def load_answer(self, key: str) -> StoredAnswer | None:
        """Return a rendered answer that has not expired."""
        sql = "SELECT packed FROM answer WHERE key=? AND expires_at>?"
        rows = await self._read(sql, (key, self._now().timestamp()))
        if not rows:
            return None
        facts, _, payload = zlib.decompress(rows[0][0]).partition(b"\n")
        return StoredAnswer(payload, msgspec.json.decode(facts))

    def save_answer(self, key: str, stored: StoredAnswer, *, expires_at: float) -> None:
        packed = msgspec.json.encode(stored.facts) + b"\n" + stored.payload
        self._soon(("answer", key), ("INSERT OR REPLACE INTO answer VALUES(?,?,?)", (key, expires_at, packed)))

    async def load_history(self) -> list[tuple[str, str, float, float, float]]:
        """Return the points of all time series, `(series, key, at, value, keep_s)`, oldest first."""
        sql = "SELECT series, key, at, value, keep_s FROM point WHERE at>?1-keep_s ORDER BY at"
        rows = await self._read(sql, (self._now().timestamp(),))
        return [(row[0], row[1], row[2], row[3], row[4]) for row in rows]

    def save_point(self, series: str, key: str, point: DataPoint, keep_s: float) -> None:
        at = point.at.timestamp()
        sql = "INSERT OR REPLACE INTO point VALUES(?,?,?,?,?)"
        self._soon(("point", series, key, repr(at)), (sql, (series, key, at, point.value, keep_s)))

    async def load_usage(self, since_hour: int) -> list[tuple[int, str, int]]:
        """Return calls per hour and family of agents."""
        sql = "SELECT hour, family, hits FROM usage WHERE hour>=?"
        return [(row[0], row[1], row[2]) for row in await self._read(sql, (since_hour,))]

    def save_usage(self, rows: list[tuple[int, str, int]]) -> None:
        for hour, family, hits in rows:
            sql = "INSERT OR REPLACE INTO usage VALUES(?,?,?)"
            self._soon(("usage", str(hour), family), (sql, (hour, family, hits)))

    async def load_quarters(self) -> list[tuple[str, SourceQuarter]]:
        """Return the sources' results of the past day by quarter hour, oldest first."""
        sql = """SELECT source, quarter, good, old, failed, good_at, last_at, last FROM source_quarter
          WHERE quarter>? ORDER BY quarter"""
        return [(row[0], SourceQuarter(*row[1:])) for row in await self._read(sql, (self._oldest_quarter(),))]

    def save_quarter(self, source: str, row: SourceQuarter) -> None:
        sql = "INSERT OR REPLACE INTO source_quarter VALUES(?,?,?,?,?,?,?,?)"
        self._soon(("quarter", source, str(row.quarter)), (sql, (source, *row)))

    async def load_changes(self) -> list[SourceChange]:
        """Return the last changes of sources, oldest first."""
        sql = "SELECT at, source, kind, reason FROM source_change ORDER BY at DESC LIMIT ?"
        return [SourceChange(*row) for row in reversed(await self._read(sql, (CHANGES,)))]

    def save_change(self, change: SourceChange) -> None:
        sql = "INSERT OR REPLACE INTO source_change VALUES(?,?,?,?)"
        self._soon(("change", repr(change.at), change.source), (sql, tuple(change)))

    async def load_members(self) -> list[tuple[str, str, float, dict[str, dict[str, Any]]]]:
        """Return how many rows had each member, `(source, key, saved_at, members)`, oldest first."""
        rows = await self._read("SELECT source, key, at, counts FROM member_counts ORDER BY at", ())
        return [(row[0], row[1], row[2], msgspec.json.decode(row[3])) for row in rows]

    def save_members(self, source: str, key: str, at: float, members: dict[str, dict[str, Any]]) -> None:
        sql, counts = "INSERT OR REPLACE INTO member_counts VALUES(?,?,?,?)", msgspec.json.encode(members).decode()
        self._soon(("members", source, key), (sql, (source, key, at, counts)))

    def _oldest_quarter(self) -> int:
        """Return the last quarter hour that is older than a day."""
        return int(self._now().timestamp() // QUARTER_S) - QUARTERS

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Write queued answers until cancelled, then the rest."""
        task_status.started()
        next_sweep = self._now().timestamp()
        try:
            while True:
                with anyio.move_on_after(SWEEP_S):
                    await self._wake.wait()
                    await anyio.sleep(GATHER_S)
                self._wake = anyio.Event()
                with anyio.CancelScope(shield=True):  # a cancellation inside would leave a transaction open
                    await self._flush()
                    await self._make_room()
                if (now := self._now().timestamp()) >= next_sweep:
                    next_sweep = now + SWEEP_S
                    await self.sweep(now)
        finally:
            with anyio.move_on_after(3, shield=True):
                await self._flush()

    async def _read(self, sql: str, values: tuple[Any, ...]) -> list[Any]:
        """Return the rows. If the file is damaged, log that and return none: the data will be fetched again."""
        try:
            return list(await self._db.execute_fetchall(sql, values))
        except aiosqlite.DatabaseError as error:
            log.warning("stored answers could not be read", extra={"error": str(error)})
            return []

    def _soon(self, name: tuple[str, ...], write: _Write) -> None:
        self._waiting.pop(name, None)
        if len(self._waiting) >= WAITING:
            self._waiting.pop(next(iter(self._waiting)))
            self.dropped += 1
        self._waiting[name] = write
        self._wake.set()

    async def _flush(self) -> None:
        if not self._waiting:
            return
        batch, self._waiting = list(self._waiting.values()), {}
        self._unmeasured += len(batch)
        packed = await anyio.to_thread.run_sync(_pack_by_statement, batch)
        try:
            await self._db.execute("BEGIN IMMEDIATE")
            for sql, rows in packed.items():
                await self._db.executemany(sql, rows)
            await self._db.execute("COMMIT")
        except aiosqlite.DatabaseError as error:
            log.warning("answers could not be stored", extra={"error": str(error), "count": len(batch)})
            await self._roll_back()
        except Exception:
            log.exception("answers could not be stored")
            await self._roll_back()

    async def _roll_back(self) -> None:
        """Roll back. On a full disk, SQLite may have done so already, or may fail at this too."""
        if self._db.in_transaction:
            with suppress(aiosqlite.DatabaseError):
                await self._db.execute("ROLLBACK")

    async def _make_room(self) -> None:
        """Remove the oldest tenth of the bodies and answers if the file is too large. Free pages are reused."""
        if self._unmeasured < self._measure_every:
            return
        self._unmeasured = 0
        rows = await self._read(_USED, ())
        if not rows or rows[0][0] <= self._most_bytes:
            return
        try:
            for sql in _REMOVE_OLDEST:
                await self._db.execute(sql)
            log.warning("the oldest stored answers were removed", extra={"bytes": rows[0][0]})
        except aiosqlite.DatabaseError as error:
            log.warning("old answers could not be removed", extra={"error": str(error)})

    async def sweep(self, now: float) -> None:
        """Delete what has expired at `now`, in Unix seconds. A failure is logged."""
        try:
            await self._db.execute("DELETE FROM body WHERE drop_at<?", (now,))
            await self._db.execute("DELETE FROM answer WHERE expires_at<?", (now,))
            await self._db.execute("DELETE FROM point WHERE at<?1-keep_s", (now,))
            await self._db.execute("DELETE FROM usage WHERE hour<?", (int(now // 3600) - KEEP_H,))
            await self._db.execute("DELETE FROM source_quarter WHERE quarter<=?", (self._oldest_quarter(),))
            await self._db.execute("DELETE FROM member_counts WHERE at<?", (now - FORGET_S,))
            newest = "SELECT at FROM source_change ORDER BY at DESC LIMIT 1 OFFSET ?"
            await self._db.execute(f"DELETE FROM source_change WHERE at<=({newest})", (CHANGES,))
        except aiosqlite.DatabaseError as error:
            log.warning("old answers could not be removed", extra={"error": str(error)})


def _pack_by_statement(batch: list[_Write]) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of each statement, renewals last. A row's last value is compressed if that is bytes."""
    rows: dict[str, list[tuple[Any, ...]]] = {}
    for sql, values in sorted(batch, key=lambda write: write[0] == _RENEW):
        packed = (*values[:-1], zlib.compress(values[-1], 1)) if isinstance(values[-1], bytes) else values
        rows.setdefault(sql, []).append(packed)
    return rows


@asynccontextmanager
async def open_database(
    path: Path, steps: Sequence[Migration], *, busy_ms: int = BUSY_MS
) -> AsyncIterator[aiosqlite.Connection]:
    """Open a file that the service can do without, and bring it up to date.

    A damaged file, or one of another form, is renamed, and a new one is created. Another
    process that writes to the file is waited for, `busy_ms` at most.

    Raises:
        NewerDatabase: newer software wrote the file, and may be running. The file is left unchanged.
        StorageFailed: the file is busy, cannot be written, or the disk is full.
    """
    async with AsyncExitStack() as stack:
        try:
            db = await stack.enter_async_context(_open(path, steps, busy_ms))
        except (aiosqlite.DatabaseError, ForeignDatabase, MigrationChanged) as error:
            if isinstance(error, aiosqlite.OperationalError):  # not the file's fault
                raise StorageFailed(describe_disk_error(error, path, DATA_DIR)) from error
            await stack.aclose()
            log.warning("an unusable file was set aside", extra={"file": _set_aside(path), "error": str(error)})
            db = await stack.enter_async_context(_open(path, steps, busy_ms))
        except OSError as error:
            raise StorageFailed(describe_disk_error(error, path, DATA_DIR)) from error
        yield db


@asynccontextmanager
async def _open(path: Path, steps: Sequence[Migration], busy_ms: int) -> AsyncIterator[aiosqlite.Connection]:
    await anyio.to_thread.run_sync(_prepare, path, steps, busy_ms)
    async with aiosqlite.connect(path, isolation_level=None) as db:
        await db.execute("PRAGMA synchronous=NORMAL")
        await db.execute(f"PRAGMA busy_timeout={busy_ms}")
        yield db


def _prepare(path: Path, steps: Sequence[Migration], busy_ms: int) -> None:
    """Create, check and migrate the file, in 5 ms for 10 MB. Raises aiosqlite.DatabaseError if a page is damaged."""
    private(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"PRAGMA busy_timeout={busy_ms}")
        db.execute("PRAGMA journal_mode=WAL")
        row = db.execute("PRAGMA quick_check(1)").fetchone()
        if row is None or row[0] != "ok":
            raise aiosqlite.DatabaseError(row[0] if row else "the check returned nothing")
        migrate(db, steps, application_id=CACHE_ID)


def _set_aside(path: Path) -> str:
    """Rename a file, without the side files that belong to it, and return its new name."""
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    return path.replace(path.with_name(f"{path.name}.damaged")).name
