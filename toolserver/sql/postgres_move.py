"""Implement the server's side of a move: copy a file's rows table by table, and store the progress.

Each page of rows is written in one transaction with the key of its last row. A move that is
killed at any moment therefore continues after the last committed page, and no row is copied
twice or left out.
"""

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from toolserver.errors import ToolserverError
from toolserver.sql.connection import NUMBERS, SqlConnection
from toolserver.sql.errors import DatabaseError, StorageFailed, TransactionLost
from toolserver.sql.high_water import store_marks
from toolserver.sql.kept_tables import (
    CountRows,
    KeptTable,
    decode_key,
    encode_key,
    list_kept_tables,
    read_pages,
)
from toolserver.sql.move_mark import COMPLETE, COPYING, MoveMark
from toolserver.sql.postgres import PostgresConnection, PostgresTerms
from toolserver.sql.postgres_migrate import claim_database, migrate_server
from toolserver.sql.row_seal import RowSeal
from toolserver.sql.sealed_file import find_file_mark
from toolserver.sql.server_seal import begin_snapshot, seal_server

log = logging.getLogger(__name__)

R = TypeVar("R")

LONG_SESSION = """SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0;
  SET enable_seqscan = on; SET enable_hashjoin = on; SET enable_mergejoin = on;
  SET max_parallel_workers_per_gather = 2"""
GONE_S, LOOK_S = 5.0, 0.1  # within which a server notices that a process is gone, and between two looks
MOVE_LOCK = 0x54534C4D  # advisory lock of the server: one process moves at a time
_SAID = {"published_key": "keys of instances", "deposit_number": "numbers of deposit addresses", "mark": "marks"}
_COUNTED = (("receipt", "seq"), ("purchase", "id"), ("tx_reversal", "id"), ("uncharged_call", "seq"))


class MoveRefused(ToolserverError):
    """A ledger cannot be moved there, or not in its current state. The file was not changed."""


class MoveUnfinished(ToolserverError):
    """A database has only a part of a ledger, because its move was interrupted."""


