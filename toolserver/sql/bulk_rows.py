"""Insert many rows in few statements, because each statement releases the GIL once."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from toolserver.sql.connection import SqlConnection

_SIZES = (64, 32, 16, 8, 4, 2, 1)  # few, so that every statement is prepared once


def insert(db: SqlConnection, into: str, rows: Sequence[Sequence[Any]], more: str = "") -> None:
    """Run `into`, such as `INSERT INTO t VALUES`, with these rows; `more` is appended, such as `ON CONFLICT …`."""
    at = 0
    for size in _SIZES:
        while len(rows) - at >= size:
            part = rows[at : at + size]
            db.execute(_statement(into, size, len(part[0]), more), [value for row in part for value in row])
            at += size


@cache
def _statement(into: str, rows: int, columns: int, more: str) -> str:
    row = f"({','.join('?' * columns)})"
    return f"{into} {','.join([row] * rows)} {more}"
