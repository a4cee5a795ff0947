"""Define what stores need from a connection of either engine: `sqlite3.Connection` or the one for PostgreSQL.

A store passes synchronous functions over a connection to a `GroupCommit`. Its SQL is the same
text for both engines where possible. Elsewhere, a function of this module writes the part
that differs:

| SQLite | PostgreSQL | here |
|---|---|---|
| `x IN (SELECT value FROM json_each(?))` | `x = ANY(?)` | `among(db, "x", values)` |
| `VALUES (?, ?), …` | `unnest(?, ?)` | `pairs(db, values)`, a table `asked(a, b)` |
| nothing: the writer has the whole file | `FOR NO KEY UPDATE` in the order of ids | `lock_rows(db, sql, parameters)` |
| `IN (SELECT id …)` | `= ANY(ARRAY(… FOR NO KEY UPDATE SKIP LOCKED))` | `unclaimed(db, "SELECT id …")` |
| the greatest number in a table, plus one | a sequence | `next_numbers(db, sequence, query)` |
| `CROSS JOIN t ON …`, which keeps the order; `INDEXED BY` | `JOIN t ON …` | `in_order(db, sql)` |
| `lower(hex(x))` | `encode(x, 'hex')` | `hex_of(db, "x")` |
| `json_extract(CAST(x AS TEXT), '$.m')` | `convert_from(x, 'UTF8')::jsonb ->> 'm'` | `json_text`, `json_number` |
| the caller's clock, of the one process | the server's clock | `read_clock(db, now)` |
| nothing | an advisory lock | `hold_together(db, name)`, `hold_alone(db, name)` |

Placeholders are written as SQLite writes them: `?`, `?1` or `:name`. A parameter that is only
compared with NULL needs a type: `CAST(? AS BIGINT) IS NULL`. Errors are those of
`sql.errors`. On PostgreSQL, a statement that fails ends the transaction, so each operation of
a group that is applied separately has a savepoint.
"""

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, Protocol, TypeAlias

Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any]

_OURS = 0x5453  # our class of advisory locks on a server
NUMBERS = 1024  # numbers in a block: sequences in the PostgreSQL scripts have this increment
_SIZES = (64, 32, 16, 8, 4, 2, 1)  # few, so that every statement is prepared once


