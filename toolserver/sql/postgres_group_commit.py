"""Run group commit over PostgreSQL: one writer per instance, several readers, and a server that may vanish any time.

A group is one transaction, as on SQLite. Instances wait for each other only if they change
the same accounts. If a transaction ends through no fault of its own (a conflict, a lost
connection), it is run again as a whole after a random pause, until its time is over.

Only COMMIT cannot be repeated: if the connection is lost before its answer, the group may or
may not be written. The writer then asks the server by number how the transaction ended. Only
if no server answers in time is the outcome unknown to callers (`OutcomeUnknown`). Operations
given to `soon` and `ride` are retried.
"""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import count
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from toolserver.errors import ToolserverError
from toolserver.sql.connection import SqlConnection, hold_alone, hold_together
from toolserver.sql.errors import (
    ConstraintViolated,
    DatabaseError,
    OutcomeUnknown,
    StorageClosed,
    StorageFailed,
    TransactionLost,
)
from toolserver.sql.group_commit import (
    TOGETHER,
    GroupCommit,
    Job,
    Lane,
    PendingOperation,
    StoreLoad,
    apply_each,
    apply_together,
    log_failure,
    run_jobs,
)
from toolserver.sql.postgres import DATABASE_URL, PostgresConnection, PostgresTerms, ServerAway
from toolserver.sql.postgres_migrate import migrate_server
from toolserver.sql.sealed_server import SealedServer

log = logging.getLogger(__name__)

A = TypeVar("A")
R = TypeVar("R")
Serve = Callable[[PostgresConnection, list[PendingOperation]], list[Any]]

TRIES = 8  # attempts at a group that conflicts with others
START_TRIES, START_PAUSE_S = 3, 0.5  # attempts to open a database whose server answers and then loses us
FIND_OUT_S = 0.2  # extra time to ask how a transaction ended, after its own time is over
OWED = 20_000  # background writes kept while the server is unreachable; beyond this number, new ones are lost
OWED_S = (0.2, 5.0)  # first and longest pause before such a write is retried
_LONG_READ = """SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0;
  SET LOCAL enable_seqscan = on; SET LOCAL enable_hashjoin = on; SET LOCAL enable_mergejoin = on;
  SET LOCAL max_parallel_workers_per_gather = 2"""


@asynccontextmanager
async def open_postgres(terms: PostgresTerms) -> AsyncIterator["PostgresGroupCommit"]:
    """Open the database of a server and migrate it if necessary. Completes waiting writes when the block is left.

    Raises:
        NewerDatabase, ForeignDatabase, MigrationChanged: this software must not write to the database.
        StorageFailed: the server is unreachable or refuses us, or the driver is missing.
    """
    await anyio.to_thread.run_sync(_prepare, terms)
    store = PostgresGroupCommit(terms)
    async with store.serving():
        yield store


def _prepare(terms: PostgresTerms) -> None:
    """Migrate and seal the database; again if the connection is lost, as it may be on a machine under load."""
    for tried in range(1, START_TRIES + 1):
        db = PostgresConnection(terms)
        try:
            migrate_server(db)
            SealedServer(terms).begin()
            return
        except (DatabaseError, TransactionLost) as error:
            if tried == START_TRIES or not isinstance(error, TransactionLost) or not db.has_connected:
                raise StorageFailed(f"the database of {DATABASE_URL} cannot be opened: {error}") from error
            log.warning("the connection was lost while the database was opened", extra={"reason": str(error)})
        finally:
            db.close()
        time.sleep(START_PAUSE_S)


