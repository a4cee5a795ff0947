"""Read the tables that both engines keep, page by page in the order of their keys, so that two copies can be compared.

Both engines have the same tables with the same columns, and order texts and bytes alike. Rows
read from a file and from a server have equal values, and therefore equal digests.
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import cache
from graphlib import TopologicalSorter
from typing import Any, NamedTuple

import msgspec

from toolserver.sql.connection import SqlConnection
from toolserver.sql.migrate import migrate

PAGE = 10_000  # rows
LEFT_OUT = {
    "migration",
    "row_seal",
    "writer_seal",
    "sqlite_sequence",
    "lease",
}  # per engine; a lease belongs to a process
encode_key = msgspec.msgpack.Encoder().encode
decode_key = msgspec.msgpack.Decoder(list[Any]).decode

CountRows = Callable[[str, int], None]
"""Called with the name of a table and how many of its rows were just read or copied."""


class KeptTable(NamedTuple):
    """A table, its columns in order, and the columns of its key."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]

    def key_of(self, row: Sequence[Any]) -> list[Any]:
        """Return the key of a row."""
        return [row[self.columns.index(column)] for column in self.key]


class TableFacts(NamedTuple):
    """The number of rows in a table, and the SHA-256 over all of them in the order of their keys."""

    rows: int
    sha256: str


@cache
def list_kept_tables() -> tuple[KeptTable, ...]:
    """List every table with data to keep. A table comes after those that it refers to."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db)
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table' ORDER BY rowid")]
        tables = [name for name in names if name not in LEFT_OUT]
        after = {name: {row[2] for row in db.execute(f"PRAGMA foreign_key_list({name})")} - {name} for name in tables}
        return tuple(_describe(db, name) for name in TopologicalSorter(after).static_order())


def read_pages(
    db: SqlConnection, table: KeptTable, after: Sequence[Any] | None = None, limit: int = PAGE, where: str = ""
) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the rows of a table after a key, in key order, page by page. Only one page is in memory.

    `where` is an SQL condition, without parameters, that selects rows.
    """
    names, key = (", ".join(f'"{name}"' for name in each) for each in (table.columns, table.key))
    marks = ", ".join("?" * len(table.key))
    while True:
        conditions = ([f"({where})"] if where else []) + ([] if after is None else [f"({key}) > ({marks})"])
        behind = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        page = db.execute(
            f"SELECT {names} FROM {table.name} {behind} ORDER BY {key} LIMIT {limit}", tuple(after or ())
        ).fetchall()
        if page:
            yield page
        if len(page) < limit:
            return
        after = table.key_of(page[-1])


def read_table_facts(db: SqlConnection, count: CountRows = lambda name, rows: None) -> dict[str, TableFacts]:
    """Return the facts about every kept table by its name."""
    return {table.name: _sum_up(db, table, count) for table in list_kept_tables()}


def sum_accounts(db: SqlConnection) -> dict[str, list[int]]:
    """Return posted credits, posted debits and pending amounts, summed over the accounts of each kind."""
    sql = "SELECT kind, sum(credits), sum(debits), sum(pending) FROM account GROUP BY kind ORDER BY kind"
    return {kind: [int(each) for each in sums] for kind, *sums in db.execute(sql)}


def _sum_up(db: SqlConnection, table: KeptTable, count: CountRows) -> TableFacts:
    encode, digest, rows = msgspec.msgpack.Encoder().encode, hashlib.sha256(), 0
    for page in read_pages(db, table):
        digest.update(b"".join(map(encode, page)))
        rows += len(page)
        count(table.name, len(page))
    return TableFacts(rows, digest.hexdigest())


def _describe(db: SqlConnection, name: str) -> KeptTable:
    columns = db.execute("SELECT name, pk FROM pragma_table_info(?) ORDER BY cid", (name,)).fetchall()
    key = sorted((place, column) for column, place in columns if place)
    return KeptTable(name, tuple(column for column, _ in columns), tuple(column for _, column in key))
