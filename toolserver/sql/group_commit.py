"""Write one SQLite file with group commit: everything that was acknowledged is on disk.

The file has two threads, each with its own connection of the standard library's `sqlite3`: one writes, one reads. The
writer commits in groups: it takes all waiting operations, applies them in one transaction with one fsync, and wakes the
event loop once. There is no timer: a single caller is served immediately, and groups form under load.

This module does not use aiosqlite, where every statement is a round trip between two threads that hands over the GIL.
Here a whole group is one round trip, at a twentieth of the CPU with 64 callers (`python -m bench.ledger`).

Only stores (modules named `store`, `sql*` or `postgres*`) pass functions over a connection to this class; see
`docs/architecture.md`.
"""

import asyncio
import logging
import secrets
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from toolserver.errors import ToolserverError
from toolserver.sql.connection import SqlConnection
from toolserver.sql.errors import DatabaseError, StorageClosed, StorageFailed, name_error
from toolserver.sql.failures import DATA_DIR, describe_disk_error
from toolserver.sql.file_guard import FileGuard
from toolserver.sql.lane import Lane
from toolserver.sql.row_seal import SealedConnection
from toolserver.sql.sealed_file import data_version, is_small, open_sealed
from toolserver.sql.transactions import (
    Job,
    PendingOperation,
    WrongOutcomes,
    commit_group,
    fail_group,
    read_each,
    run_jobs,
)

log = logging.getLogger(__name__)

A = TypeVar("A")
R = TypeVar("R")

BUSY_MS = 2000  # how long to wait for another process, such as the command line, to finish writing
SERVED_BUSY_MS = 400  # the same while callers wait: one that waits for a group and then its own is answered within 2 s


def connect(path: Path, *, busy_ms: int = BUSY_MS) -> SealedConnection:
    """Open a connection that waits for other processes, checks foreign keys and syncs every commit to disk.

    Raises DatabaseError.
    """
    try:
        db = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, cached_statements=256, factory=SealedConnection
        )
    except sqlite3.Error as error:
        raise name_error(error) from error
    try:
        for pragma in (f"busy_timeout={busy_ms}", "synchronous=FULL", "foreign_keys=ON"):
            db.execute(f"PRAGMA {pragma}")
    except DatabaseError:
        db.close()
        raise
    return db


def private(path: Path) -> None:
    """Create the file before it has content, readable only by its owner. SQLite gives its side files the same mode."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600)


@asynccontextmanager
async def durable(path: Path, *, least_free: int = 0) -> AsyncIterator["SqliteGroupCommit"]:
    """Open the file, and create and migrate it if necessary. Completes all waiting writes when the block is left.

    Nothing is written while fewer than `least_free` bytes are free on the disk.

    Raises:
        NewerDatabase, ForeignDatabase, MigrationChanged: this software must not write to the file.
        StorageFailed: the file is not a database, or cannot be opened.
    """
    try:
        file = await anyio.to_thread.run_sync(partial(SqliteGroupCommit, path, least_free=least_free))
    except (DatabaseError, OSError) as error:
        raise StorageFailed(describe_disk_error(error, path, DATA_DIR)) from error
    file.start(asyncio.get_running_loop())
    try:
        yield file
    finally:
        with anyio.CancelScope(shield=True):
            await file.close()


class GroupCommit:
    """Applies a store's functions over a connection in groups, each group in one durable transaction.

    `SqliteGroupCommit` does it over a file, `PostgresGroupCommit` over a server that several instances share.
    """

    _writer: Lane
    shared = False  # True if other instances write to the same database

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start serving from this event loop."""
        raise NotImplementedError

    async def close(self) -> None:
        """Finish waiting operations and close the connections."""
        raise NotImplementedError

    async def probe(self) -> None:
        """Make a write that changes nothing and wait for the disk like any other write. Raises StorageFailed."""
        raise NotImplementedError

    async def check_rows_at_start(self) -> None:
        """Check the rows of money now, unless there are many. Raises RowsRewritten."""
        raise NotImplementedError

    async def check_rows(self) -> None:
        """Check every row of money, 5 us each, if another program has written since. Raises RowsRewritten."""
        raise NotImplementedError

    async def find_rewritten(self) -> list[str]:
        """Describe rows that this service did not write; empty if rows are not sealed."""
        raise NotImplementedError

    async def accept_rows(self) -> None:
        """Accept every row as it is now as our own, because a person vouches for it."""
        raise NotImplementedError

    def is_same_file(self) -> bool:
        """Return True if the opened file is still in place."""
        raise NotImplementedError

    async def together(
        self, run: Callable[[SqlConnection, list[A]], list[R | Exception]], argument: A, *, room: str = ""
    ) -> R:
        """Apply one operation together with others: `run` gets the arguments of a group and returns an outcome each.

        If instances share the database, only one at a time is in a `room`, in a transaction with only that room's
        operations. This returns after the commit. If a caller is cancelled while it waits, the operation may or may not
        be applied.

        Raises:
            OutcomeUnknown: a server was lost while it committed; this does not happen with a file.
            StorageFailed: nothing was written.
            WrongOutcomes: `run` returned the wrong number of outcomes; nothing was written.
            Exception: the outcome that `run` returned for this argument.
        """
        return await self._writer.ask(run, argument, room=room)  # type: ignore[no-any-return]

    def soon(self, run: Callable[[SqlConnection, list[A]], list[Any]], argument: A) -> None:
        """Do the same without waiting for the outcome. A failure is logged, a refusal is not."""
        self._writer.ask(run, argument).add_done_callback(log_failure)

    def ride(self, run: Callable[[SqlConnection, list[A]], list[Any]], argument: A) -> None:
        """Do the same in the next group that is committed anyway, at no extra commit; within RIDE_S at most."""
        self._writer.ask(run, argument, rides=True).add_done_callback(log_failure)

    async def alone(self, job: Job[R], *, room: str = "") -> R:
        """Run one job within a group's transaction. If it raises, only its own writes are rolled back.

        See `together` for `room`: nobody else changes what a job reads in it until the job has committed.

        A job may run twice if another operation broke the group; only its last run counts. Raises StorageFailed.
        """
        return await self._writer.ask(run_jobs, job, room=room)  # type: ignore[no-any-return]

    async def read(self, job: Job[R]) -> R:
        """Run a short read. It sees everything that was committed before the call. Raises StorageFailed."""
        raise NotImplementedError

    async def apart(self, job: Job[R]) -> R:
        """Run a long read on its own connection and thread, on one snapshot. Raises StorageFailed."""
        raise NotImplementedError


