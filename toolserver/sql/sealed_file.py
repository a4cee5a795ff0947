"""Keep the rows of a ledger's file sealed: count the changes of its writing connection, and check all rows.

Temporary triggers list every change. They belong to our own connection, so nobody else can
drop them. The list is kept in memory (a table for it would cost 14 us a row) and is cut when
the transaction or a savepoint is rolled back, and added to the seal (`row_seal`) at the end.

A file of a version before `writer_seal` is checked once by its old seal, and then sealed anew.
There each table had a sum: the keyed hashes of all its rows, added modulo 2**256. The sums are
stored masked and authenticated.
"""

import functools
import hashlib
import hmac
import logging
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from toolserver.sql.connection import SqlConnection
from toolserver.sql.errors import RowsRewritten, StorageFailed, name_error
from toolserver.sql.high_water import HighWater, MarksBroken
from toolserver.sql.migrate import Migration, migrate, migrate_within, migrations, verify, write_transaction
from toolserver.sql.row_seal import (
    FILE_WRITER,
    KEY,
    TABLES,
    RowSeal,
    RowSketch,
    SealedRow,
    name_row,
    name_value,
    read_key,
    read_seal,
    write_name,
)
from toolserver.sql.seal_marks import SealMark, describe_older, find_mark, note_seals, read_mark

OLD_TABLES = TABLES[: TABLES.index("removed_name") + 1]  # in the order of their sums
SIZE = 32  # bytes in a hash and in a sum
_MODULUS = 1 << 8 * SIZE
_encode = msgspec.msgpack.Encoder().encode


class OldSeal(NamedTuple):
    """The stored seal: how many transactions were sealed, and the masked sums with their authentication."""

    counter: int
    nonce: bytes
    sums: bytes
    mac: bytes


class OldRowSeal:
    """Checks the old seal of a file with the key of 32 bytes that made it."""

    def __init__(self, key: bytes) -> None:
        row_key, self._mask_key, self._mac_key = (
            hashlib.blake2b(use, key=key, digest_size=SIZE).digest() for use in (b"row", b"mask", b"mac")
        )
        self._new_row = hashlib.blake2b(key=row_key, digest_size=SIZE)

    def find_rewritten(self, db: SqlConnection) -> list[str]:
        """Name the tables that differ from what was sealed; empty if none do."""
        seal = read_old_seal(db)
        if seal is None:
            return ["the seal is missing"]
        there = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")}
        tables = [table for table in OLD_TABLES if table in there]
        if not self._is_ours(seal, len(tables)):
            return ["the seal was not made with the key of this data directory"]
        pairs = zip(tables, self._unmask(seal), strict=True)
        return [table for table, sealed in pairs if self._sum(db, table) != sealed]

    def _sum(self, db: SqlConnection, table: str) -> int:
        number = OLD_TABLES.index(table)
        return sum(self._hash(number, row) for row in db.execute(f"SELECT * FROM main.{table}")) % _MODULUS

    def _hash(self, number: int, row: Sequence[Any]) -> int:
        hashed = self._new_row.copy()
        hashed.update(_encode((number, row)))
        return int.from_bytes(hashed.digest())

    def _is_ours(self, seal: OldSeal, tables: int) -> bool:
        text = seal.counter.to_bytes(8) + seal.nonce + seal.sums
        mac = hashlib.blake2b(text, key=self._mac_key, digest_size=SIZE).digest()
        return len(seal.sums) == SIZE * tables and hmac.compare_digest(seal.mac, mac)

    def _unmask(self, seal: OldSeal) -> list[int]:
        parts = (seal.sums[at : at + SIZE] for at in range(0, len(seal.sums), SIZE))
        return [(int.from_bytes(part) - self._mask(seal.nonce, number)) % _MODULUS for number, part in enumerate(parts)]

    def _mask(self, nonce: bytes, number: int) -> int:
        text = nonce + bytes([number])
        return int.from_bytes(hashlib.blake2b(text, key=self._mask_key, digest_size=SIZE).digest())


def read_old_seal(db: SqlConnection) -> OldSeal | None:
    """Read the seal of an older version; None if there is none."""
    row = db.execute("SELECT counter, nonce, sums, mac FROM row_seal").fetchone()
    return OldSeal(*row) if row else None


log = logging.getLogger(__name__)

SMALL = 300_000  # maximum transfers of a file that is checked before the first request is accepted

Change = tuple[int, int, tuple[Any, ...]]
"""The number of a table, how many of the values are of a removed row, and the values, then of an added row."""


