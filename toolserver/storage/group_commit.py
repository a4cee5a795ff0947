"""One SQLite file with group commit: everything that was acknowledged is on the disk.

The file has two threads, each with its own connection of the standard library's `sqlite3`: one writes, one reads. The
writer commits in groups: it takes all operations that are waiting, applies them in one transaction with one fsync, and
wakes the event loop once. There is no timer: a single caller is served immediately, and groups form under load.

It does not use aiosqlite, because there every statement is a trip between two threads, and the GIL is handed over on
each trip. Here a whole group is one trip, at a twentieth of the CPU with 64 callers (`python -m bench.ledger`).

Only the SQLite stores (`sqlite*` modules) pass functions over a connection to this class; see `docs/architecture.md`.
"""

import asyncio
import logging
import secrets
import sqlite3
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from toolserver.errors import ToolserverError
from toolserver.storage.errors import StorageClosed, StorageFailed
from toolserver.storage.file_guard import FileGuard
from toolserver.storage.row_seal import SealedConnection
from toolserver.storage.sealed_file import data_version, is_small, open_sealed
from toolserver.storage.transactions import (
    Job,
    PendingOperation,
    Run,
    WrongOutcomes,
    commit_group,
    fail_group,
    read_each,
    run_jobs,
)

log = logging.getLogger(__name__)

A = TypeVar("A")
R = TypeVar("R")

GROUP = 128  # operations per transaction: enough to make the fsync cheap, few enough to keep the last one's wait short
BUSY_MS = 2000  # how long to wait until another process, such as the command line, has finished writing
RIDE_S = 1.0  # how long an operation that nobody waits for may wait for others to share their commit
SERVED_BUSY_MS = 400  # the same where callers wait: who waits for a group and then its own is answered within 2 s


def connect(path: Path, *, busy_ms: int = BUSY_MS) -> SealedConnection:
    """Open a connection that waits for other processes, checks foreign keys and syncs every commit to the disk."""
    db = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, cached_statements=256, factory=SealedConnection
    )
    try:
        for pragma in (f"busy_timeout={busy_ms}", "synchronous=FULL", "foreign_keys=ON"):
            db.execute(f"PRAGMA {pragma}")
    except sqlite3.Error:
        db.close()
        raise
    return db


def private(path: Path) -> None:
    """Create the file, readable by its owner only, before it has content. SQLite gives its side files the same mode."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600)


@asynccontextmanager
async def durable(path: Path, *, least_free: int = 0) -> AsyncIterator["GroupCommit"]:
    """Open the file, which is created and migrated when necessary. On leaving, all waiting writes are finished first.

    Nothing is written while fewer than `least_free` bytes are free on the disk.

    Raises:
        NewerDatabase, ForeignDatabase, MigrationChanged: the file is not ours to write.
        StorageFailed: the file is no database, or cannot be opened.
    """
    try:
        file = await anyio.to_thread.run_sync(partial(GroupCommit, path, least_free=least_free))
    except (sqlite3.Error, OSError) as error:
        raise StorageFailed(f"{path} cannot be opened: {error}") from error
    file.start(asyncio.get_running_loop())
    try:
        yield file
    finally:
        with anyio.CancelScope(shield=True):
            await file.close()


class GroupCommit:
    """A writer, a reader and the queues in front of them. Made by `durable()`."""

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

        def write(db: sqlite3.Connection, group: list[PendingOperation]) -> list[Any]:
            checks = (guard.check_file, guard.check_room, self.rows.require_ours)
            return fail_group(group, *checks) or commit_group(db, group)

        def read(db: sqlite3.Connection, group: list[PendingOperation]) -> list[Any]:
            return fail_group(group, guard.check_file, self.rows.require_ours) or read_each(db, group)

        self._writer = _WriterLane(f"{path.name} writer", db, write)
        self._reader = _WriterLane(f"{path.name} reader", reading, read)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._writer.start(loop)
        self._reader.start(loop)

    async def close(self) -> None:
        await self._reader.close()
        await self._writer.close()
        self._guard.close()
        await anyio.to_thread.run_sync(self.rows.note_progress)

    async def probe(self) -> None:
        """Write to the file and wait for the disk, as every other write does. Raises StorageFailed."""
        await self.alone(touch_file)

    async def check_rows_at_start(self) -> None:
        """Check the rows of a file now, unless it is large. Raises RowsRewritten."""
        if await self.read(is_small):
            await self.check_rows()

    async def check_rows(self) -> None:
        """Check every row of money, 5 us each, if somebody else wrote to the file since. Raises RowsRewritten."""
        version = await self.alone(data_version)
        if version != self.rows.checked_at:
            await anyio.to_thread.run_sync(self.rows.check)
            self.rows.checked_at = version

    def is_same_file(self) -> bool:
        """Whether the file at the path is still the one that was opened."""
        try:
            self._guard.check_file()
        except StorageFailed:
            return False
        return True

    async def together(self, run: Callable[[sqlite3.Connection, list[A]], list[R | Exception]], argument: A) -> R:
        """Apply one operation together with others: `run` gets the arguments of a group and returns an outcome each.

        It returns after the commit. A caller that is cancelled while waiting may find the operation applied or not.

        Raises:
            StorageFailed: nothing was written.
            WrongOutcomes: `run` returned the wrong number of outcomes; nothing was written.
            Exception: the outcome that `run` returned for this argument.
        """
        return await self._writer.ask(run, argument)  # type: ignore[no-any-return]

    def soon(self, run: Callable[[sqlite3.Connection, list[A]], list[Any]], argument: A) -> None:
        """Do the same without waiting for the outcome. A failure is logged, a refusal is not."""
        self._writer.ask(run, argument).add_done_callback(_log_failure)

    def ride(self, run: Callable[[sqlite3.Connection, list[A]], list[Any]], argument: A) -> None:
        """Do the same in the next group that is committed anyway, so that it costs no commit; within RIDE_S at most."""
        self._writer.ask(run, argument, rides=True).add_done_callback(_log_failure)

    async def alone(self, job: Job[R]) -> R:
        """Run one job within a group's transaction. If it raises, only its own writes are rolled back.

        A job may run twice, when another operation broke the group; only its last run counts. Raises StorageFailed.
        """
        return await self._writer.ask(run_jobs, job)  # type: ignore[no-any-return]

    async def read(self, job: Job[R]) -> R:
        """Run a short read. It sees everything that was committed before the call. Raises StorageFailed."""
        return await self._reader.ask(run_jobs, job)  # type: ignore[no-any-return]

    async def apart(self, job: Job[R]) -> R:
        """Run a long read on a connection and a thread of its own, on one snapshot. Raises StorageFailed."""
        self._guard.check_file()
        try:
            return await anyio.to_thread.run_sync(snapshot, self.path, job)
        except sqlite3.Error as error:
            raise StorageFailed(str(error)) from error


def name_file(db: sqlite3.Connection) -> None:
    """Give a new file a number of its own, by which it differs from every other, and write it to the file itself."""
    if not db.execute("PRAGMA user_version").fetchone()[0]:
        db.execute(f"PRAGMA user_version={1 + secrets.randbelow(2**31 - 1)}")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def touch_file(db: sqlite3.Connection) -> None:
    """Write the file's number once more, which changes nothing and has to reach the disk all the same."""
    number = db.execute("PRAGMA user_version").fetchone()[0]
    db.execute(f"PRAGMA user_version={number}")


