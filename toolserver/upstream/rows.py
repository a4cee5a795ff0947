"""Reads the rows of a list one by one. Unreadable rows are left out and counted; too many of them are an error.

One damaged row says nothing about the others, but a list with many unreadable rows has a different shape. A parser
passes its rows through `read_rows`; the engine counts the rows left out of one body, and answers report the number.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from toolserver.upstream.source_errors import UNREADABLE, SourceChanged

T = TypeVar("T")
R = TypeVar("R")

USUAL_SHARE, ALWAYS_ALLOWED = 0.1, 3  # of the rows; rows


@dataclass(slots=True)
class RowCount:
    """The row counts of one body: `share` of `seen` may be unreadable, `dropped` were left out."""

    share: float = USUAL_SHARE
    dropped: int = 0
    seen: int = 0


_COUNTING: ContextVar[RowCount | None] = ContextVar("rows of the body that is parsed", default=None)


@contextmanager
def count_rows(share: float) -> Iterator[RowCount]:
    """Count the rows that `read_rows` leaves out while the block runs, and judge them by this share."""
    count = RowCount(share)
    token = _COUNTING.set(count)
    try:
        yield count
    finally:
        _COUNTING.reset(token)


def read_rows(rows: Iterable[T], read: Callable[[T], R | None]) -> tuple[R, ...]:
    """Return the results of `read` for each row, in order. A None result skips the row without counting it.

    Raises:
        SourceChanged: more rows are unreadable than the source's share, or more than three of a few rows.
        Exception: the first row's exception, if no row can be read.
    """
    count = _COUNTING.get() or RowCount()
    readable: list[R] = []
    total = dropped = 0
    first: Exception | None = None
    for row in rows:
        total += 1
        try:
            value = read(row)
        except (SourceChanged, *UNREADABLE) as error:
            dropped += 1
            first = first or error
            continue
        if value is not None:
            readable.append(value)
    if first is not None and dropped == total:
        raise first
    if dropped > max(ALWAYS_ALLOWED, count.share * total):
        raise SourceChanged(f"{dropped} of {total} rows: {type(first).__name__}: {first}"[:200])
    count.dropped += dropped
    count.seen += total
    return tuple(readable)