class MoveTarget:
    """A database to which a file is moved."""

    def __init__(self, db: PostgresConnection, row_key: bytes | None) -> None:
        self._db = db
        self._seal = None if row_key is None else RowSeal(row_key)

    def begin(self, mark: MoveMark, sealed: int, *, simulated: bool) -> str:
        """Prepare an empty database, or find the interrupted move. Returns the state of the move.

        Raises:
            MoveRefused: the database has other data, or the file was written since the move began.
            OtherWorld: the database has the other kind of money (simulated or real).
        """
        move = self._db.execute("SELECT source, sealed, state FROM ledger_move").fetchone()
        if move is None:
            self._require_empty(mark)
            self._transact(lambda: self._prepare(mark, sealed, simulated))
            return COPYING
        source, before, state = move
        if source != mark.id:
            raise MoveRefused(f"{mark.to} has the ledger of another move: use a separate database or schema")
        if before != sealed:
            raise MoveRefused(
                f"the file was written since this move began: recreate {mark.to}, or name another database or schema"
            )
        return str(state)

    def copy(self, table: KeptTable, source: SqlConnection, count: CountRows) -> None:
        """Copy the rows of a table that the database does not have yet."""
        last, _ = self._db.execute(
            "SELECT last_key, copied FROM ledger_move_table WHERE name=?", (table.name,)
        ).fetchone()
        for page in read_pages(source, table, None if last is None else decode_key(last)):
            self._transact(lambda page=page: self._copy_page(table, page))  # type: ignore[misc]
            count(table.name, len(page))

    def count_copied(self) -> int:
        """Return how many rows were copied, including by interrupted runs."""
        return int(self._db.execute("SELECT coalesce(sum(copied), 0) FROM ledger_move_table").fetchone()[0])

    def set_counters(self, address: int) -> None:
        """Set the database's counters to continue after the file's. `address` is the first free deposit address."""
        self._transact(lambda: self._set_counters(address))
        self._db.run_script("ANALYZE")

    def set_marks(self, marks: Mapping[str, Any]) -> None:
        """Publish the marks of the file's data directory to all instances."""
        self._transact(lambda: store_marks(self._db, marks))

    def read(self, job: Callable[[SqlConnection], R]) -> R:
        """Return the result of a read-only job on one snapshot."""
        self._db.begin(read_only=True)
        try:
            return job(self._db)
        finally:
            self._db.rollback()

    def finish(self) -> None:
        """Seal every row, if there is a key, and mark the ledger as complete, so that it is served."""
        begin_snapshot(self._db)
        try:
            if self._seal is not None:
                seal_server(self._db, self._seal)
            sql = "UPDATE ledger_move SET state=?, ended_at=?"
            self._db.execute(sql, (COMPLETE, time.time_ns() // 1_000_000))
        except BaseException:
            self._db.rollback()
            raise
        self._db.commit()

    def _transact(self, job: Callable[[], Any]) -> None:
        self._db.transact(job)

    def _require_empty(self, mark: MoveMark) -> None:
        full = [table.name for table in list_kept_tables() if table.name != "account" and self._has_rows(table.name)]
        full += [said for name, said in _SAID.items() if self._has_rows(name)]
        if self._db.execute("SELECT 1 FROM account WHERE kind='token' LIMIT 1").fetchone() is not None:
            full.append("account")
        if full:
            raise MoveRefused(f"{mark.to} is not empty: it has {', '.join(full)}. Use a separate database")

    def _has_rows(self, table: str) -> bool:
        return self._db.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None

    def _prepare(self, mark: MoveMark, sealed: int, simulated: bool) -> None:
        claim_database(simulated=simulated)(self._db)
        now = time.time_ns() // 1_000_000
        row = (mark.id, sealed, COPYING, now)
        self._db.execute("INSERT INTO ledger_move(one, source, sealed, state, began_at) VALUES(1,?,?,?,?)", row)
        for table in list_kept_tables():
            self._db.execute("INSERT INTO ledger_move_table(name) VALUES(?)", (table.name,))
        self._db.execute("DELETE FROM account")  # the accounts of a new ledger, which the file has too

    def _copy_page(self, table: KeptTable, page: Sequence[Sequence[Any]]) -> None:
        self._db.copy_rows(table.name, table.columns, page)
        row = (encode_key(table.key_of(page[-1])), len(page), table.name)
        self._db.execute("UPDATE ledger_move_table SET last_key=?, copied=copied+? WHERE name=?", row)

    def _set_counters(self, address: int) -> None:
        """Set sequences to continue after the greatest number in use, including those of archived purchases."""
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


def take_move_lock(db: PostgresConnection) -> bool:
    """Take the exclusive right to move. Return False if another process keeps it.

    The lock of a process that was killed just now is held until the server notices.
    """
    return is_soon(lambda: bool(db.execute("SELECT pg_try_advisory_lock(?)", (MOVE_LOCK,)).fetchone()[0]))


def is_soon(look: Callable[[], bool]) -> bool:
    """Return True once `look` does, False if it does not while a server may take processes that are gone for alive."""
    until = time.monotonic() + GONE_S
    while not (found := look()) and time.monotonic() < until:
        time.sleep(LOOK_S)
    return found


@contextmanager
def open_target(terms: PostgresTerms) -> Iterator[MoveTarget]:
    """Connect, bring the tables up to date, and hold the exclusive right to move there.

    Raises:
        MoveRefused: another process is moving there now.
        NewerDatabase, ForeignDatabase, MigrationChanged, StorageFailed
    """
    # What is copied is sealed at the end: page by page, it would be listed and sealed once more.
    db = PostgresConnection(replace(terms, row_key=None))
    try:
        migrate_server(db)
        db.run_script(LONG_SESSION)
        if not take_move_lock(db):
            raise MoveRefused("another process is moving a ledger to this server now")
        yield MoveTarget(db, terms.row_key)
    except (DatabaseError, TransactionLost) as error:
        raise StorageFailed(str(error)) from error
    finally:
        db.close()


@contextmanager
def open_source(path: Path) -> Iterator[SqlConnection]:
    """Open a file that nobody else has open for reading. Its lock refuses writers during that time.

    Raises StorageFailed.
    """
    try:
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
        try:
            db.execute("BEGIN")
            count_sealed(db)  # takes the lock
            yield db
        finally:
            db.close()
    except sqlite3.Error as error:
        raise StorageFailed(f"{path} cannot be read: {error}") from error


def count_sealed(db: SqlConnection) -> int:
    """Return how many transactions were sealed in a file. The number changes with every write of money."""
    mark = find_file_mark(db)
    return 0 if mark is None else mark.commits


def require_whole(db: SqlConnection) -> None:
    """Raise MoveUnfinished if a database has only a part of a ledger, or none any more."""
    move = db.execute("SELECT state FROM ledger_move").fetchone()
    state = COMPLETE if move is None else move[0]
    if state == COPYING:
        raise MoveUnfinished(
            "a ledger is being moved to this database and is not yet complete: run `toolserver db move` again"
        )
    if state != COMPLETE:
        raise MoveUnfinished(
            "the ledger of this database was moved to a file (`toolserver db move --to-file`): unset database_url and"
            " serve that data directory"
        )


def is_new(db: SqlConnection) -> bool:
    """Return True if no service has ever run on a database and no ledger was moved to it."""
    tables = ("published_key", "ledger_move", "token", "receipt", "packed_receipt")
    return all(db.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is None for table in tables)
