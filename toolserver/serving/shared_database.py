"""Open the database of `database_url`, which replaces the file in a data directory for several instances."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from toolserver.clock import Clock
from toolserver.errors import ToolserverError
from toolserver.money.ledger.store import FILE, SqlLedger
from toolserver.money.receipts.keys import find_key_file
from toolserver.settings import Settings
from toolserver.sql.high_water import HighWater, SharedMarks
from toolserver.sql.ledger_place import LedgerPlace
from toolserver.sql.postgres import PostgresTerms
from toolserver.sql.postgres_group_commit import open_postgres
from toolserver.sql.postgres_migrate import claim_database
from toolserver.sql.postgres_move import is_new, require_whole
from toolserver.sql.row_seal import KEY, read_key

PATIENCE_S = 15.0
START_S = 10.0  # of patience while a service starts: nobody waits for it, and a machine under load may be slow
READERS = 2  # reading connections, in addition to the writing one


class NotOnServer(ToolserverError):
    """The settings name two places for money: a database on a server, and a file or the ledger of another service."""


def database_terms(settings: Settings, *, patient: bool = False) -> PostgresTerms:
    """Return where the database of the settings is. A `patient` caller, such as a command, may wait for seconds.

    Raises AssertionError if the settings name none.
    """
    assert settings.database_url is not None
    url, cached = settings.database_url.get_secret_value(), settings.storage.statement_cache
    terms = PostgresTerms(
        url, cached=cached, readers=READERS, row_key=_read_row_key(settings), data_dir=settings.data_dir
    )
    return replace(terms, readers=1, connect_s=PATIENCE_S, work_s=PATIENCE_S) if patient else terms


def _read_row_key(settings: Settings) -> bytes | None:
    """Return the key of the seal over rows. None if it is neither there nor can be made, as in a mounted secret.

    Raises RowsRewritten if its file is broken.
    """
    path = find_key_file(settings.data_dir, KEY, settings.scaling.keys_dir)
    try:
        return read_key(path)
    except OSError:
        if path.exists():
            raise
        return None


def locate_ledger(settings: Settings, *, patient: bool = False) -> LedgerPlace:
    """Return the database of the settings, if they name one, else the file in the data directory, which may not exist.

    `patient` is as in `database_terms`.
    """
    return settings.data_dir / FILE if settings.database_url is None else database_terms(settings, patient=patient)


def require_one_place(settings: Settings) -> None:
    """Raise NotOnServer if the ledger is another service's, whose journal is a file, or if a file has money."""
    if settings.ledger.url is not None:
        raise NotOnServer("ledger.url: a service that follows a ledger keeps its journal in a file; unset database_url")
    if (file := settings.data_dir / FILE).exists():
        raise NotOnServer(f"{file} has a ledger, and database_url names another one: move one of them away")


async def _require_known(settings: Settings, is_new: bool) -> None:
    """Raise NotOnServer if a new ledger would start beside the marks of an old one: nobody would have credits."""
    if is_new and (marks := HighWater(settings.data_dir)).read_all():
        raise NotOnServer(
            f"{marks.path} shows that a ledger was in use, but the database is empty: restore the database, or move"
            f" the ledger of a file (`toolserver db move`). To start afresh, move {marks.path.parent} away."
        )


def find_marks(settings: Settings, *, patient: bool = False) -> HighWater:
    """Return the high-water marks of the data directory, or of all instances that share a database.

    `patient` is as in `database_terms`. Reading and raising marks in a database can also raise StorageFailed.
    """
    if settings.database_url is None:
        return HighWater(settings.data_dir)
    return SharedMarks(settings.data_dir, database_terms(settings, patient=patient))


@asynccontextmanager
async def open_shared_ledger(settings: Settings, clock: Clock) -> AsyncIterator[SqlLedger]:
    """Open the ledger of the database. Until calls are served, it has START_S more for each group: see `patience_s`.

    Raises:
        NotOnServer: before anything is opened, or the database is new and the data directory has another ledger.
        MoveUnfinished: a ledger is only partly moved to the database.
        OtherWorld: the database has the other kind of money (simulated or real).
        NewerDatabase, ForeignDatabase, MigrationChanged, StorageFailed: as `open_postgres` raises them.
    """
    require_one_place(settings)
    async with open_postgres(database_terms(settings)) as store:
        store.patience_s = START_S
        await store.alone(require_whole)
        await _require_known(settings, await store.alone(is_new))
        await store.alone(claim_database(simulated=settings.upstream.via is not None))
        yield SqlLedger(store, clock)