class SqlCursor(Protocol):
    """The rows returned by a statement, as tuples, and the number of rows it changed."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class SqlConnection(Protocol):
    """A connection to the database, within the transaction of the current group."""

    @property
    def in_transaction(self) -> bool: ...

    def execute(self, sql: str, parameters: Parameters = ..., /) -> SqlCursor: ...


def is_shared(db: SqlConnection) -> bool:
    """Return True if other instances may write to the database while our transaction is open."""
    return bool(getattr(db, "shared", False))


def among(db: SqlConnection, column: str, values: Sequence[str] | Sequence[int]) -> tuple[str, Any]:
    """Return the condition that a column has one of these values, with one placeholder, and its parameter."""
    if is_shared(db):
        return f"{column} = ANY(?)", list(values)
    return f"{column} IN (SELECT value FROM json_each(?))", json.dumps(list(values))


def among_values(db: SqlConnection, column: str, values: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    """Return the condition that a column has one of these values, and its parameters: in a
    file a placeholder each, for bytes, which JSON has not, and for statements that a group of
    calls runs.
    """
    if is_shared(db):
        return f"{column} = ANY(?)", (list(values),)
    size = 1 << max(0, len(values) - 1).bit_length()  # few sizes, so that every statement is prepared once
    return f"{column} IN ({','.join('?' * size)})", [*values, *[None] * (size - len(values))]


def pairs(db: SqlConnection, values: Sequence[tuple[str, str]]) -> tuple[str, Sequence[Any]]:
    """Return a table `asked` of these pairs of texts, with columns `a` and `b`, and its parameters."""
    if is_shared(db):
        firsts, seconds = ([pair[place] for pair in values] for place in (0, 1))
        return "unnest(CAST(? AS text[]), CAST(? AS text[])) AS asked(a, b)", (firsts, seconds)
    rows = ", ".join(["(?, ?)"] * len(values))
    texts = [text for pair in values for text in pair]
    return f"(SELECT column1 AS a, column2 AS b FROM (VALUES {rows})) AS asked", texts


def lock_rows(db: SqlConnection, sql: str, parameters: Parameters) -> set[Any] | None:
    """Lock the rows that a query selects, in the order of their ids, and return the ids.

    The query selects `id` of one table and has no ORDER BY. None if nobody else can write.
    """
    if not is_shared(db):
        return None
    # The weaker of the two locks for writers: references to the row, which take their own lock, do not wait for it.
    return {id for (id,) in db.execute(f"{sql} ORDER BY id FOR NO KEY UPDATE", parameters)}


def unclaimed(db: SqlConnection, query: str) -> str:
    """Return the condition that an id is among the first that a query selects and that no other instance changes now.

    On a server, an array keeps to the index of the query, where a list of a subquery would read the whole table.
    """
    return f"= ANY(ARRAY({query} FOR NO KEY UPDATE SKIP LOCKED))" if is_shared(db) else f"IN ({query})"


def for_change(db: SqlConnection, query: str) -> str:
    """Return the query of one table so that nobody else changes its rows until the transaction ends."""
    return f"{query} FOR NO KEY UPDATE" if is_shared(db) else query


def next_numbers(db: SqlConnection, sequence: str, *greatest: str) -> list[int]:
    """Return the first free number for each kind of new rows; `greatest` are queries for the greatest in use, or NULL.

    If others write at the same time, it is the first number of a block of `NUMBERS` that no one else gets.
    """
    if is_shared(db):
        row = db.execute(f"SELECT nextval('{sequence}')").fetchone()
        return [int(row[0])] * len(greatest)
    row = db.execute(f"SELECT {', '.join(f'({query})' for query in greatest)}").fetchone()
    return [(number or 0) + 1 for number in row]


def in_order(db: SqlConnection, sql: str) -> str:
    """Adapt a query with hints for join order or index to the engine: PostgreSQL needs no hints."""
    return re.sub(r" INDEXED BY \w+", "", sql.replace("CROSS JOIN", "JOIN")) if is_shared(db) else sql


def hex_of(db: SqlConnection, column: str) -> str:
    """Return the expression for the bytes of a column as hexadecimal digits."""
    return f"encode({column}, 'hex')" if is_shared(db) else f"lower(hex({column}))"


def json_text(db: SqlConnection, column: str, member: str) -> str:
    """Return the expression for a text member of the JSON object whose bytes are in a column."""
    if is_shared(db):
        return f"(convert_from({column}, 'UTF8')::jsonb ->> '{member}')"
    return f"json_extract(CAST({column} AS TEXT), '$.{member}')"


def json_number(db: SqlConnection, column: str, member: str) -> str:
    """Return the same for a member that is a whole number."""
    return f"CAST({json_text(db, column, member)} AS bigint)" if is_shared(db) else json_text(db, column, member)


def read_clock(db: SqlConnection, now: int) -> int:
    """Return the time in epoch milliseconds: the server's, which all instances share, or the caller's `now`."""
    if not is_shared(db):
        return now
    return int(db.execute("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)").fetchone()[0])


def read_server_clock(db: SqlConnection) -> int:
    """Return the server's time in epoch milliseconds; 0 for a file, which has no clock."""
    return read_clock(db, 0)


def hold_together(db: SqlConnection, name: str) -> None:
    """Hold a shared lock on this name until the transaction ends. Others may share it but not hold it alone."""
    if is_shared(db):
        db.execute("SELECT pg_advisory_xact_lock_shared(?, ?)", _number(name))


def hold_alone(db: SqlConnection, name: str) -> None:
    """Hold an exclusive lock on this name until the transaction ends. SQLite has only one writer anyway."""
    if is_shared(db):
        db.execute("SELECT pg_advisory_xact_lock(?, ?)", _number(name))


def _number(name: str) -> tuple[int, int]:
    return _OURS, zlib.crc32(name.encode()) - 2**31


def insert(
    db: SqlConnection, into: str, rows: Sequence[Sequence[Any]], more: str = "", *, types: str | None = None
) -> int:
    """Run `into`, such as `INSERT INTO t VALUES`, with these rows; `more` is appended, such as `ON CONFLICT …`.

    Returns how many rows were written. With `types`, PostgreSQL's types of the columns, a
    server gets all rows in one statement, as arrays; otherwise a statement has at most 64 of
    them.
    """
    if types is not None and rows and is_shared(db):
        return db.execute(_unnest(into, types, more), [list(column) for column in zip(*rows, strict=True)]).rowcount
    at = written = 0
    for size in _SIZES:
        while len(rows) - at >= size:
            part = rows[at : at + size]
            values = list(chain.from_iterable(part))
            written += db.execute(_statement(into, size, len(part[0]), more), values).rowcount
            at += size
    return written


@cache
def _unnest(into: str, types: str, more: str) -> str:
    arrays = ", ".join(f"CAST(? AS {each}[])" for each in types.split())
    return f"{into.removesuffix('VALUES')}SELECT * FROM unnest({arrays}) {more}"


@cache
def _statement(into: str, rows: int, columns: int, more: str) -> str:
    row = f"({','.join('?' * columns)})"
    return f"{into} {','.join([row] * rows)} {more}"
