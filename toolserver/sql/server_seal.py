"""Keep the rows of a database on a server sealed: each process is a writer with a seal of its own (`row_seal`).

The tables' own triggers list the rows that a transaction changed in a setting of that
transaction, as text. Before the commit, the writer adds them to its seal. The seal of writer 0
has the rows that were there when sealing began, and those of writers that are gone.

Someone who can change the triggers can let them list rows that were not changed. So a check
compares triggers and their functions with the scripts that made them, too.
"""

import re
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from typing import Any

import msgspec

from toolserver.sql.connection import SqlConnection
from toolserver.sql.kept_tables import list_kept_tables
from toolserver.sql.migrate import FOLDER, migrations
from toolserver.sql.row_seal import (
    TABLES,
    RowSeal,
    RowSketch,
    SealBroken,
    SealedRow,
    WriterSeal,
    name_row,
    read_seal,
    read_seals,
    write_name,
)

BASE = 0  # the writer of the rows that were there when sealing began
NOTED = ","  # what `toolserver.rows` has at the beginning of a transaction
BEGIN_NOTING = f"SET LOCAL toolserver.rows = '{NOTED}'"
READ_NOTED = "current_setting('toolserver.rows', true)"
AT_ONCE = 5_000  # rows
GONE_MS = 7 * 86_400_000  # a writer that has sealed nothing for so long is taken for gone
MERGED = 50  # seals of writers in one transaction
_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
_decode = msgspec.json.Decoder(list[tuple[str, list[str], list[str]]]).decode
_FIELD = re.compile(r'"((?:[^"\\]|\\.|"")*)"|([^,]*)')
_MARKED = re.compile(r'["\\]')
_ESCAPED = re.compile(r'\\(.)|"(")')
_TRIGGERS = """SELECT c.relname::text, t.tgname::text, t.tgenabled::text, p.proname::text, p.prosrc
  FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
  WHERE NOT t.tgisinternal AND c.relnamespace = current_schema()::regnamespace"""
_MADE = re.compile(r"(CREATE|DROP) TRIGGER (\w+)\s+(?:(?:BEFORE|AFTER) [\w ,]+? )?ON (\w+)")
_FUNCTION = re.compile(r"CREATE (?:OR REPLACE )?FUNCTION (\w+)\(\) RETURNS trigger.*?AS \$\$(.*?)\$\$", re.DOTALL)
_NOTING = ("note_added_rows", "note_changed_rows", "note_removed_rows")


class ServerSeal:
    """The seal of one connection that writes."""

    def __init__(self, key: bytes) -> None:
        self.seal = RowSeal(key)
        self._writer = _name_writer()
        self._last: WriterSeal | None = None  # of our last transaction; None if it has to be read
        self._pending: WriterSeal | None = None  # of the transaction that is open
        self._committed = 0

    def extend(self, db: SqlConnection, noted: str | None) -> str:
        """Seal the rows that a transaction has noted. Raises SealBroken if the stored seal is older, or not ours.

        Returns the statement that stores the seal, which is sent together with the commit; ''
        if there is nothing more to do. It fails, by a division by zero, if the stored seal is
        not the one of our last transaction: then the transaction has to be run again.
        """
        self._pending = None
        if not noted or noted == NOTED:
            return ""
        changes = self._sum_up(_decode(f"[{noted.strip(',')}]"))
        if not any(changes.totals):
            return ""
        if (before := self._last) is None:
            self._pending = self._extend_stored(db, changes)
            return ""
        self._pending = self.seal.follow(before, self.seal.open(before) ^ changes.pack())
        return _write_replacement(before, self._pending)

    def note_commit(self) -> None:
        """Note that the transaction was committed: from now on, an older seal of this writer is not believed."""
        if self._pending is not None:
            self._last, self._committed, self._pending = self._pending, self._pending.commits, None

    def note_rollback(self) -> None:
        """Note that the transaction was rolled back."""
        self._pending = None

    def forget(self) -> None:
        """Note that the stored seal may be another one than that of our last transaction, so that it is read."""
        self._last = self._pending = None

    def _sum_up(self, noted: Iterable[tuple[str, list[str], list[str]]]) -> RowSketch:
        tables: dict[str, set[str]] = {}
        for table, removed, added in noted:
            tables[table] = tables.get(table, set()).symmetric_difference(removed).symmetric_difference(added)
        changes = RowSketch(len(TABLES))
        for table, texts in tables.items():
            rows, number = [seal_text(table, text) for text in texts], TABLES.index(table)
            names = [write_name(row.name) for row in rows]
            changes.toggle_rows(number, names, self.seal.digest_rows(number, [row.contents for row in rows]))
        return changes

    def _extend_stored(self, db: SqlConnection, changes: RowSketch) -> WriterSeal:
        before = read_seal(db, self._writer)
        if before is None and self._committed:  # it was merged while we wrote nothing
            self._writer, self._committed = _name_writer(), 0
        if before is not None and before.commits < self._committed:
            raise SealBroken(
                f"the database is an older copy: this instance has written {self._committed - before.commits}"
                " transactions that it lacks"
            )
        return self.seal.extend(db, self._writer, changes)


