"""Say where a ledger is (a file or a database), and give programs beside the service access to it."""

from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TypeAlias, TypeVar

from toolserver.sql.connection import SqlConnection
from toolserver.sql.group_commit import GroupCommit, durable, snapshot
from toolserver.sql.postgres import PostgresTerms

R = TypeVar("R")

LedgerPlace: TypeAlias = Path | PostgresTerms


def read_place(place: LedgerPlace, job: Callable[[SqlConnection], R]) -> R:
    """Run a read-only job on one snapshot, whether or not a service has the ledger open.

    Raises StorageFailed for a server, sqlite3.Error for a file.
    """
    if isinstance(place, Path):
        return snapshot(place, job)
    from toolserver.sql.postgres_group_commit import read_snapshot

    with ThreadPoolExecutor(1) as thread:  # a connection runs an event loop, and a thread can run only one at a time
        return thread.submit(read_snapshot, place, job).result()


@asynccontextmanager
async def open_place(place: LedgerPlace) -> AsyncIterator[GroupCommit]:
    """Open a ledger for reading and writing. Raises as `durable` and `open_postgres` do."""
    async with AsyncExitStack() as stack:
        if isinstance(place, Path):
            yield await stack.enter_async_context(durable(place))
            return
        from toolserver.sql.postgres_group_commit import open_postgres

        yield await stack.enter_async_context(open_postgres(place))