def snapshot(path: Path, job: Job[R]) -> R:
    """Run a job that only reads within one transaction, so that it sees the database at one point in time."""
    db = connect(path)
    try:
        db.execute("PRAGMA query_only=ON")
        db.execute("BEGIN")
        return job(db)
    finally:
        db.close()


class _WriterLane:
    """A thread, its connection and its queue. Everything but `_work` runs on the event loop.

    A group is handed to the thread when the previous one is finished and the callers it woke have run: their next
    operations are then in the next group. So n callers form groups of n, not two alternating groups of half the size.
    """

    def __init__(
        self,
        name: str,
        db: sqlite3.Connection,
        serve: Callable[[sqlite3.Connection, list[PendingOperation]], list[Any]],
    ) -> None:
        self._db, self._serve = db, serve
        self._waiting: deque[PendingOperation] = deque()
        self._riding: list[PendingOperation] = []
        self._groups: SimpleQueue[list[PendingOperation] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._closed = False

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._idle = asyncio.Event()
        self._idle.set()
        self._thread.start()

    async def close(self) -> None:
        """Refuse new operations, finish the waiting ones and end the thread."""
        self._closed = True
        self._begin()
        await self._idle.wait()
        self._groups.put(None)
        await anyio.to_thread.run_sync(self._thread.join)
        self._db.close()

    def ask(self, run: Run, argument: Any, *, rides: bool = False) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = self._loop.create_future()
        if self._closed:
            answer.set_exception(StorageClosed("the database is closed"))
            return answer
        asked = PendingOperation(run, argument, answer)
        if rides:
            if not self._riding:
                self._loop.call_later(RIDE_S, self._begin)
            self._riding.append(asked)
            return answer
        self._waiting.append(asked)
        self._begin()
        return answer

    def _begin(self) -> None:
        """Form a group as soon as the callers that run now have asked, unless one is under way."""
        if self._idle.is_set():
            self._idle.clear()
            self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        group, self._riding = self._riding, []
        room = GROUP + len(group)
        while self._waiting and len(group) < room:
            asked = self._waiting.popleft()
            if not asked.answer.cancelled():
                group.append(asked)
        if group:
            self._groups.put(group)
        else:
            self._idle.set()

    def _work(self) -> None:
        while (group := self._groups.get()) is not None:
            self._loop.call_soon_threadsafe(self._resolve, group, self._serve(self._db, group))

    def _resolve(self, group: list[PendingOperation], outcomes: list[Any]) -> None:
        for asked, outcome in zip(group, outcomes, strict=True):
            _set_outcome(asked.answer, outcome)
        self._loop.call_soon(self._hand_over)


def _set_outcome(answer: asyncio.Future[Any], outcome: Any) -> None:
    if answer.done():
        return  # cancelled meanwhile
    if isinstance(outcome, sqlite3.Error):
        failure = StorageFailed(str(outcome))
        failure.__cause__ = outcome
        answer.set_exception(failure)
    elif isinstance(outcome, Exception):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)


def _log_failure(answer: asyncio.Future[Any]) -> None:
    failure = None if answer.cancelled() else answer.exception()
    refused = isinstance(failure, ToolserverError) and not isinstance(failure, StorageFailed | WrongOutcomes)
    if failure is not None and not refused and not isinstance(failure, StorageClosed):
        log.error("a write in the background failed: %s", failure)
