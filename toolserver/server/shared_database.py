"""The database of `database_url`, which keeps money for several instances, in place of the file of a data directory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from toolserver.clock import Clock
from toolserver.errors import ToolserverError
from toolserver.ledger.sqlite import FILE, SqliteLedger
from toolserver.settings import Settings
from toolserver.storage.high_water import HighWater
from toolserver.storage.postgres import PostgresTerms
from toolserver.storage.postgres_move import is_new, require_whole
from toolserver.storage.postgres_world import claim_database

PATIENCE_S = 15.0
READERS = 2  # connections that read, besides the one that writes


class NotOnServer(ToolserverError):
    """The settings name two places for money: a database on a server, and a file or the ledger of another service."""


def database_terms(settings: Settings, *, patient: bool = False) -> PostgresTerms:
    """Where the database of the settings is. `patient` is who has time, such as a command: it waits for seconds.

    Raises AssertionError where the settings name none.
    """
    assert settings.database_url is not None
    url, cached = settings.database_url.get_secret_value(), settings.storage.statement_cache
    if patient:
        return PostgresTerms(url, cached=cached, readers=1, connect_s=PATIENCE_S, work_s=PATIENCE_S)
    return PostgresTerms(url, cached=cached, readers=READERS)


def require_one_place(settings: Settings) -> None:
    """Raises NotOnServer where the ledger is another service's, whose journal is a file, or where a file has money."""
    if settings.ledger.url is not None:
        raise NotOnServer("ledger.url: a service that follows a ledger keeps its journal in a file; leave database_url")
    if (file := settings.data_dir / FILE).exists():
        raise NotOnServer(f"{file} has a ledger, and database_url names another one: move one of them away")


async def _require_known(settings: Settings, is_new: bool) -> None:
    """Raises NotOnServer where a new ledger would begin beside the marks of an old one: nobody would have credits."""
    if is_new and (marks := HighWater(settings.data_dir)).read_all():
        raise NotOnServer(
            f"{marks.path} says that a ledger was sold from, and the database is empty: restore the database, or move"
            f" the ledger of a file (`toolserver db move`). To begin anew, move {marks.path.parent} away."
        )


def find_marks(settings: Settings, *, patient: bool = False) -> HighWater:
    """The marks that only rise, of the data directory, or of all instances that share a database.

    `patient` is as in `database_terms`. Reading and raising those of a database raises StorageFailed too.
    """
    if settings.database_url is None:
        return HighWater(settings.data_dir)
    from toolserver.storage.postgres_marks import SharedMarks

    return SharedMarks(settings.data_dir, database_terms(settings, patient=patient))


@asynccontextmanager
async def open_shared_ledger(settings: Settings, clock: Clock) -> AsyncIterator[SqliteLedger]:
    """Open the ledger of the database.

    Raises:
        NotOnServer: before anything is opened, or the database is new and the data directory is of another ledger.
        MoveUnfinished: not all of a ledger that is moved is in the database.
        OtherWorld: the database has money of the other kind.
        NewerDatabase, ForeignDatabase, MigrationChanged, StorageFailed: as `open_postgres` raises them.
    """
    require_one_place(settings)
    from toolserver.storage.postgres_group_commit import open_postgres

    async with open_postgres(database_terms(settings)) as store:
        await store.alone(require_whole)
        await _require_known(settings, await store.alone(is_new))
        await store.alone(claim_database(simulated=settings.upstream.via is not None))
        yield SqliteLedger(store, clock)
