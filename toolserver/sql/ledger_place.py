"""Say where a ledger is (a file or a database), and give programs beside the service access to it."""

import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

from toolserver.sql.connection import SqlConnection, is_shared, read_clock
from toolserver.sql.errors import DatabaseError, DatabaseUnusable, StorageFailed, TransactionLost
from toolserver.sql.failures import DATA_DIR, describe_disk_error
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.migrate import write_transaction
from toolserver.sql.postgres import PostgresConnection, PostgresTerms
from toolserver.sql.postgres_group_commit import open_postgres, read_snapshot
from toolserver.sql.postgres_migrate import migrate_server
from toolserver.sql.sealed_file import SealedConnection, open_sealed, seal_changes
from toolserver.sql.sqlite import connect, durable, open_snapshot

R = TypeVar("R")

LedgerPlace: TypeAlias = Path | PostgresTerms
TRIES = 8  # attempts at a transaction that conflicts with a service
_SERVER = """SELECT current_setting('server_version'), (SELECT max(number) FROM migration),
  (SELECT count(DISTINCT (client_addr, client_port)) FROM pg_stat_activity
   WHERE datname = current_database() AND application_name = 'toolserver'),
  (SELECT count(*) FROM pg_stat_replication), current_setting('synchronous_standby_names')"""
_LEASES = "SELECT name, fence, expires_at FROM lease ORDER BY name"


def read_place(place: LedgerPlace, job: Callable[[SqlConnection], R]) -> R:
    """Run a read-only job on one snapshot, whether or not a service has the ledger open.

    Raises StorageFailed.
    """
    if isinstance(place, Path):
        try:
            with open_snapshot(place) as db:
                return job(db)
        except DatabaseError as error:
            raise StorageFailed(describe_disk_error(error, place)) from error
    with ThreadPoolExecutor(1) as thread:  # a connection runs an event loop, and a thread can run only one at a time
        return thread.submit(read_snapshot, place, job).result()


def iterate_place(place: LedgerPlace, job: Callable[[SqlConnection], Iterable[R]]) -> Iterator[R]:
    """Yield what a read-only job yields, on one snapshot; from a file, without holding all in memory.

    Raises StorageFailed.
    """
    if not isinstance(place, Path):
        yield from read_place(place, lambda db: list(job(db)))
        return
    try:
        with open_snapshot(place) as db:
            yield from job(db)
    except DatabaseError as error:
        raise StorageFailed(describe_disk_error(error, place)) from error


@asynccontextmanager
async def open_place(place: LedgerPlace) -> AsyncIterator[GroupCommit]:
    """Open a ledger for reading and writing. Raises as `durable` and `open_postgres` do."""
    async with AsyncExitStack() as stack:
        if isinstance(place, Path):
            yield await stack.enter_async_context(durable(place))
            return
        yield await stack.enter_async_context(open_postgres(place))


class Transact(Protocol):
    """Runs a job in one durable transaction. Raises StorageFailed if nothing was written."""

    def __call__(self, job: Callable[[SqlConnection], R], /) -> R: ...


@contextmanager
def open_maintenance(
    place: LedgerPlace, *, tries: int = TRIES, connect: Callable[[Path], SealedConnection] = connect
) -> Iterator[Transact]:
    """Open a ledger, with or without a running service. For use by one thread. `connect` opens one that is a file.

    A transaction that conflicts with a service is tried `tries` times.

    Raises:
        NewerDatabase, ForeignDatabase, MigrationChanged, RowsRewritten: this software must not write to the ledger.
        StorageFailed: the ledger cannot be opened.
    """
    if not isinstance(place, Path):
        with closing(PostgresConnection(place)) as server:
            migrate_server(server)
            yield lambda job: _try(lambda: server.transact(lambda: job(server)), tries)
        return
    try:
        db = connect(place)
    except DatabaseError as error:
        raise StorageFailed(describe_disk_error(error, place, DATA_DIR)) from error
    with closing(db):
        file = open_sealed(db, place)
        db.execute("PRAGMA foreign_keys=OFF")
        yield lambda job: _try(lambda: _transact(db, job), tries)
        file.note_progress()


def _try(attempt: Callable[[], R], tries: int) -> R:
    """Return the result of the attempt, retried if it conflicts with others. Raises StorageFailed."""
    for tried in range(1, tries + 1):
        try:
            return attempt()
        except (DatabaseUnusable, TransactionLost) as failure:
            if tried == tries:
                raise StorageFailed(str(failure)) from failure
            time.sleep(0.05 * tried)
        except DatabaseError as refusal:
            raise StorageFailed(str(refusal)) from refusal
    raise AssertionError("unreachable")


def _transact(db: SealedConnection, job: Callable[[SqlConnection], R]) -> R:
    try:
        with write_transaction(db):
            done = job(db)
            seal_changes(db)
        return done
    finally:
        db.changes.forget()


def report_database(db: SqlConnection) -> dict[str, Any] | None:
    """Return the versions of the server and of our tables, our connections, the leases with their seconds left.

    `standbys` counts the servers that copy this one, and `synchronous` names those that a commit waits for.

    Returns None for a file.
    """
    if not is_shared(db):
        return None
    version, tables, connections, standbys, synchronous = db.execute(_SERVER).fetchone()
    now = read_clock(db, 0)
    leases = [
        {"name": name, "number": fence, "seconds_left": max(0, expires_at - now) // 1000}
        for name, fence, expires_at in db.execute(_LEASES)
    ]
    return {
        "server": f"PostgreSQL {version}",
        "tables": tables,
        "connections": connections,
        "standbys": standbys,
        "synchronous": synchronous,
        "leases": leases,
    }
