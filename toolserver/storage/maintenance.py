"""A connection of its own for long work on the rows of a ledger, in transactions so short that a service sells on.

On a file it does not look for references to each row that is deleted: without an index on them that takes a pass over a
whole table. Who uses it deletes what refers to a row first; `ledger check` finds what leads nowhere.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from toolserver.storage.connection import SqlConnection
from toolserver.storage.errors import StorageFailed, TransactionLost
from toolserver.storage.group_commit import connect
from toolserver.storage.ledger_place import LedgerPlace
from toolserver.storage.row_seal import SealedConnection, seal_changes
from toolserver.storage.sealed_file import open_sealed

R = TypeVar("R")

TRIES = 8  # of a transaction that a service stands in the way of


class Transact(Protocol):
    """Runs a job in one durable transaction. Raises StorageFailed; then nothing was written."""

    def __call__(self, job: Callable[[SqlConnection], R], /) -> R: ...


@contextmanager
def open_maintenance(place: LedgerPlace) -> Iterator[Transact]:
    """Open a ledger, beside a service or without one. To be used by one thread.

    Raises:
        NewerDatabase, ForeignDatabase, MigrationChanged, RowsRewritten: it is not ours to write.
        StorageFailed: it cannot be opened.
    """
    if not isinstance(place, Path):
        from toolserver.storage.postgres import PostgresConnection
        from toolserver.storage.postgres_migrate import migrate_server

        with closing(PostgresConnection(place)) as server:
            migrate_server(server)
            yield lambda job: _try(lambda: server.transact(lambda: job(server)))
        return
    try:
        db = connect(place)
    except sqlite3.Error as error:
        raise StorageFailed(f"{place} cannot be opened: {error}") from error
    with closing(db):
        file = open_sealed(db, place)
        db.execute("PRAGMA foreign_keys=OFF")
        yield lambda job: _try(lambda: _transact(db, job))
        file.note_progress()


def _try(attempt: Callable[[], R]) -> R:
    """What the attempt returns, after some tries where others are in the way. Raises StorageFailed."""
    for tried in range(1, TRIES + 1):
        try:
            return attempt()
        except (sqlite3.OperationalError, TransactionLost) as failure:
            if tried == TRIES:
                raise StorageFailed(str(failure)) from failure
            time.sleep(0.05 * tried)
    raise AssertionError("unreachable")


def _transact(db: SealedConnection, job: Callable[[SqlConnection], R]) -> R:
    db.execute("BEGIN IMMEDIATE")
    try:
        done = job(db)
        seal_changes(db)
        db.execute("COMMIT")
        return done
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    finally:
        db.changes.forget()