def seal_server(db: SqlConnection, seal: RowSeal) -> None:
    """Seal every row as it is now, within a transaction that `begin_snapshot` began. Others may write meanwhile.

    Seals that are not ours are removed, because a person vouches for the rows. A writer whose seal is gone begins anew.
    """
    before, others, commits = None, 0, 0
    for each in read_seals(db):
        if each.writer == BASE:
            before, commits = each, each.commits
            continue
        try:
            others ^= seal.open(each)
        except SealBroken:
            commits += each.commits
            db.execute("DELETE FROM writer_seal WHERE writer=?", (each.writer,))
    rows = seal.sum_up(partial(read_server_rows, db), TABLES)
    seal.store(db, BASE, before, rows.pack() ^ others, commits + 1)


def begin_snapshot(db: Any) -> None:
    """Begin a transaction on a connection to a server that sees the database at one point in time, and may write."""
    db.begin()
    db.run_script(_SNAPSHOT)


def find_rewritten_on_server(db: SqlConnection, key: bytes) -> list[str]:
    """Describe the rows and triggers that are not as this software left them, on one snapshot."""
    seals = read_seals(db)
    if not any(each.writer == BASE for each in seals):
        return ["the seal is missing"]
    return [*RowSeal(key).find_rewritten(seals, partial(read_server_rows, db), TABLES), *find_trigger_changes(db)]


def is_server_sealed(db: SqlConnection) -> bool:
    """Return True if the rows of a database were sealed."""
    return db.execute("SELECT 1 FROM writer_seal WHERE writer=?", (BASE,)).fetchone() is not None


def read_server_rows(db: SqlConnection, table: str) -> Iterator[SealedRow]:
    """Yield the rows of a table as they are sealed. Only some are in memory."""
    db.execute(f"DECLARE sealed CURSOR FOR SELECT r::text FROM {table} r")
    while rows := db.execute(f"FETCH {AT_ONCE} FROM sealed").fetchall():
        for (text,) in rows:
            yield seal_text(table, text)
    db.execute("CLOSE sealed")


def seal_text(table: str, text: str) -> SealedRow:
    """Return a row as it is sealed, from PostgreSQL's text of it: without empty columns at its end."""
    fields = text[1:-1]
    first = fields.partition(",")[0]
    if _find_key_places(table) == (0,) and not _MARKED.search(first):  # most rows, in a paid call
        return SealedRow(first, fields.rstrip(",").encode())
    return SealedRow(name_row(_read_key(table, fields)), fields.rstrip(",").encode())


def merge_seals(db: SqlConnection, seal: RowSeal) -> int:
    """Add the seals of writers that are gone to that of writer 0, within the caller's transaction. Returns how many.

    Seals that are not ours stay as they are, so that a check finds them.
    """
    base = db.execute("SELECT 1 FROM writer_seal WHERE writer=? FOR UPDATE SKIP LOCKED", (BASE,)).fetchone()
    before = read_seal(db, BASE)
    if base is None or before is None:
        return 0
    sketch, commits, gone = seal.open(before), before.commits, list[int]()
    sql = f"""SELECT writer, commits, at, before, nonce, sketch, head FROM writer_seal
      WHERE writer<>? AND at<? LIMIT {MERGED} FOR UPDATE SKIP LOCKED"""
    for row in db.execute(sql, (BASE, time.time_ns() // 1_000_000 - GONE_MS)):
        each = WriterSeal(*row)
        with suppress(SealBroken):
            sketch, commits = sketch ^ seal.open(each), commits + each.commits
            gone.append(each.writer)
    if gone:
        db.execute("DELETE FROM writer_seal WHERE writer = ANY(?)", (gone,))
        seal.store(db, BASE, before, sketch, commits)
    return len(gone)


def find_trigger_changes(db: SqlConnection) -> list[str]:
    """Describe triggers of the sealed tables, and functions of theirs, that differ from those of the scripts."""
    expected, bodies = _list_expected()
    actual = {(table, name): (state, function, body) for table, name, state, function, body in db.execute(_TRIGGERS)}
    actual = {key: found for key, found in actual.items() if key[0] in TABLES}
    missing = [f"trigger {name} of {table} is missing" for table, name in expected - actual.keys()]
    added = [f"trigger {name} of {table} was added" for table, name in actual.keys() - expected]
    off = [f"trigger {name} of {table} is off" for (table, name), (state, *_) in actual.items() if state != "O"]
    changed = {
        f"function {function} was changed" for _, function, body in actual.values() if bodies.get(function) != body
    }
    return sorted([*missing, *added, *off, *changed])


@cache
def _list_expected() -> tuple[frozenset[tuple[str, str]], dict[str, str]]:
    """Return the triggers of the sealed tables, each with its table, and the bodies of functions, by the scripts."""
    triggers = {(table, name) for table in TABLES for name in _NOTING}
    bodies: dict[str, str] = {}
    for step in migrations(FOLDER / "postgres"):
        for verb, name, table in _MADE.findall(step.sql):
            (triggers.add if verb == "CREATE" else triggers.discard)((table, name))
        bodies.update(_FUNCTION.findall(step.sql))
    return frozenset(each for each in triggers if each[0] in TABLES), bodies


@cache
def _find_key_places(table: str) -> tuple[int, ...]:
    (kept,) = (each for each in list_kept_tables() if each.name == table)
    return tuple(kept.columns.index(column) for column in kept.key)


def _read_key(table: str, fields: str) -> list[str]:
    places = _find_key_places(table)
    last = max(places)
    whole = [_read_plain(value) for value in fields.split(",", last + 1)[: last + 1]]
    if None not in whole:  # which is much faster
        return [whole[place] or "" for place in places]
    values, at = list[str](), 0
    while len(values) <= last:
        match = _FIELD.match(fields, at)
        assert match is not None  # the second form matches anything
        quoted, plain = match.groups()
        values.append(plain if quoted is None else _ESCAPED.sub(r"\1\2", quoted))
        at = match.end() + 1
    return [values[place].removeprefix("\\x") for place in places]


def _read_plain(value: str) -> str | None:
    """Return a text between two commas if it is a whole field, without escapes or only bytes; else None."""
    if value.startswith('"\\\\x') and value.endswith('"') and not _MARKED.search(value, 4, len(value) - 1):
        return value[4:-1]
    return None if _MARKED.search(value) else value


def _write_replacement(before: WriterSeal, seal: WriterSeal) -> str:
    """Return the statement that replaces a writer's seal, and fails if it is not stored. It needs no parameters."""
    values = {name: f"decode('{value.hex()}', 'hex')" for name, value in seal._asdict().items() if type(value) is bytes}
    changes = ", ".join(f"{name}={value}" for name, value in {"commits": seal.commits, "at": seal.at, **values}.items())
    mine = f"writer={seal.writer} AND head=decode('{before.head.hex()}', 'hex')"
    return f"WITH sealed AS (UPDATE writer_seal SET {changes} WHERE {mine} RETURNING 1) SELECT 1 / count(*) FROM sealed"


def _name_writer() -> int:
    return 1 + secrets.randbelow(2**62)
