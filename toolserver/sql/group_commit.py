"""Commit operations in groups: everything that was acknowledged is on disk.

A `Lane` is a thread with its own connection. The writer's takes all waiting operations,
applies them in one transaction with one fsync, and wakes the event loop once. There is no
timer: a single caller is served immediately, and groups form under load. An operation that
breaks its group fails alone: each of the group is then applied within its own savepoint.

Only stores (modules named `store`, `sql*` or `postgres*`) pass functions over a connection to
a `GroupCommit`; see `docs/architecture.md`.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import groupby
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

import anyio
import anyio.to_thread

from toolserver.core import tracing
from toolserver.errors import ToolserverError
from toolserver.sql.connection import SqlConnection
from toolserver.sql.errors import (
    DatabaseError,
    StorageClosed,
    StorageFailed,
    TransactionLost,
    name_error,
)
from toolserver.sql.sealed_file import SealedConnection

log = logging.getLogger(__name__)

A = TypeVar("A")
R = TypeVar("R")
Job = Callable[[SqlConnection], R]
Run = Callable[[SqlConnection, list[Any]], list[Any]]
GROUP = 128  # operations per transaction: enough to make the fsync cheap, few enough to keep the wait short
TOGETHER = " together"  # ends the name of a room that several instances may be in, but not while one is there alone
RIDE_S = 0.02  # how long an operation without a waiting caller waits to share the commit of others: 50 ms with its own


class PendingOperation(NamedTuple):
    """A waiting operation: the function that serves it and others like it, its argument, and its outcome's destination.

    `room` names what only one instance at a time may change if several share a database; '' if each row is locked.
    With `TOGETHER`, the operations lock their rows, and wait only for an instance that is alone in the room.
    """

    run: Run
    argument: Any
    answer: asyncio.Future[Any]
    room: str = ""


class WrongOutcomes(ToolserverError):
    """A function that serves a group returned a number of outcomes other than that of its arguments: a bug of ours."""


def run_group(run: Run, db: SqlConnection, arguments: list[Any]) -> list[Any]:
    """Return the outcomes of a group. Raises WrongOutcomes, as a caller would wait for ever or get a wrong outcome."""
    outcomes = run(db, arguments)
    if len(outcomes) != len(arguments):
        raise WrongOutcomes(f"{len(outcomes)} outcomes for {len(arguments)} operations of {run!r}")
    return outcomes


def apply_together(db: SqlConnection, group: list[PendingOperation]) -> list[Any]:
    """Apply adjacent operations with the same function together, in the order of their arrival."""
    outcomes: list[Any] = []
    for run, neighbours in groupby(group, key=lambda operation: operation.run):
        outcomes += run_group(run, db, [operation.argument for operation in neighbours])
    return outcomes


def apply_each(db: SqlConnection, group: list[PendingOperation]) -> list[Any]:
    """Apply each operation separately. One that raises leaves no changes, and its exception is its outcome."""
    return [_guard(db, partial(run_group, operation.run, db, [operation.argument]))[0] for operation in group]


def _guard(db: SqlConnection, work: Callable[[], list[Any]]) -> list[Any]:
    """Return the outcomes of `work`. If it raises, roll back its writes and return its exception."""
    db.execute("SAVEPOINT one")
    changed = db.changes.size if isinstance(db, SealedConnection) else 0
    try:
        outcomes = work()
    except TransactionLost:
        raise  # no operation is to blame, so the whole group is run again
    except Exception as failure:
        db.execute("ROLLBACK TO one")  # raises if SQLite gave up the whole transaction, so that the group fails
        if isinstance(db, SealedConnection):
            db.changes.cut(changed)
        outcomes = [name_error(failure)]
    db.execute("RELEASE one")
    return outcomes


def run_jobs(db: SqlConnection, jobs: list[Job[Any]]) -> list[Any]:
    """Run jobs one after another. One that raises leaves no changes."""
    outcomes: list[Any] = []
    for job in jobs:
        outcomes += _guard(db, lambda job=job: [job(db)])  # type: ignore[misc]
    return outcomes


class StoreLoad(NamedTuple):
    """What a store on a server has done and what waits: groups, the seconds that they took, and how many ran again."""

    connections: int
    waiting: int
    owed: int
    groups: int
    busy_s: float
    retries: int


class Lane:
    """A thread and its queue. The thread runs only `serve`, with each group, and at its end `finish`.

    A group is passed to the thread when the previous one is finished and the callers that it
    woke have run, so that their next operations are in the next group. So n callers form
    groups of n, not two alternating groups of half n.
    """

    def __init__(
        self,
        name: str,
        serve: Callable[[list[PendingOperation]], list[Any]],
        finish: Callable[[], None],
    ) -> None:
        self._serve, self._finish = serve, finish
        self._waiting: deque[PendingOperation] = deque()
        self._riding: list[PendingOperation] = []
        self._groups: SimpleQueue[list[PendingOperation] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._closed = False
        self.groups, self.busy_s = 0, 0.0  # groups served, and the seconds that they took

    @property
    def waiting(self) -> int:
        """The number of operations that no group has taken yet."""
        return len(self._waiting) + len(self._riding)

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

    def ask(self, run: Run, argument: Any, *, rides: bool = False, room: str = "") -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = self._loop.create_future()
        if self._closed:
            answer.set_exception(StorageClosed("the database is closed"))
            return answer
        operation = PendingOperation(run, argument, answer, room)
        if rides:
            if not self._riding:
                self._loop.call_later(RIDE_S, self._begin)
            self._riding.append(operation)
            return answer
        self._waiting.append(operation)
        self._begin()
        return answer

    def _begin(self) -> None:
        """Form a group as soon as the currently running callers have made their requests, unless one is in progress."""
        if self._idle.is_set():
            self._idle.clear()
            self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        group, self._riding = self._riding, []
        room = GROUP + len(group)
        while self._waiting and len(group) < room:
            operation = self._waiting.popleft()
            if not operation.answer.cancelled():
                group.append(operation)
        if group:
            self._groups.put(group)
        else:
            self._idle.set()

    def _work(self) -> None:
        while (group := self._groups.get()) is not None:
            began = time.monotonic()
            outcomes = self._serve(group)
            self.groups, self.busy_s = self.groups + 1, self.busy_s + time.monotonic() - began
            self._loop.call_soon_threadsafe(self._resolve, group, outcomes)
        self._finish()

    def _resolve(self, group: list[PendingOperation], outcomes: list[Any]) -> None:
        for operation, outcome in zip(group, outcomes, strict=True):
            _set_outcome(operation.answer, outcome)
        self._loop.call_soon(self._hand_over)


def _set_outcome(answer: asyncio.Future[Any], outcome: Any) -> None:
    if answer.done():
        return  # cancelled in the meantime
    if isinstance(outcome, DatabaseError):
        failure = StorageFailed(str(outcome))
        failure.__cause__ = outcome
        answer.set_exception(failure)
    elif isinstance(outcome, Exception):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)


class GroupCommit:
    """Applies a store's functions over a connection in groups, each group in one durable transaction.

    `SqliteGroupCommit` does it over a file, `PostgresGroupCommit` over a server that several instances share.
    """

    _writer: Lane
    shared = False  # True if other instances write to the same database
    patience_s = 0.0  # more time for each group of a server, while nobody waits for calls: a start

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start serving from this event loop."""
        raise NotImplementedError

    async def close(self) -> None:
        """Finish waiting operations and close the connections."""
        raise NotImplementedError

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serve from this event loop until the block is left, then complete all waiting writes."""
        self.start(asyncio.get_running_loop())
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await self.close()

    def measure(self) -> StoreLoad | None:
        """Return what the store on a server has done and what waits; None for a file."""
        return None

    async def probe(self) -> None:
        """Make a write that changes nothing and wait for the disk like any other write. Raises StorageFailed."""
        raise NotImplementedError

    async def check_rows_at_start(self) -> None:
        """Check the rows of money now, unless there are many. Raises RowsRewritten."""

    async def check_rows(self) -> None:
        """Check every row of money of a file, 3 us each, if another program has written since. Raises RowsRewritten.

        On both engines, this notes beside the data how far the seals have come. It and the
        methods beside it do nothing where rows are not sealed.
        """

    async def find_rewritten(self) -> list[str]:
        """Describe rows that this service did not write; empty if rows are not sealed."""
        return []

    async def describe_sealing(self) -> str | None:
        """Say why rows are not checked; None if they are, or if no other program can reach them."""
        return None

    async def accept_rows(self) -> None:
        """Accept every row as it is now as our own, because a person vouches for it."""

    def is_same_file(self) -> bool:
        """Return True if the opened file is still in place; it is where there is no file."""
        return True

    async def together(
        self, run: Callable[[SqlConnection, list[A]], list[R | Exception]], argument: A, *, room: str = ""
    ) -> R:
        """Apply one operation together with others: `run` gets the arguments of a group and returns an outcome each.

        If instances share the database, only one at a time is in a `room`, in a transaction
        with only that room's operations. This returns after the commit. If a caller is
        cancelled while it waits, the operation may or may not be applied.

        Raises:
            OutcomeUnknown: a server was lost while it committed; this does not happen with a file.
            StorageFailed: nothing was written.
            WrongOutcomes: `run` returned the wrong number of outcomes; nothing was written.
            Exception: the outcome that `run` returned for this argument.
        """
        if tracing.tracer is None:
            return await self._writer.ask(run, argument, room=room)  # type: ignore[no-any-return]
        with tracing.span("ledger", operation=type(argument).__name__):
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


def log_failure(answer: asyncio.Future[Any]) -> None:
    """Log why a write in the background failed, unless it was refused or the store is closed."""
    failure = None if answer.cancelled() else answer.exception()
    refused = isinstance(failure, ToolserverError) and not isinstance(failure, StorageFailed | WrongOutcomes)
    if failure is not None and not refused and not isinstance(failure, StorageClosed):
        log.error("a write in the background failed: %s", failure)
