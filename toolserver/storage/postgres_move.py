"""The server's side of a move: takes a file's rows table by table, and remembers how far it came.

Each page of rows is written in one transaction with the key of its last row. So a move that is killed at any moment
goes on behind the last page that was committed, and no row is copied twice or left out.
"""

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from toolserver.errors import ToolserverError
from toolserver.storage.connection import NUMBERS, SqlConnection
from toolserver.storage.errors import StorageFailed, TransactionLost
from toolserver.storage.kept_tables import (
    CountRows,
    KeptTable,
    decode_key,
    encode_key,
    list_kept_tables,
    read_pages,
)
from toolserver.storage.move_mark import COMPLETE, COPYING, MoveMark
from toolserver.storage.postgres import PostgresConnection, PostgresTerms
from toolserver.storage.postgres_marks import store_marks
from toolserver.storage.postgres_migrate import migrate_server
from toolserver.storage.postgres_world import claim_database
from toolserver.storage.row_seal import read_seal

log = logging.getLogger(__name__)

R = TypeVar("R")

_SESSION = """SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0;
  SET enable_seqscan = on; SET enable_hashjoin = on; SET enable_mergejoin = on"""
_LOCK = 0x54534C4D  # of the server's advisory locks: one process moves at a time
_SAID = {"published_key": "keys of instances", "deposit_number": "numbers of deposit addresses", "mark": "marks"}
_COUNTED = (("receipt", "seq"), ("purchase", "id"), ("tx_reversal", "id"), ("uncharged_call", "seq"))


class MoveRefused(ToolserverError):
    """A ledger cannot be moved there, or not as it is. What the file holds was not changed."""


class MoveUnfinished(ToolserverError):
    """A database has a part of a ledger only: its move was interrupted."""