class RowChanges:
    """The changes of a transaction so far, in their order."""

    def __init__(self) -> None:
        self._changes: list[Change] = []

    def note(self, table: int, removed: int, *values: Any) -> None:
        """Note a removed row of `removed` columns, and an added row of the other values, if any."""
        self._changes.append((table, removed, values))

    @property
    def size(self) -> int:
        """How many changes there are: where to cut if a savepoint is rolled back."""
        return len(self._changes)

    def cut(self, size: int) -> None:
        """Forget the later changes, as they were rolled back to a savepoint."""
        del self._changes[size:]

    def forget(self) -> None:
        """Start again after the transaction ended, one way or the other."""
        self._changes.clear()

    def list_rows(self) -> dict[int, list[tuple[Any, ...]]]:
        """Return the rows that were removed or added, by the number of their table."""
        rows: dict[int, list[tuple[Any, ...]]] = {}
        for table, removed, values in self._changes:
            found = rows.get(table)
            if found is None:
                found = rows[table] = []
            if not removed or removed == len(values):
                found.append(values)
            else:
                found += (values[:removed], values[removed:])
        return rows


class SealedTables:
    """The columns of the tables that are sealed, and which of them are the key, which names a row."""

    def __init__(self, db: SqlConnection) -> None:
        columns, keys = defaultdict[str, list[str]](list), defaultdict[str, list[tuple[int, int]]](list)
        for table, column, place, order in db.execute(_TABLE_COLUMNS):
            columns[table].append(f'"{column}"')
            if order:
                keys[table].append((order, place))
        self.names = [table for table in TABLES if table in columns]  # all, unless migrations are pending
        self.columns = [columns[table] for table in TABLES]
        self._places = [[place for _, place in sorted(keys[table])] for table in TABLES]
        self._single = [places[0] if len(places) == 1 else None for places in self._places]

    def seal(self, table: int, row: Sequence[Any]) -> SealedRow:
        """Return a row as it is sealed."""
        return SealedRow(name_row([row[place] for place in self._places[table]]), _write_row(row))

    def name_rows(self, table: int, rows: Sequence[Sequence[Any]]) -> list[bytes]:
        """Return the names of many rows of a table, as their cells have them."""
        if (place := self._single[table]) is None:
            return [write_name(name_row([row[place] for place in self._places[table]])) for row in rows]
        return [write_name(name_value(row[place])) for row in rows]

    def read_rows(self, db: SqlConnection, table: str) -> Iterator[SealedRow]:
        """Yield every row of a table as it is sealed."""
        number = TABLES.index(table)
        for row in db.execute(f"SELECT {', '.join(self.columns[number])} FROM main.{table}"):
            yield self.seal(number, row)


_TABLE_COLUMNS = """SELECT t.name, c.name, c.cid, c.pk FROM main.sqlite_master t JOIN pragma_table_info(t.name) c
  WHERE t.type='table' ORDER BY t.name, c.cid"""


class SealedConnection(sqlite3.Connection):
    """A connection to a ledger's file: it raises the errors of `sql.errors`, and seals its changes with a `RowSeal`."""

    seal: RowSeal | None = None
    tables: SealedTables

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.changes = RowChanges()

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Run one statement. Raises DatabaseError."""
        try:
            return super().execute(sql, parameters)
        except sqlite3.Error as error:
            raise name_error(error) from error


def install_seal(db: SealedConnection, seal: RowSeal) -> None:
    """Make a writing connection note its changes, so that `seal_changes` seals them."""
    db.create_function("note_change", -1, db.changes.note)
    db.execute("PRAGMA recursive_triggers=ON")  # a replaced row counts as deleted, and is refused like a deletion
    db.tables, db.seal = SealedTables(db), seal
    for number, (table, columns) in enumerate(zip(TABLES, db.tables.columns, strict=True)):
        for statement in _triggers(number, table, columns):
            db.execute(statement)


def seal_changes(db: SqlConnection) -> None:
    """Seal the changes of a transaction at its end, if the connection notes them. Raises SealBroken."""
    if not isinstance(db, SealedConnection) or db.seal is None or not db.changes.size:
        return
    changes = RowSketch(len(TABLES))
    for table, rows in db.changes.list_rows().items():
        changes.toggle_rows(table, db.tables.name_rows(table, rows), db.seal.digest_rows(table, map(_write_row, rows)))
    if any(changes.totals):
        db.seal.extend(db, FILE_WRITER, changes)


def seal_all(db: SqlConnection, seal: RowSeal) -> None:
    """Seal every row as it is now, within the caller's transaction, for a new or migrated file."""
    before, old = read_seal(db, FILE_WRITER), read_old_seal(db)
    commits = before.commits if before is not None else old.counter if old is not None else 0
    tables = SealedTables(db)
    sketch = seal.sum_up(partial(tables.read_rows, db), tables.names)
    seal.store(db, FILE_WRITER, before, sketch.pack(), commits + 1)