class SqliteGroupCommit(GroupCommit):
    """A writer and a reader of one file. Created by `durable()`."""

    def __init__(self, path: Path, *, least_free: int = 0) -> None:
        self.path = path
        private(path)
        db = connect(path, busy_ms=SERVED_BUSY_MS)
        try:
            db.execute("PRAGMA journal_mode=WAL")
            self.rows = open_sealed(db, path)
            name_file(db)
            reading = connect(path, busy_ms=SERVED_BUSY_MS)
            reading.execute("PRAGMA query_only=ON")
            self._guard = guard = FileGuard(path, least_free=least_free)
        except BaseException:
            db.close()
            raise

        self._db = db

        def write(group: list[PendingOperation]) -> list[Any]:
            checks = (guard.check_file, guard.check_room, self.rows.require_ours)
            return fail_group(group, *checks) or commit_group(db, group)

        def read(group: list[PendingOperation]) -> list[Any]:
            return fail_group(group, guard.check_file, self.rows.require_ours) or read_each(reading, group)

        self._writer = Lane(f"{path.name} writer", write, db.close)
        self._reader = Lane(f"{path.name} reader", read, reading.close)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._writer.start(loop)
        self._reader.start(loop)

    async def close(self) -> None:
        await self._reader.close()
        await self._writer.close()
        self._guard.close()
        await anyio.to_thread.run_sync(self.rows.note_progress)

    async def probe(self) -> None:
        await self.alone(touch_file)

    async def check_rows_at_start(self) -> None:
        if await self.read(is_small):
            await self.check_rows()

    async def check_rows(self) -> None:
        version = await self.alone(data_version)
        if version != self.rows.checked_at:
            await anyio.to_thread.run_sync(self.rows.check)
            self.rows.checked_at = version

    async def find_rewritten(self) -> list[str]:
        return await self.apart(self.rows.find_rewritten)

    async def accept_rows(self) -> None:
        await self.alone(self.rows.accept)

    def is_same_file(self) -> bool:
        """Return True if the file at the path is still the one that was opened."""
        try:
            self._guard.check_file()
        except StorageFailed:
            return False
        return True

    async def read(self, job: Job[R]) -> R:
        return await self._reader.ask(run_jobs, job)  # type: ignore[no-any-return]

    async def apart(self, job: Job[R]) -> R:
        self._guard.check_file()
        try:
            return await anyio.to_thread.run_sync(snapshot, self.path, job)
        except DatabaseError as error:
            raise StorageFailed(str(error)) from error


def name_file(db: SqlConnection) -> None:
    """Give a new file its own number, which distinguishes it from all others, and write the number to the file."""
    if not db.execute("PRAGMA user_version").fetchone()[0]:
        db.execute(f"PRAGMA user_version={1 + secrets.randbelow(2**31 - 1)}")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def touch_file(db: SqlConnection) -> None:
    """Write the file's number again, which changes nothing but must still reach the disk."""
    number = db.execute("PRAGMA user_version").fetchone()[0]
    db.execute(f"PRAGMA user_version={number}")


def snapshot(path: Path, job: Job[R]) -> R:
    """Return the result of a read-only job on one snapshot. Raises DatabaseError."""
    with open_snapshot(path) as db:
        return job(db)


@contextmanager
def open_snapshot(path: Path) -> Iterator[SqlConnection]:
    """Open a connection for reading, within one transaction that sees the database at one point in time.

    Raises DatabaseError.
    """
    db = connect(path)
    try:
        db.execute("PRAGMA query_only=ON")
        db.execute("BEGIN")
        yield db
    except sqlite3.Error as error:
        raise name_error(error) from error
    finally:
        db.close()


def log_failure(answer: asyncio.Future[Any]) -> None:
    """Log why a write in the background failed, unless it was refused or the store is closed."""
    failure = None if answer.cancelled() else answer.exception()
    refused = isinstance(failure, ToolserverError) and not isinstance(failure, StorageFailed | WrongOutcomes)
    if failure is not None and not refused and not isinstance(failure, StorageClosed):
        log.error("a write in the background failed: %s", failure)
