"""Keep a ledger in one SQLite file: everything that was acknowledged is on disk.

The file has two threads, each with its own connection of the standard library's `sqlite3`:
one writes, one reads. This module does not use aiosqlite, where every statement is a round
trip between two threads that hands over the GIL. Here a whole group is one round trip, at a
twentieth of the CPU with 64 callers (`python -m bench.ledger`).

SQLite continues to write to a file that was deleted or replaced, and the data it acknowledges
is then lost. So a `FileGuard` checks the file before every group of operations, which takes a
few microseconds.
"""

import asyncio
import logging
import os
import secrets
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from toolserver.sql.connection import SqlConnection
from toolserver.sql.errors import (
    DatabaseError,
    DatabaseUnusable,
    StorageFailed,
    name_error,
)
from toolserver.sql.failures import DATA_DIR, describe_disk_error
from toolserver.sql.group_commit import (
    GroupCommit,
    Job,
    Lane,
    PendingOperation,
    apply_each,
    apply_together,
    run_group,
    run_jobs,
)
from toolserver.sql.migrate import migrate
from toolserver.sql.sealed_file import SealedConnection, data_version, is_small, open_sealed, seal_changes

log = logging.getLogger(__name__)

A = TypeVar("A")
R = TypeVar("R")

BUSY_MS = 2000  # how long to wait for another process, such as the command line, to finish writing
SERVED_BUSY_MS = 400  # the same while callers wait: one that waits for a group and then its own is answered within 2 s
MAGIC = b"SQLite format 3\0"
_OWNER = slice(60, 72)  # user_version, which identifies one file, the vacuum counter, and application_id

_UNNAMED = bytes(4)


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
    async with file.serving():
        yield file


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
            try:
                guard.check_file()
                guard.check_room()
                self.rows.require_ours()
            except StorageFailed as failure:
                return [failure] * len(group)
            return commit_group(db, group)

        def read(group: list[PendingOperation]) -> list[Any]:
            try:
                guard.check_file()
                self.rows.require_ours()
            except StorageFailed as failure:
                return [failure] * len(group)
            return read_each(reading, group)

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
        else:
            await anyio.to_thread.run_sync(self.rows.check_age)

    async def check_rows(self) -> None:
        version = await self.alone(data_version)
        if version != self.rows.checked_at:
            await anyio.to_thread.run_sync(self.rows.check)
            self.rows.checked_at = version
        await anyio.to_thread.run_sync(self.rows.note_progress)

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


@asynccontextmanager
async def in_memory() -> AsyncIterator["MemoryGroupCommit"]:
    """Open the tables of a ledger's file in memory, where they last until the block is left."""
    file = MemoryGroupCommit()
    async with file.serving():
        yield file


class MemoryGroupCommit(GroupCommit):
    """One connection to a database in memory, which writes and reads. Created by `in_memory()`.

    The first operation opens and migrates it, in 15 ms, because most services without a file
    never store anything. Its rows are not sealed: no other program can reach them.
    """

    def __init__(self) -> None:
        self._db: SealedConnection | None = None
        self._writer = Lane("memory", self._serve, self._finish)

    def _serve(self, group: list[PendingOperation]) -> list[Any]:
        if self._db is None:
            self._db = connect(Path(":memory:"))
            migrate(self._db)
        return commit_group(self._db, group)

    def _finish(self) -> None:
        if self._db is not None:
            self._db.close()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._writer.start(loop)

    async def close(self) -> None:
        await self._writer.close()

    async def probe(self) -> None:
        await self.alone(touch_file)

    async def read(self, job: Job[R]) -> R:
        return await self.alone(job)

    async def apart(self, job: Job[R]) -> R:
        return await self.alone(job)


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


def read_each(db: SqlConnection, group: list[PendingOperation]) -> list[Any]:
    """Serve a group of reads, each in its own transaction, so that each sees everything committed before it."""
    return [_catch(partial(run_group, operation.run, db, [operation.argument]))[0] for operation in group]


def _catch(work: Callable[[], list[Any]]) -> list[Any]:
    try:
        return work()
    except Exception as failure:
        return [name_error(failure)]


def commit_group(db: SqlConnection, group: list[PendingOperation]) -> list[Any]:
    """Apply a group of writes in one transaction. If an operation breaks it, apply each one separately."""
    try:
        return _transact(db, group, apply_together)
    except Exception as failure:
        error = name_error(failure)
        if isinstance(error, DatabaseUnusable):
            log.error("the database cannot be written", extra={"reason": str(error)})
            return [error] * len(group)
        log.exception("a group of writes failed; each will be tried on its own")
    try:
        return _transact(db, group, apply_each)
    except Exception as failure:
        return [name_error(failure)] * len(group)


def _transact(
    db: SqlConnection,
    group: list[PendingOperation],
    do: Callable[[SqlConnection, list[PendingOperation]], list[Any]],
) -> list[Any]:
    db.execute("BEGIN IMMEDIATE")
    try:
        outcomes = do(db, group)
        seal_changes(db)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    finally:
        if isinstance(db, SealedConnection):
            db.changes.forget()
    return outcomes


class FileGuard:
    """Watches one file. Keeps a descriptor open, as closing one would drop the locks that SQLite holds in this process.

    `least_free` is the number of bytes that must be free on the disk for a write.
    """

    def __init__(self, path: Path, *, least_free: int = 0) -> None:
        self._path, self._least_free = path, least_free
        self._file = os.open(path, os.O_RDONLY)
        opened = os.fstat(self._file)
        self._identity = opened.st_dev, opened.st_ino
        self._owner = self._read_owner()

    def close(self) -> None:
        """Close the descriptor. Call this only after SQLite has closed the file."""
        os.close(self._file)

    def check_file(self) -> None:
        """Raise StorageFailed if the file was deleted, replaced or overwritten."""
        try:
            stat = os.stat(self._path)
        except OSError:
            raise StorageFailed(
                f"{self._path} is gone: put it back, or stop the service and restore a backup"
            ) from None
        if (stat.st_dev, stat.st_ino) != self._identity or not self._is_ours():
            raise StorageFailed(f"{self._path} is not the file that was opened: stop the service and restore a backup")

    def check_room(self) -> None:
        """Raise StorageFailed if the file cannot be written, or the disk is nearly full."""
        if not os.access(self._path, os.W_OK):
            raise StorageFailed(f"{self._path} cannot be written: it or its disk is read-only")
        if (free := free_bytes(self._path)) < self._least_free:
            raise StorageFailed(f"the disk of {self._path} is full: {free} bytes are free")

    def _is_ours(self) -> bool:
        """Return True if the file has its number, which another process may have kept off the disk during opening."""
        owner = self._read_owner()
        if owner is not None and self._owner is not None and self._owner.startswith(_UNNAMED):
            self._owner = owner
        return owner == self._owner

    def _read_owner(self) -> bytes | None:
        head = os.pread(self._file, 100, 0)
        return head[_OWNER] if head.startswith(MAGIC) else None


def free_bytes(path: Path) -> int:
    """Return the number of bytes that an ordinary user can still write to the disk of a path."""
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize
