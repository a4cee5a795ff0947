"""Implement the server's side of a move to a file: nobody else uses the database, and one snapshot is copied.

The file is written in one transaction under another name. A return that is killed begins anew.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from toolserver.sql.connection import SqlConnection
from toolserver.sql.errors import DatabaseError, StorageFailed, TransactionLost
from toolserver.sql.kept_tables import CountRows, list_kept_tables, read_pages
from toolserver.sql.migrate import migrate, write_transaction
from toolserver.sql.move_mark import COMPLETE, COPYING, MoveMark
from toolserver.sql.postgres import PostgresConnection, PostgresTerms
from toolserver.sql.postgres_migrate import claim_database, migrate_server
from toolserver.sql.postgres_move import LONG_SESSION, MoveRefused, is_soon, take_move_lock
from toolserver.sql.sealed_file import SealedFile
from toolserver.sql.sqlite import connect, private

R = TypeVar("R")

LEAVING, LEFT = "leaving", "left"
_OTHERS = """SELECT count(DISTINCT (client_addr, client_port)) FROM pg_stat_activity
  WHERE datname = current_database() AND application_name = 'toolserver' AND pid <> pg_backend_pid()"""
# What instances of this database have set aside is never given out again.
_ADDRESS = """SELECT greatest((SELECT max(next) FROM deposit_number), (SELECT max(hd_index) + 1 FROM purchase),
  (SELECT max(hd_index) + 1 FROM old_quote), 0)"""


class ReturnSource:
    """A database whose ledger is moved to a file."""

    def __init__(self, db: PostgresConnection) -> None:
        self._db = db

    def begin(self, mark: MoveMark, *, simulated: bool) -> None:
        """Mark the database, so that no instance that starts serves it.

        Raises:
            MoveRefused: a service is connected, or the database has only a part of a ledger, or it was moved already.
            OtherWorld: the database has the other kind of money (simulated or real).
        """
        move = self._db.execute("SELECT source, state FROM ledger_move").fetchone()
        if move is not None and tuple(move) == (mark.id, LEAVING):
            return
        if move is not None and move[1] == COPYING:
            raise MoveRefused(f"a move of a ledger to {mark.to} is not yet complete")
        if move is not None and move[1] in (LEAVING, LEFT):
            raise MoveRefused(f"the ledger of {mark.to} was moved to a file of another data directory")
        self._db.transact(lambda: self._mark(mark.id, LEAVING, simulated))
        if not is_soon(lambda: not self._count_others()):
            self.cancel(mark)
            others = self._count_others()
            raise MoveRefused(f"{others} connections of a service to this database are open: stop every instance first")

    def _count_others(self) -> int:
        """Return how many connections of a service to this database are open."""
        return int(self._db.execute(_OTHERS).fetchone()[0])

    def is_left(self, mark: MoveMark) -> bool:
        """Return True if this move is complete on the server's side."""
        return bool(self._db.execute("SELECT source, state FROM ledger_move").fetchone() == (mark.id, LEFT))

    @contextmanager
    def snapshot(self) -> Iterator[SqlConnection]:
        """Read the database at one point in time within the block."""
        self._db.begin(read_only=True)
        try:
            self._db.execute(LONG_SESSION)
            yield self._db
        finally:
            self._db.rollback()

    def cancel(self, mark: MoveMark) -> None:
        """Allow the database to be served again."""
        self._set_state(mark, LEAVING, COMPLETE)

    def finish(self, mark: MoveMark) -> None:
        """Mark the database as left for good."""
        self._set_state(mark, LEAVING, LEFT)

    def _set_state(self, mark: MoveMark, before: str, after: str) -> None:
        sql = """UPDATE ledger_move SET state=?, ended_at=CASE WHEN CAST(? AS text) = 'complete' THEN began_at END
          WHERE source=? AND state=?"""
        self._db.transact(lambda: self._db.execute(sql, (after, after, mark.id, before)))

    def _mark(self, id: str, state: str, simulated: bool) -> None:
        claim_database(simulated=simulated)(self._db)
        self._db.execute(
            """INSERT INTO ledger_move(one, source, sealed, state, began_at)
               VALUES(1, ?, 0, ?, CAST(extract(epoch FROM now()) * 1000 AS bigint))
               ON CONFLICT(one) DO UPDATE SET source=excluded.source, state=excluded.state, ended_at=NULL""",
            (id, state),
        )


@contextmanager
def open_return(terms: PostgresTerms) -> Iterator[ReturnSource]:
    """Connect, bring the tables up to date, and hold the exclusive right to move from there.

    Raises:
        MoveRefused: another process is moving from or to this database now.
        NewerDatabase, ForeignDatabase, MigrationChanged, StorageFailed
    """
    db = PostgresConnection(terms)
    try:
        migrate_server(db)
        if not take_move_lock(db):
            raise MoveRefused("another process is moving a ledger from or to this server now")
        yield ReturnSource(db)
    except (DatabaseError, TransactionLost) as error:
        raise StorageFailed(str(error)) from error
    finally:
        db.close()


def write_file(source: SqlConnection, path: Path, count: CountRows, compare: Callable[[SqlConnection], Any]) -> None:
    """Write and seal every row of a snapshot in one transaction of a new file. If `compare` raises, there are none."""
    path.unlink(missing_ok=True)
    private(path)
    with closing(connect(path)) as file:
        migrate(file)
        file.execute("PRAGMA foreign_keys=OFF")
        with write_transaction(file):
            file.execute("DELETE FROM account")  # the accounts of a new ledger, which the database has too
            for table in list_kept_tables():
                names = ", ".join(f'"{name}"' for name in table.columns)
                sql = f"INSERT INTO {table.name}({names}) VALUES({', '.join('?' * len(table.columns))})"
                for page in read_pages(source, table):
                    file.executemany(sql, page)
                    count(table.name, len(page))
            # Purchases that were put aside keep their numbers.
            file.execute("DELETE FROM sqlite_sequence WHERE name='purchase'")
            file.execute(
                """INSERT INTO sqlite_sequence(name, seq) SELECT 'purchase',
                   max(coalesce((SELECT max(id) FROM purchase), 0), coalesce((SELECT max(id) FROM old_quote), 0))"""
            )
            compare(file)
            SealedFile(path).accept(file)


def read_first_address(db: SqlConnection) -> int:
    """Return the first number of a deposit address that no instance of a database has set aside."""
    return int(db.execute(_ADDRESS).fetchone()[0])
