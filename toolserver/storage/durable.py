"""One SQLite file in which whatever was acknowledged is on the disk.

Two threads of its own, each with its own connection of the standard library's `sqlite3`: one writes, one reads. The
writer commits in groups: it takes whatever waits, does it in one transaction with one fsync, and wakes the event loop
once. There is no timer: a lone caller is served at once, and under load groups form by themselves.

Not aiosqlite: that makes every statement a trip between two threads, and the GIL is handed over at each. Here a whole
group is one trip, at a twentieth of the CPU with 64 callers (`python -m bench.ledger`).
"""

import asyncio
import logging
import sqlite3
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import groupby
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

import anyio
import anyio.to_thread

from toolserver.errors import ToolserverError
from toolserver.storage.migrate import migrate

log = logging.getLogger(__name__)

A = TypeVar("A")
R = TypeVar("R")
Job = Callable[[sqlite3.Connection], R]

GROUP = 128  # operations a transaction: enough to make the fsync cheap, few enough to keep the last one's wait short
BUSY_MS = 2000  # how long to wait for another process, say the command line, to finish writing


class StorageClosed(ToolserverError):
    """The file was closed before this could be done."""


_Run = Callable[[sqlite3.Connection, list[Any]], list[Any]]


class _Asked(NamedTuple):
    run: _Run
    argument: Any
    answer: asyncio.Future[Any]


def connect(path: Path) -> sqlite3.Connection:
    """A connection that waits for others, keeps foreign keys and syncs every commit to the disk."""
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
    try:
        for pragma in (f"busy_timeout={BUSY_MS}", "synchronous=FULL", "foreign_keys=ON"):
            db.execute(f"PRAGMA {pragma}")
    except sqlite3.Error:
        db.close()
        raise
    return db


def private(path: Path) -> None:
    """Make the file, readable by its owner only, before anything is in it. Its side files get the same mode."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.touch(mode=0o600)


@asynccontextmanager
async def durable(path: Path) -> AsyncIterator["Durable"]:
    """The file, made and migrated if need be; on leaving, everything that waits is written first.

    Raises:
        NewerDatabase, ForeignDatabase, MigrationChanged: the file is not ours to write.
    """
    file = await anyio.to_thread.run_sync(Durable, path)
    file.start(asyncio.get_running_loop())
    try:
        yield file
    finally:
        with anyio.CancelScope(shield=True):
            await file.close()


class Durable:
    """A writer, a reader and what waits for them. Made by `durable()`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        private(path)
        db = connect(path)
        try:
            db.execute("PRAGMA journal_mode=WAL")
            migrate(db)
            reading = connect(path)
            reading.execute("PRAGMA query_only=ON")
        except BaseException:
            db.close()
            raise
        self._writer = _Lane(f"{path.name} writer", db, _committed)
        self._reader = _Lane(f"{path.name} reader", reading, _answered)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._writer.start(loop)
        self._reader.start(loop)

    async def close(self) -> None:
        await self._reader.close()
        await self._writer.close()

    async def together(self, run: Callable[[sqlite3.Connection, list[A]], list[R | Exception]], argument: A) -> R:
        """Do what may be done for many at once: `run` is given a group's arguments and returns an outcome for each.

        It returns after the commit. What is cancelled while it waits is either not done or done unheard.

        Raises:
            StorageClosed, sqlite3.Error: nothing was written.
            Exception: the outcome `run` gave for this argument.
        """
        return await self._writer.ask(run, argument)  # type: ignore[no-any-return]

    def soon(self, run: Callable[[sqlite3.Connection, list[A]], list[Any]], argument: A) -> None:
        """The same for those who do not wait for it; a failure, but not a refusal, is logged."""
        self._writer.ask(run, argument).add_done_callback(_log_failure)

    async def alone(self, job: Job[R]) -> R:
        """One job within a group's transaction; if it raises, what it wrote is undone and nothing else is.

        A job may be run twice, when another one spoiled the group; only its last run counts.
        """
        return await self._writer.ask(_each, job)  # type: ignore[no-any-return]

    async def read(self, job: Job[R]) -> R:
        """A short read. It sees everything committed before it was asked for."""
        return await self._reader.ask(_each, job)  # type: ignore[no-any-return]

    async def apart(self, job: Job[R]) -> R:
        """A long read, on a connection and a thread of its own, seeing one moment."""
        return await anyio.to_thread.run_sync(snapshot, self.path, job)


def snapshot(path: Path, job: Job[R]) -> R:
    """Run a job that only reads within one transaction: it sees the database as it is at one moment."""
    db = connect(path)
    try:
        db.execute("PRAGMA query_only=ON")
        db.execute("BEGIN")
        return job(db)
    finally:
        db.close()


