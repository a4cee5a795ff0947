"""Say where a ledger is (a file or a database), and give programs beside the service access to it."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TypeAlias, TypeVar

from toolserver.sql.connection import SqlConnection
from toolserver.sql.errors import DatabaseError, StorageFailed
from toolserver.sql.failures import describe_disk_error
from toolserver.sql.group_commit import GroupCommit, durable, open_snapshot
from toolserver.sql.postgres import PostgresTerms

R = TypeVar("R")

LedgerPlace: TypeAlias = Path | PostgresTerms


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
    from toolserver.sql.postgres_group_commit import read_snapshot

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
        from toolserver.sql.postgres_group_commit import open_postgres

        yield await stack.enter_async_context(open_postgres(place))
