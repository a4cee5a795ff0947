"""Say which migrations the tables of a ledger lack, in a file or a database, and apply them."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from toolserver.sql.errors import DatabaseError, MigrationPending, StorageFailed, TransactionLost, name_error
from toolserver.sql.failures import DATA_DIR, describe_disk_error
from toolserver.sql.ledger_place import LedgerPlace, open_maintenance
from toolserver.sql.migrate import migrations, verify
from toolserver.sql.move_mark import show_server
from toolserver.sql.postgres import DATABASE_URL, PostgresConnection, PostgresTerms
from toolserver.sql.postgres_migrate import server_migrations, verify_server
from toolserver.sql.sqlite import private


class SchemaVersion(NamedTuple):
    """The number of migrations that were applied, how many this software knows, and the names of those missing."""

    version: int
    known: int
    pending: tuple[str, ...]


def read_version(place: LedgerPlace) -> SchemaVersion:
    """Read which migrations a ledger has, without changing anything. One that does not exist yet has none.

    Raises NewerDatabase, ForeignDatabase, MigrationChanged, StorageFailed.
    """
    if isinstance(place, Path):
        steps, version = migrations(), _verify_file(place)
    else:
        with ThreadPoolExecutor(1) as thread:  # a connection runs an event loop, of which a thread can run only one
            steps, version = server_migrations(), thread.submit(_verify_server, place).result()
    return SchemaVersion(version, len(steps), tuple(step.name for step in steps[version:]))


def require_current(place: LedgerPlace) -> None:
    """Raise MigrationPending if a migration is missing. Raises as `read_version` too."""
    found = read_version(place)
    if found.pending:
        where = place if isinstance(place, Path) else show_server(place.url)
        raise MigrationPending(
            f"{where} has version {found.version} of the tables, and this software needs {found.known}: run `toolserver"
            ' migrate`, or set storage.migrate = "start" (TOOLSERVER_STORAGE__MIGRATE)'
        )


def migrate_place(place: LedgerPlace) -> None:
    """Bring a ledger up to date, and make its file or tables if there are none.

    Raises NewerDatabase, ForeignDatabase, MigrationChanged, RowsRewritten, StorageFailed.
    """
    if isinstance(place, Path):
        private(place)
    with ThreadPoolExecutor(1) as thread:
        thread.submit(_open_once, place).result()


def _open_once(place: LedgerPlace) -> None:
    try:
        with open_maintenance(place):
            pass  # opening it applies the migrations
    except (DatabaseError, TransactionLost) as error:
        setting = DATA_DIR if isinstance(place, Path) else DATABASE_URL
        raise StorageFailed(f"the tables could not be brought up to date ({setting}): {error}") from error


def _verify_file(path: Path) -> int:
    if not path.exists() or not path.stat().st_size:
        return 0
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            return verify(db)
    except sqlite3.Error as error:
        raise StorageFailed(describe_disk_error(name_error(error), path, DATA_DIR)) from error  # type: ignore[arg-type]


def _verify_server(terms: PostgresTerms) -> int:
    try:
        with closing(PostgresConnection(terms)) as db:
            return verify_server(db)
    except (DatabaseError, TransactionLost) as error:
        raise StorageFailed(f"the database of {DATABASE_URL} cannot be read: {error}") from error