def find_rewritten_rows(db: SqlConnection, key: bytes) -> list[str]:
    """Describe the rows that were not sealed with this key as they are. Of an older version, the tables are named."""
    if not _has_table(db, "writer_seal"):
        return OldRowSeal(key).find_rewritten(db)
    if (sealed := read_seal(db, FILE_WRITER)) is None:
        return ["the seal is missing"]
    tables = SealedTables(db)
    return RowSeal(key).find_rewritten([sealed], partial(tables.read_rows, db), tables.names)


def _write_row(row: Sequence[Any]) -> bytes:
    """Return the contents of a row without empty columns at its end, so that a new empty column changes no row."""
    if row[-1] is not None:  # most rows
        return _encode(row)
    end = len(row)
    while end and row[end - 1] is None:
        end -= 1
    return _encode(row[:end])


def _triggers(number: int, table: str, columns: Sequence[str]) -> Iterator[str]:
    old, new = (", ".join(f"{which}.{column}" for column in columns) for which in ("OLD", "NEW"))
    for event, removed, row in (
        ("INSERT", 0, new),
        ("DELETE", len(columns), old),
        ("UPDATE", len(columns), f"{old}, {new}"),
    ):
        yield f"""CREATE TEMP TRIGGER note_{table}_{event.lower()} AFTER {event} ON main.{table}
          BEGIN SELECT note_change({number}, {removed}, {row}); END"""


def open_sealed(db: SealedConnection, path: Path) -> "SealedFile":
    """Migrate the file behind a writing connection, and make the connection update the seal.

    A file is sealed as it is if it is new, was never sealed, or was migrated and had a valid
    seal before. Migrations and seal are one transaction: a process that is killed leaves the
    file as it was, and the next start does it all.

    Raises:
        RowsRewritten: the seal is invalid, and a migration would have made a new one.
        MarksBroken: it cannot be read whether the file was sealed before.
        NewerDatabase, ForeignDatabase, MigrationChanged: this software must not write to the file.
    """
    verify(db)  # before anything is created beside the file
    file = SealedFile(path)
    if not _is_current(db):
        with write_transaction(db):
            file.bring_up_to_date(db)
    install_seal(db, file.seal)
    file.note_progress()  # at once, because a file that was ever sealed is not sealed again
    return file


def note_restored(path: Path) -> None:
    """Record a restored backup as the newest state of the file, which it now is. Other marks are unchanged."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        mark = find_file_mark(db)
    note_seals(HighWater(path.parent), mark or SealMark(), lower=True)


def find_file_mark(db: SqlConnection) -> SealMark | None:
    """Return how far a file has come; None if it has no seal."""
    if _has_table(db, "writer_seal") and (sealed := read_seal(db, FILE_WRITER)) is not None:
        return find_mark([sealed])
    old = read_old_seal(db) if _has_table(db, "row_seal") else None
    return None if old is None else SealMark(commits=old.counter)


class SealedFile:
    """The seal of a file, its key, and what is known about other writers of the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._key = read_key(path.parent / KEY)
        self.seal = RowSeal(self._key)
        self.marks = HighWater(path.parent)
        self.checked_at: int | None = None  # the writer's `data_version` at the last check without findings
        self._rewritten: str | None = None

    def bring_up_to_date(self, db: SqlConnection) -> None:
        """Migrate and seal the file within the caller's transaction. See `open_sealed`.

        Only the mark outside the file says that it was sealed before: the key is there from
        the first start on, even if that start was killed before the seal.
        """
        version, is_sealed = verify(db), find_file_mark(db) is not None
        was_sealed = is_sealed or read_mark(self.marks) is not None
        is_older = version < len(migrations())
        if is_older and was_sealed and _has_table(db, "row_seal"):
            self.require_true(db)
        migrate_within(db)
        if (is_older and is_sealed) or (not is_sealed and (not was_sealed or _is_empty(db))):
            seal_all(db, self.seal)

    def find_rewritten(self, db: SqlConnection) -> list[str]:
        """Describe changes made without our key; empty if every row, trigger and index is as we left it."""
        older = self.find_older(db)  # first: see there
        return [*find_rewritten_rows(db, self._key), *find_schema_changes(db), *older]

    def find_older(self, db: SqlConnection) -> list[str]:
        """Say how much is missing if the file is an older copy of itself; empty if it is not.

        The mark is read before anything is read from the file: others write meanwhile, and raise it.
        """
        mark = read_mark(self.marks)
        return describe_older(find_file_mark(db), mark, "the file")

    def accept(self, db: SqlConnection) -> None:
        """Seal every row as it is now, within the caller's transaction, because a person vouches for it."""
        if isinstance(db, SealedConnection):
            db.changes.forget()
        seal_all(db, self.seal)
        note_seals(self.marks, find_file_mark(db) or SealMark(), lower=True)

    def check(self) -> None:
        """Check every row on a separate connection. Raises RowsRewritten."""
        self._read(self.require_true)

    def check_age(self) -> None:
        """Check only that the file is no older copy of itself. Raises RowsRewritten."""
        self._read(lambda db: self._require_none(self.find_older(db)))

    def _read(self, job: Callable[[SqlConnection], None]) -> None:
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as db:
            db.execute("BEGIN")
            job(db)

    def require_true(self, db: SqlConnection) -> None:
        """Raise RowsRewritten if rows were rewritten. From then on, `require_ours` fails too."""
        self._require_none(self.find_rewritten(db))

    def _require_none(self, changes: list[str]) -> None:
        if changes:
            self._rewritten = f"{self._path} was rewritten: {'; '.join(changes)}"
            log.critical("rows of money were not written by this service", extra={"found": changes})
            raise RowsRewritten(
                f"{self._rewritten}. Nothing is sold or signed. Restore a backup (`toolserver db restore`), or, if you"
                " know who wrote and why, accept the rows as they are (`toolserver ledger accept-rows`)."
            )

    def require_ours(self) -> None:
        """Raise StorageFailed if rewritten rows have been found."""
        if self._rewritten is not None:
            raise StorageFailed(self._rewritten)

    def note_progress(self) -> None:
        """Record the database's progress outside it, so that an older copy is recognised."""
        try:
            with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as db:
                mark = find_file_mark(db)
            if mark is not None:
                note_seals(self.marks, mark)
        except (sqlite3.Error, OSError, MarksBroken) as error:
            log.warning("the progress of the database could not be recorded", extra={"reason": str(error)})


