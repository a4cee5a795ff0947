"""Open a separate connection for long work on a ledger, in transactions so short that a service can keep selling.

On a file, it does not check references to each deleted row: without an index, that would scan a whole table. Callers
must first delete what refers to a row. `ledger check` finds dangling references.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from toolserver.sql.connection import SqlConnection
from toolserver.sql.errors import DatabaseError, DatabaseUnusable, StorageFailed, TransactionLost
from toolserver.sql.failures import DATA_DIR, describe_disk_error
from toolserver.sql.group_commit import connect
from toolserver.sql.ledger_place import LedgerPlace
from toolserver.sql.migrate import write_transaction
from toolserver.sql.row_seal import SealedConnection, seal_changes
from toolserver.sql.sealed_file import open_sealed

R = TypeVar("R")

TRIES = 8  # attempts at a transaction that conflicts with a service


class Transact(Protocol):
    """Runs a job in one durable transaction. Raises StorageFailed if nothing was written."""

    def __call__(self, job: Callable[[SqlConnection], R], /) -> R: ...


@contextmanager
def open_maintenance(place: LedgerPlace) -> Iterator[Transact]:
    """Open a ledger, with or without a running service. For use by one thread.

    Raises:
        NewerDatabase, ForeignDatabase, MigrationChanged, RowsRewritten: this software must not write to the ledger.
        StorageFailed: the ledger cannot be opened.
    """
    if not isinstance(place, Path):
        from toolserver.sql.postgres import PostgresConnection
        from toolserver.sql.postgres_migrate import migrate_server

        with closing(PostgresConnection(place)) as server:
            migrate_server(server)
            yield lambda job: _try(lambda: server.transact(lambda: job(server)))
        return
    try:
        db = connect(place)
    except DatabaseError as error:
        raise StorageFailed(describe_disk_error(error, place, DATA_DIR)) from error
    with closing(db):
        file = open_sealed(db, place)
        db.execute("PRAGMA foreign_keys=OFF")
        yield lambda job: _try(lambda: _transact(db, job))
        file.note_progress()


def _try(attempt: Callable[[], R]) -> R:
    """Return the result of the attempt, retried if it conflicts with others. Raises StorageFailed."""
    for tried in range(1, TRIES + 1):
        try:
            return attempt()
        except (DatabaseUnusable, TransactionLost) as failure:
            if tried == TRIES:
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
