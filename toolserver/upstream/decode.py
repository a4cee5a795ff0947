"""Decodes a body, has the source parse it, and checks both: every body of every source passes through here.

A parser passes the rows of a list through `read_rows`. One damaged row says nothing about the
others, but a list with many unreadable rows has a different shape. The rows that are left out
of one body are counted, and answers report the number.
"""

import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from toolserver.upstream.source import (
    UNREADABLE,
    USUAL_SHARE,
    Get,
    Source,
    SourceAnswer,
    SourceChanged,
    SourceEmpty,
    SourceError,
    SourceTooLarge,
)

T = TypeVar("T")
R = TypeVar("R")

ALWAYS_ALLOWED = 3  # unreadable rows


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


log = logging.getLogger(__name__)

MOST_VALUES = 1_500_000  # of one JSON body; a list of empty lists has a value every three bytes, and each takes sixty
MOST_LINES = 500_000  # of one text
LONGEST_REASON = 200  # characters
_HTML = re.compile(rb"\s*(?:\xef\xbb\xbf)?\s*<(?:!doctype html|html)", re.IGNORECASE)


class NoNumber:
    """Replaces NaN and Infinity, which are not JSON: a row that uses one is unreadable, the others are not."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _refuse(self, *args: Any) -> Any:
        raise ValueError(f"{self._name} is not JSON")

    __str__ = __repr__ = __bool__ = __hash__ = __eq__ = __float__ = __int__ = _refuse


def parse_body(source: Source[Any, Any], request: Get, query: Any, body: bytes, *, cut: bool = False) -> Any:
    """Return the source's result for a body. Raise SourceError for everything that is not a good answer.

    `cut` means that reading stopped at the source's limit: only the complete lines are parsed.
    """
    if cut:
        body = body[: body.rfind(b"\n") + 1]
    failure = None
    try:
        result = source.parse(_decode(request, body), query)
        if any(name in body for name in (b"NaN", b"Infinity")):
            _refuse_constants(result)
    except Exception as error:
        failure = _judge_failure(source, error)
    if failure is not None:
        raise failure  # outside the handler: the exception would keep its cause, which often has the whole body
    items = _count_items(result, source.least)
    if items is not None and items < source.least:
        raise SourceEmpty(f"{items} items")
    return result


@dataclass(frozen=True, slots=True)
class ParsedBody:
    """A parsed body: the result, the newest item's time, the time that its age is judged by, the rows left out."""

    value: Any
    newest_at: datetime | None
    dated: datetime | None
    dropped: int = 0

    def make_answer(self, fetched_at: datetime, latency_ms: int | None = None) -> SourceAnswer[Any]:
        """Return the source's answer, for a body that was fetched at this time."""
        return SourceAnswer(
            self.value, fetched_at, self.newest_at, self.dated, latency_ms=latency_ms, dropped=self.dropped
        )


def read_body(source: Source[Any, Any], request: Get, query: Any, body: bytes, *, cut: bool = False) -> ParsedBody:
    """Return the source's result for a body, with its times and the count of rows left out. Raise SourceError."""
    with count_rows(source.unreadable_share) as rows:
        value = parse_body(source, request, query, body, cut=cut)
    return replace(read_times(source, value), dropped=rows.dropped)


def read_times(source: Source[Any, Any], value: Any) -> ParsedBody:
    """Return a result with its times. Raise SourceError."""
    try:
        newest = source.newest(value) if source.newest else None
        return ParsedBody(value, newest, source.stamp(value) if source.stamp else newest)
    except Exception as error:
        raise _judge_failure(source, error) from error


def _judge_failure(source: Source[Any, Any], error: Exception) -> SourceError:
    """Return the SourceError for a parser's exception. Unexpected kinds are logged with their traceback."""
    if isinstance(error, SourceError):
        error.__context__ = error.__cause__ = None
        return error
    if isinstance(error, MemoryError):
        return SourceTooLarge("it takes more memory than is available")
    if not isinstance(error, UNREADABLE):
        log.error("a parser failed in an unusual way", exc_info=error, extra={"source": source.name})
    return SourceChanged(f"{type(error).__name__}: {error}"[:LONGEST_REASON])


def _refuse_constants(result: Any) -> None:
    """Raise ValueError for a result that contains a constant which a parser used as a value."""
    if isinstance(result, NoNumber):
        str(result)
    elif isinstance(result, Mapping):
        _refuse_constants(list(result.values()))
    elif isinstance(result, list | tuple | frozenset):
        for each in result:
            _refuse_constants(each)


def _count_items(result: Any, least: int) -> int | None:
    """Return how many items a result lists, or None if it is not a list.

    A NamedTuple is one record with fields. If a source has a minimum number of items, the first field is the list.
    """
    listed = result[0] if hasattr(result, "_fields") and least > 1 else result
    is_list = isinstance(listed, Sized) and not isinstance(listed, str | bytes) and not hasattr(listed, "_fields")
    return len(listed) if is_list else None


def _decode(request: Get, body: bytes) -> Any:
    if not body.strip():
        return None
    if _HTML.match(body[:200]) and not request.headers.get("Accept", "").startswith("text/html"):
        raise SourceChanged("an HTML page")
    if request.decode == "bytes":
        return body
    start = body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start == b"<" and not request.headers.get("Accept", "").startswith("text/html"):
        raise SourceChanged("markup where data was expected")
    _refuse_too_many(request, body)
    text = body.decode(json.detect_encoding(body) if request.decode == "json" else "utf-8-sig")
    return _load_json(text) if request.decode == "json" else text


def _load_json(text: str) -> Any:
    """Return the value of a JSON text, by the faster of two readers.

    If that one refuses a text (NaN, half of a character, an unlimited number), the standard reader reads it.
    """
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(text)
    return json.loads(text, parse_constant=NoNumber)


def _refuse_too_many(request: Get, body: bytes) -> None:
    """Raise SourceTooLarge for a body whose values or lines would take many times the memory of the body."""
    if len(body) < MOST_LINES:
        return
    if request.decode == "json" and sum(map(body.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise SourceTooLarge(f"over {MOST_VALUES} values")
    if request.decode == "text" and body.count(b"\n") > MOST_LINES:
        raise SourceTooLarge(f"over {MOST_LINES} lines")