class MoveTarget:
    """A database that a file is moved to."""

    def __init__(self, db: PostgresConnection) -> None:
        self._db = db

    def begin(self, mark: MoveMark, sealed: int, *, simulated: bool) -> str:
        """Prepare an empty database, or find the move that was interrupted. Returns the state of the move.

        Raises:
            MoveRefused: the database has something of others, or the file was written since the move began.
            OtherWorld: it is one of the other kind.
        """
        found = self._db.execute("SELECT source, sealed, state FROM ledger_move").fetchone()
        if found is None:
            self._require_empty(mark)
            self._transact(lambda: self._prepare(mark, sealed, simulated))
            return COPYING
        source, before, state = found
        if source != mark.id:
            raise MoveRefused(f"{mark.to} has the ledger of another move: give it a database, or schema, of its own")
        if before != sealed:
            raise MoveRefused(
                f"the file was written since this move began: make {mark.to} anew, or name another database or schema"
            )
        return str(state)

    def copy(self, table: KeptTable, source: SqlConnection, count: CountRows) -> None:
        """Copy what the database has not of a table."""
        last, _ = self._db.execute(
            "SELECT last_key, copied FROM ledger_move_table WHERE name=?", (table.name,)
        ).fetchone()
        for page in read_pages(source, table, None if last is None else decode_key(last)):
            self._transact(lambda page=page: self._copy_page(table, page))  # type: ignore[misc]
            count(table.name, len(page))

    def count_copied(self) -> int:
        """How many rows were copied, also by runs that were interrupted."""
        return int(self._db.execute("SELECT coalesce(sum(copied), 0) FROM ledger_move_table").fetchone()[0])

    def set_counters(self, address: int) -> None:
        """Let the database number on from the file. `address` is the first free deposit address, as it is marked."""
        self._transact(lambda: self._set_counters(address))
        self._db.run_script("ANALYZE")

    def set_marks(self, marks: Mapping[str, Any]) -> None:
        """Let all instances know what the file's data directory has raised."""
        self._transact(lambda: store_marks(self._db, marks))

    def read(self, job: Callable[[SqlConnection], R]) -> R:
        """What a job reads on one snapshot."""
        self._db.begin(read_only=True)
        try:
            return job(self._db)
        finally:
            self._db.rollback()

    def finish(self) -> None:
        """Say that the ledger is here, so that it is served."""
        sql = "UPDATE ledger_move SET state=?, ended_at=?"
        self._transact(lambda: self._db.execute(sql, (COMPLETE, time.time_ns() // 1_000_000)))

    def _transact(self, job: Callable[[], Any]) -> None:
        self._db.transact(job)

    def _require_empty(self, mark: MoveMark) -> None:
        full = [table.name for table in list_kept_tables() if table.name != "account" and self._has_rows(table.name)]
        full += [said for name, said in _SAID.items() if self._has_rows(name)]
        if self._db.execute("SELECT 1 FROM account WHERE kind='token' LIMIT 1").fetchone() is not None:
            full.append("account")
        if full:
            raise MoveRefused(f"{mark.to} is not empty: it has {', '.join(full)}. Give the ledger one of its own")

    def _has_rows(self, table: str) -> bool:
        return self._db.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None

    def _prepare(self, mark: MoveMark, sealed: int, simulated: bool) -> None:
        claim_database(simulated=simulated)(self._db)
        now = time.time_ns() // 1_000_000
        row = (mark.id, sealed, COPYING, now)
        self._db.execute("INSERT INTO ledger_move(one, source, sealed, state, began_at) VALUES(1,?,?,?,?)", row)
        for table in list_kept_tables():
            self._db.execute("INSERT INTO ledger_move_table(name) VALUES(?)", (table.name,))
        self._db.execute("DELETE FROM account")  # those of a new ledger: the file has them too

    def _copy_page(self, table: KeptTable, page: Sequence[Sequence[Any]]) -> None:
        self._db.copy_rows(table.name, table.columns, page)
        row = (encode_key(table.key_of(page[-1])), len(page), table.name)
        self._db.execute("UPDATE ledger_move_table SET last_key=?, copied=copied+? WHERE name=?", row)

    def _set_counters(self, address: int) -> None:
        """Sequences go on behind the greatest number in use; numbers of purchases that were put aside are used too."""
        greatest = "SELECT greatest((SELECT max(seq) FROM transfer), (SELECT max(id) FROM account), 1)"
        number = int(self._db.execute(greatest).fetchone()[0])
        self._db.execute("SELECT setval('ledger_number', ?, false)", ((number // NUMBERS + 1) * NUMBERS,))
        for table, column in _COUNTED:
            also = "(SELECT max(id) FROM old_quote)" if table == "purchase" else "0"
            self._db.execute(
                f"""SELECT setval(pg_get_serial_sequence('{table}', '{column}'), greatest(max({column}), {also}, 0) + 1,
                    false) FROM {table}"""
            )
        used = """SELECT greatest((SELECT max(hd_index) + 1 FROM purchase), (SELECT max(hd_index) + 1 FROM old_quote),
          CAST(? AS bigint))"""
        first = int(self._db.execute(used, (address,)).fetchone()[0])
        self._db.execute("INSERT INTO deposit_number VALUES(1, ?) ON CONFLICT DO NOTHING", (first,))


@contextmanager
def open_target(terms: PostgresTerms) -> Iterator[MoveTarget]:
    """Connect, bring the tables up to date, and be the only one who moves there.

    Raises:
        MoveRefused: another process does so now.
        NewerDatabase, ForeignDatabase, MigrationChanged, StorageFailed
    """
    db = PostgresConnection(terms)
    try:
        migrate_server(db)
        db.run_script(_SESSION)
        if not db.execute("SELECT pg_try_advisory_lock(?)", (_LOCK,)).fetchone()[0]:
            raise MoveRefused("another process moves a ledger to this server now")
        yield MoveTarget(db)
    except (sqlite3.Error, TransactionLost) as error:
        raise StorageFailed(str(error)) from error
    finally:
        db.close()


@contextmanager
def open_source(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a file that nobody else has open, for reading; who would write to it meanwhile is refused by its lock.

    Raises StorageFailed.
    """
    try:
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
        try:
            db.execute("BEGIN")
            read_seal(db)  # takes the lock
            yield db
        finally:
            db.close()
    except sqlite3.Error as error:
        raise StorageFailed(f"{path} cannot be read: {error}") from error


def count_sealed(db: sqlite3.Connection) -> int:
    """How many transactions were sealed in a file: a number that changes with every write of money."""
    found = read_seal(db)
    return 0 if found is None else found.counter


def require_whole(db: SqlConnection) -> None:
    """Raises MoveUnfinished where a database has a part of a ledger only."""
    if db.execute("SELECT 1 FROM ledger_move WHERE state=?", (COPYING,)).fetchone() is not None:
        raise MoveUnfinished(
            "a ledger is being moved to this database, and not all of it is here: run `toolserver db move` again"
        )


def is_new(db: SqlConnection) -> bool:
    """Whether no service has ever run on a database, and no ledger was moved to it."""
    tables = ("published_key", "ledger_move", "token", "receipt")
    return all(db.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is None for table in tables)