class PostgresGroupCommit(GroupCommit):
    """A writer and the readers of one instance. Created by `open_postgres()`."""

    shared = True

    def __init__(self, terms: PostgresTerms) -> None:
        self._terms = terms
        self._rows = SealedServer(terms)
        self._connections = [PostgresConnection(terms) for _ in range(1 + terms.readers)]
        writing, *reading = self._connections
        self._writer = _make_lane("writer", writing, self._guard(write_group))
        self._readers = [
            _make_lane(f"reader {number}", db, self._guard(read_group)) for number, db in enumerate(reading)
        ]
        self._turn = count()
        self._owed = 0
        self._closing = False

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        for lane in (self._writer, *self._readers):
            lane.start(loop)

    async def close(self) -> None:
        self._closing = True
        for lane in (*self._readers, self._writer):
            await lane.close()

    def measure(self) -> StoreLoad:
        lanes = (self._writer, *self._readers)
        return StoreLoad(
            connections=sum(db.is_open for db in self._connections),
            waiting=sum(lane.waiting for lane in lanes),
            owed=self._owed,
            groups=sum(lane.groups for lane in lanes),
            busy_s=sum(lane.busy_s for lane in lanes),
            retries=sum(db.retries for db in self._connections),
        )

    async def probe(self) -> None:
        await self.alone(_touch_server)

    async def check_rows_at_start(self) -> None:
        await anyio.to_thread.run_sync(self._rows.check_at_start)

    async def check_rows(self) -> None:
        await anyio.to_thread.run_sync(self._rows.note_progress)

    async def find_rewritten(self) -> list[str]:
        return await anyio.to_thread.run_sync(self._rows.find_rewritten)

    async def describe_sealing(self) -> str | None:
        return await anyio.to_thread.run_sync(self._rows.describe_sealing)

    async def accept_rows(self) -> None:
        await anyio.to_thread.run_sync(self._rows.accept)

    def _guard(self, serve: Serve) -> Serve:
        """Return the function that serves a group, and refuses it once rewritten rows have been found."""

        def guarded(db: PostgresConnection, group: list[PendingOperation]) -> list[Any]:
            db.patience_s = self.patience_s
            try:
                self._rows.require_ours()
            except StorageFailed as failure:
                return [failure] * len(group)
            return serve(db, group)

        return guarded

    def soon(self, run: Callable[[SqlConnection, list[A]], list[Any]], argument: A) -> None:
        self._ask_until_done(run, argument, rides=False, pause_s=OWED_S[0])

    def ride(self, run: Callable[[SqlConnection, list[A]], list[Any]], argument: A) -> None:
        self._ask_until_done(run, argument, rides=True, pause_s=OWED_S[0])

    async def read(self, job: Job[R]) -> R:
        lane = self._readers[next(self._turn) % len(self._readers)]
        return await lane.ask(run_jobs, job)  # type: ignore[no-any-return]

    async def apart(self, job: Job[R]) -> R:
        return await anyio.to_thread.run_sync(partial(read_snapshot, self._terms, job))

    def _ask_until_done(self, run: Any, argument: Any, *, rides: bool, pause_s: float) -> None:
        """Retry a background write until it succeeds: at some point the server returns."""

        def look(answer: asyncio.Future[Any]) -> None:
            failure = None if answer.cancelled() else answer.exception()
            away = isinstance(failure, StorageFailed) and not isinstance(failure, StorageClosed)
            if not away or self._closing or self._owed >= OWED:
                log_failure(answer)
                return
            if pause_s == OWED_S[0]:
                log.warning("a write in the background will be retried", extra={"reason": str(failure)})
            self._owed += 1
            self._loop.call_later(pause_s, again)

        def again() -> None:
            self._owed -= 1
            self._ask_until_done(run, argument, rides=rides, pause_s=min(2 * pause_s, OWED_S[1]))

        self._writer.ask(run, argument, rides=rides).add_done_callback(look)


def read_snapshot(terms: PostgresTerms, job: Job[R]) -> R:
    """Run a read-only job on its own connection, on one snapshot. Raises StorageFailed."""
    db = PostgresConnection(terms)
    try:
        db.begin(read_only=True)
        db.run_script(_LONG_READ)
        return job(db)
    except (DatabaseError, TransactionLost) as error:
        raise StorageFailed(str(error)) from error
    finally:
        db.close()


def write_group(db: PostgresConnection, group: list[PendingOperation]) -> list[Any]:
    """Apply a group in one transaction per room. Returns an outcome for each operation."""
    until = time.monotonic() + db.terms.work_s + db.patience_s
    return serve_rooms(group, lambda part: _write_room(db, part, until))


def _write_room(db: PostgresConnection, group: list[PendingOperation], until: float) -> list[Any]:
    """Apply the operations of a room together, or separately if one of them breaks the transaction."""
    try:
        if time.monotonic() >= until:
            raise TransactionLost("no time was left after the other rooms of the group")
        return _write(db, group, apply_together, until)
    except (StorageFailed, TransactionLost) as failure:
        return _all(group, failure)
    except (ToolserverError, ConstraintViolated) as refused:  # for example if two instances do the same at once
        reason = f"{type(refused).__name__}: {refused}"
        log.info("a group of writes was refused; each will be tried on its own", extra={"reason": reason})
    except Exception:
        log.exception("a group of writes failed; each will be tried on its own")
    try:
        return _write(db, group, apply_each, time.monotonic() + db.terms.work_s + db.patience_s)
    except Exception as failure:
        return _all(group, failure)


def read_group(db: PostgresConnection, group: list[PendingOperation]) -> list[Any]:
    """Serve a group of reads separately, so that a failure affects only one. They share one deadline."""
    until = time.monotonic() + db.terms.work_s + db.patience_s
    db.limit(until)
    return [_read_one(db, operation, until) for operation in group]