def find_schema_changes(db: SqlConnection) -> list[str]:
    """Describe tables, indexes and triggers of money that differ from those of the applied migrations."""
    expected, actual = _expected_schema(migrations()[: verify(db)]), _schema(db)
    missing = [f"{name} is missing" for name in expected.keys() - actual.keys()]
    added = [f"{name} was added" for name in actual.keys() - expected.keys()]
    changed = [f"{name} was changed" for name in expected.keys() & actual.keys() if expected[name] != actual[name]]
    return sorted(missing + added + changed)


def find_damage(db: SqlConnection, shown: int) -> list[tuple[str, str]]:
    """Return what SQLite itself finds wrong with a file: the broken rule, and where."""
    texts = [text for (text,) in db.execute(f"PRAGMA integrity_check({shown})")]
    lost = [f"{row[0]} to {row[2]}" for row in db.execute("PRAGMA foreign_key_check")]
    problems = [("the file is sound", text) for text in texts if text != "ok"]
    return problems + [("references lead somewhere", where) for where in lost]


@functools.lru_cache(maxsize=2)  # a check after each write of another program would otherwise migrate again, in 15 ms
def _expected_schema(steps: tuple[Migration, ...]) -> Mapping[str, str]:
    with closing(sqlite3.connect(":memory:")) as new:
        migrate(new, steps)
        return _schema(new)


def _schema(db: SqlConnection) -> dict[str, str]:
    sql = """SELECT type || ' ' || name, tbl_name, sql FROM sqlite_master
      WHERE type IN ('table', 'index', 'trigger') AND sql IS NOT NULL"""
    return {name: " ".join(text.split()) for name, table, text in db.execute(sql) if table in TABLES}


def _has_table(db: SqlConnection, name: str) -> bool:
    return db.execute("SELECT 1 FROM sqlite_master WHERE type='table' AND name=?", (name,)).fetchone() is not None


def _is_current(db: SqlConnection) -> bool:
    """Return True if every migration was applied and the file has a seal."""
    return verify(db) == len(migrations()) and read_seal(db, FILE_WRITER) is not None


def _is_empty(db: SqlConnection) -> bool:
    """Return True if nothing was ever bought, called or recorded."""
    tables = ("token", "receipt", "packed_receipt", "no_charge", "uncharged_call")
    return not any(db.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() for table in tables)


def is_small(db: SqlConnection) -> bool:
    """Return True if the rows can be checked within the few seconds that a start may take."""
    return int(db.execute("SELECT coalesce(max(seq), 0) FROM transfer").fetchone()[0]) <= SMALL


def data_version(db: SqlConnection) -> int:
    """Return a number that changes for this connection when another connection has written."""
    return int(db.execute("PRAGMA data_version").fetchone()[0])