class _Lane:
    """A thread, its connection, and those who wait for it. Everything but `_work` runs on the event loop.

    A group is handed over when the one before it is done and those it woke had their turn: what they ask for next is
    in the next group. So with n callers there are groups of n, not two of half the size taking turns.
    """

    def __init__(
        self, name: str, db: sqlite3.Connection, serve: Callable[[sqlite3.Connection, list[_Asked]], list[Any]]
    ) -> None:
        self._db, self._serve = db, serve
        self._waiting: deque[_Asked] = deque()
        self._groups: SimpleQueue[list[_Asked] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._closed = False

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._idle = asyncio.Event()
        self._idle.set()
        self._thread.start()

    async def close(self) -> None:
        """Refuse what comes from now on, finish what waits, end the thread."""
        self._closed = True
        await self._idle.wait()
        self._groups.put(None)
        await anyio.to_thread.run_sync(self._thread.join)
        self._db.close()

    def ask(self, run: _Run, argument: Any) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = self._loop.create_future()
        if self._closed:
            answer.set_exception(StorageClosed("the database is closed"))
            return answer
        self._waiting.append(_Asked(run, argument, answer))
        if self._idle.is_set():
            self._idle.clear()
            self._loop.call_soon(self._hand_over)
        return answer

    def _hand_over(self) -> None:
        group: list[_Asked] = []
        while self._waiting and len(group) < GROUP:
            asked = self._waiting.popleft()
            if not asked.answer.cancelled():
                group.append(asked)
        if group:
            self._groups.put(group)
        else:
            self._idle.set()

    def _work(self) -> None:
        while (group := self._groups.get()) is not None:
            self._loop.call_soon_threadsafe(self._done, group, self._serve(self._db, group))

    def _done(self, group: list[_Asked], outcomes: list[Any]) -> None:
        for asked, outcome in zip(group, outcomes, strict=True):
            if asked.answer.done():
                continue  # cancelled meanwhile
            if isinstance(outcome, Exception):
                asked.answer.set_exception(outcome)
            else:
                asked.answer.set_result(outcome)
        self._loop.call_soon(self._hand_over)


def _log_failure(answer: asyncio.Future[Any]) -> None:
    failure = None if answer.cancelled() else answer.exception()
    if failure is not None and not isinstance(failure, ToolserverError):
        log.error("a write nobody waited for failed: %r", failure)


def _answered(db: sqlite3.Connection, group: list[_Asked]) -> list[Any]:
    """The reader's group: a transaction for each, so that none sees less than was committed when it was asked for."""
    return [_caught(partial(asked.run, db, [asked.argument]))[0] for asked in group]


def _caught(work: Callable[[], list[Any]]) -> list[Any]:
    try:
        return work()
    except Exception as failure:
        return [failure]


def _committed(db: sqlite3.Connection, group: list[_Asked]) -> list[Any]:
    """The writer's group in one transaction. When one operation breaks it, once more with every one on its own."""
    try:
        return _transaction(db, group, _at_once)
    except Exception:
        log.exception("a group of writes failed; each is tried on its own")
    try:
        return _transaction(db, group, _one_by_one)
    except Exception as failure:
        return [failure] * len(group)


def _transaction(
    db: sqlite3.Connection, group: list[_Asked], do: Callable[[sqlite3.Connection, list[_Asked]], list[Any]]
) -> list[Any]:
    db.execute("BEGIN IMMEDIATE")
    try:
        outcomes = do(db, group)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return outcomes


def _at_once(db: sqlite3.Connection, group: list[_Asked]) -> list[Any]:
    """Neighbours that run the same are run together, in the order in which they came."""
    outcomes: list[Any] = []
    for run, neighbours in groupby(group, key=lambda asked: asked.run):
        outcomes += run(db, [asked.argument for asked in neighbours])
    return outcomes


def _one_by_one(db: sqlite3.Connection, group: list[_Asked]) -> list[Any]:
    return [_guarded(db, partial(asked.run, db, [asked.argument]))[0] for asked in group]


def _guarded(db: sqlite3.Connection, work: Callable[[], list[Any]]) -> list[Any]:
    """The outcomes of `work`; if it raises, that, and nothing of what it wrote."""
    db.execute("SAVEPOINT one")
    try:
        outcomes = work()
    except Exception as failure:
        db.execute("ROLLBACK TO one")  # raises when SQLite gave up the whole transaction: then the group fails
        outcomes = [failure]
    db.execute("RELEASE one")
    return outcomes


def _each(db: sqlite3.Connection, jobs: list[Job[Any]]) -> list[Any]:
    """Jobs one after the other; one that raises leaves nothing behind."""
    outcomes: list[Any] = []
    for job in jobs:
        outcomes += _guarded(db, lambda job=job: [job(db)])  # type: ignore[misc]
    return outcomes