def _read_one(db: PostgresConnection, operation: PendingOperation, until: float) -> Any:
    def attempt() -> Any:
        db.connect()
        if not db.is_pooled:
            return _run_read(db, operation)
        db.begin()  # behind a pooler, only a transaction makes a statement be prepared and run on the same connection
        try:
            return _run_read(db, operation)
        finally:
            db.rollback()

    try:
        return _repeat(db, attempt, until)
    except Exception as failure:
        return _all([operation], failure)[0]


def _run_read(db: PostgresConnection, operation: PendingOperation) -> Any:
    """Return the outcome of a read. A refusal is an outcome; a lost connection is not."""
    try:
        return operation.argument(db)
    except TransactionLost:
        raise
    except Exception as failure:
        return failure


def _write(
    db: PostgresConnection,
    group: list[PendingOperation],
    do: Callable[[SqlConnection, list[PendingOperation]], list[Any]],
    until: float,
) -> list[Any]:
    db.limit(until)
    return _repeat(db, lambda: _transact(db, group, do, until), until)


def _repeat(db: PostgresConnection, attempt: Callable[[], R], until: float) -> R:
    """Return the result of the attempt, retried after a loss until the time or the tries are used up."""
    for tried in count(1):
        try:
            return attempt()
        except TransactionLost:
            pause = random.uniform(0, 0.005 * 2**tried)
            if tried == TRIES or time.monotonic() + pause >= until:
                raise
            db.retries += 1
            time.sleep(pause)
    raise AssertionError("unreachable")


def _transact(
    db: PostgresConnection,
    group: list[PendingOperation],
    do: Callable[[SqlConnection, list[PendingOperation]], list[Any]],
    until: float,
) -> list[Any]:
    db.begin()
    try:
        enter_room(db, group)
        outcomes = do(db, group)
        number = db.seal_changes()
        if number is None:  # nothing was written
            db.rollback()
            return outcomes
    except BaseException:
        db.rollback()
        raise
    try:
        db.commit()
    except ServerAway as lost:
        _require_committed(db, number, until, lost)
    return outcomes


def _require_committed(db: PostgresConnection, number: str, until: float, lost: ServerAway) -> None:
    """Return if the transaction with this number was committed after all.

    Raises:
        TransactionLost: it was not committed and never will be.
        OutcomeUnknown: no server said in time how it ended.
    """
    last = max(until, time.monotonic() + FIND_OUT_S)
    db.limit(last)
    state = None
    while state not in ("committed", "aborted") and time.monotonic() < last:
        with suppress(DatabaseError, TransactionLost):
            state = db.execute("SELECT pg_xact_status(CAST(CAST(? AS text) AS xid8))", (number,)).fetchone()[0]
        time.sleep(0.005)
    if state == "aborted":
        raise TransactionLost(str(lost)) from lost
    if state != "committed":
        db.drop()
        raise OutcomeUnknown(f"the server was lost while it committed: {lost}") from lost


def _touch_server(db: SqlConnection) -> None:
    """Write a message to the server's write-ahead log, which changes nothing but must still reach the disk."""
    db.execute("SELECT pg_current_xact_id(), pg_logical_emit_message(true, 'toolserver', '')")


def _make_lane(name: str, db: PostgresConnection, serve: Serve) -> Lane:
    return Lane(f"postgres {name}", partial(serve, db), db.close)


def _all(group: list[PendingOperation], failure: Exception) -> list[Any]:
    """Return the failure for each operation. For callers, a retryable failure is a failed store."""
    if isinstance(failure, TransactionLost):
        log.error("the database cannot be used", extra={"reason": str(failure)})
        failure = StorageFailed(str(failure))
    return [failure] * len(group)


def serve_rooms(group: list[PendingOperation], serve: Callable[[list[PendingOperation]], list[Any]]) -> list[Any]:
    """Return the outcomes of a group. `serve` gets the operations of one room at a time, in order."""
    rooms: dict[str, list[int]] = {}
    for place, operation in enumerate(group):
        rooms.setdefault(operation.room, []).append(place)
    outcomes: list[Any] = [None] * len(group)
    for room in sorted(rooms):  # operations without a room come first, because callers wait for the ledger
        for place, outcome in zip(rooms[room], serve([group[at] for at in rooms[room]]), strict=True):
            outcomes[place] = outcome
    return outcomes


def enter_room(db: SqlConnection, group: list[PendingOperation]) -> None:
    """Lock the room of these operations until the transaction ends: alone, or together with others who share it."""
    room = group[0].room
    if room.endswith(TOGETHER):
        hold_together(db, f"room {room.removesuffix(TOGETHER)}")
    elif room:
        hold_alone(db, f"room {room}")
