"""Defines the first argument of a tool function, which reads sources and records where each value came from.

    value = await ctx.read(QUAKES, query)                      raises
    value = await ctx.first("data", via(A, q), via(B, q))      raises when no fallback answers
    value = await ctx.section("data", via(A, q), via(B, q))    None and a warning when no fallback answers

A kept, stale value is used only if no fallback returns a fresh one.

    limit: Annotated[int, up_to(100)] = 20
    shown = ctx.page(rows, limit)

A tool with a list takes `limit`, whose default keeps the answer within 8,000 tokens; a tool
with a long list also takes `cursor`. If items are left out, a warning gives the total.
`read_sections` reads the sections of a composed payload concurrently, each by its own chain.

A tool keeps time series between compositions in `ctx.history`: numbers by series and key,
bounded, kept across restarts. Rows that are more than a number and need not survive a restart
go into a `Ring`.
"""

import math
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import anyio
from pydantic import Field

from toolserver.context.fallback import Fallback, FallbackChain, FallbackReader, attempt, limit_time, via
from toolserver.context.provenance import Code, Provenance, SourceNote
from toolserver.core.caller import Caller
from toolserver.core.models import DataPoint, iso
from toolserver.errors import InvalidArguments, MissingToken
from toolserver.upstream.host_lane import RequestWithheld
from toolserver.upstream.source import Source, SourceError, SourceReader, SourceUnproved

Row = TypeVar("Row")

SERIES_KEYS = 2000  # per series; above it the least recently written key is dropped
SERIES_POINTS = 1000  # per key


class Ring(Generic[Row]):
    """At most `most` rows in memory, one per key. Each is kept for `keep_s` seconds after its time."""

    def __init__(self, keep_s: float, most: int) -> None:
        self._keep_s, self._most = keep_s, most
        self._rows: dict[str, tuple[datetime, Row]] = {}  # least recently put first

    def get(self, key: str) -> Row | None:
        """Return the row of a key, or None."""
        row = self._rows.get(key)
        return row[1] if row else None

    def put(self, key: str, row: Row, at: datetime) -> None:
        """Store a row, replacing the key's previous one. Above the bound, the oldest row is dropped."""
        self._rows.pop(key, None)  # a row put again is the newest
        self._rows[key] = (at, row)
        if len(self._rows) > self._most:
            del self._rows[next(iter(self._rows))]

    def rows(self, now: datetime) -> list[Row]:
        """Return the rows that have not expired, oldest first, and drop the others."""
        oldest = now - timedelta(seconds=self._keep_s)
        self._rows = {key: entry for key, entry in self._rows.items() if entry[0] >= oldest}
        return [row for _, row in sorted(self._rows.values(), key=lambda entry: entry[0])]


class TimeSeriesStore:
    """Series of points by key. `changed` is called with every new point, so that the owner can store it."""

    def __init__(self, changed: Callable[[str, str, DataPoint, float], None] | None = None) -> None:
        self._series: dict[str, dict[str, list[DataPoint]]] = {}
        self._rings: dict[str, Ring[Any]] = {}
        self._changed = changed

    def ring(self, name: str, *, keep_s: float, most: int) -> Ring[Any]:
        """Return the ring of that name, creating it on first use."""
        if name not in self._rings:
            self._rings[name] = Ring(keep_s, most)
        return self._rings[name]

    def note(self, series: str, key: str, value: float, at: datetime, *, keep_s: float) -> None:
        """Add a value that is kept for `keep_s` seconds. A value that is not newer than the last one is ignored."""
        point = DataPoint(at, float(value))
        if self._add(series, key, point, keep_s) and self._changed is not None:
            self._changed(series, key, point, keep_s)

    def near(self, series: str, key: str, when: datetime, *, within_s: float) -> DataPoint | None:
        """Return the point closest to an instant, or None if there is none within `within_s` seconds."""
        points = self._series.get(series, {}).get(key, [])
        index = bisect_left(points, when, key=lambda point: point.at)
        closest = min(
            points[max(0, index - 1) : index + 1], key=lambda p: abs((p.at - when).total_seconds()), default=None
        )
        ok = closest is not None and abs((closest.at - when).total_seconds()) <= within_s
        return closest if ok else None

    def first(self, series: str, key: str) -> DataPoint | None:
        """Return the oldest point of a key, or None."""
        points = self._series.get(series, {}).get(key)
        return points[0] if points else None

    def last(self, series: str, key: str) -> DataPoint | None:
        """Return the newest point of a key, or None."""
        points = self._series.get(series, {}).get(key)
        return points[-1] if points else None

    def points(self, series: str, key: str) -> list[DataPoint]:
        """Return the points of a key, oldest first."""
        return list(self._series.get(series, {}).get(key, ()))

    def keys(self, series: str) -> list[str]:
        """Return the keys of a series, the least recently written first."""
        return list(self._series.get(series, {}))

    def began(self, series: str) -> datetime | None:
        """Return the time of the oldest point of a series, or None."""
        firsts = [points[0].at for points in self._series.get(series, {}).values() if points]
        return min(firsts, default=None)

    def restore(self, rows: Iterable[tuple[str, str, float, float, float]]) -> None:
        """Add stored rows `(series, key, at, value, keep_s)`, oldest first. `at` is in epoch seconds."""
        for series, key, at, value, keep_s in rows:
            self._add(series, key, DataPoint(datetime.fromtimestamp(at, UTC), value), keep_s)

    def _add(self, series: str, key: str, point: DataPoint, keep_s: float) -> bool:
        table = self._series.setdefault(series, {})
        points = table.pop(key, [])
        newer = not points or point.at > points[-1].at
        if newer:
            points.append(point)
        oldest = point.at.timestamp() - keep_s
        table[key] = [p for p in points if p.at.timestamp() >= oldest][-SERIES_POINTS:]
        if len(table) > SERIES_KEYS:
            del table[next(iter(table))]
        return newer


T = TypeVar("T")

Cursor = Annotated[
    str, Field(pattern=r"^[!-~]{1,100}$", description="`next_cursor` of the page before", examples=["us7000abcd"])
]
"""The argument for the start of the next page: the mark of the last item shown, so that newer items do not matter."""


def up_to(most: int) -> Any:
    """Return the bounds and description of an argument `limit`: a tool lists 1 to `most` items."""
    return Field(ge=1, le=most, description="Most items")


class Page(NamedTuple, Generic[T]):
    """The items shown, the total number of items, and the cursor of the next page, if there is one."""

    items: list[T]
    total: int
    next_cursor: str | None = None


def cut_page(
    items: Sequence[T], limit: int, *, cursor: str | None = None, mark: Callable[[T], str] | None = None
) -> Page[T]:
    """Return the first `limit` items after the one whose mark is the cursor.

    Raises:
        InvalidArguments: no item has that mark, or no longer.
    """
    start = 0
    if cursor is not None and mark is not None:
        start = next((n for n, item in enumerate(items, 1) if mark(item) == cursor), 0)
        if start == 0:
            error = {"loc": "cursor", "msg": "not in this list, or no longer", "type": "unknown_cursor"}
            raise InvalidArguments("The cursor is no longer in this list. Start again without it.", errors=[error])
    shown = list(items[start : start + limit])
    is_last = start + limit >= len(items) or mark is None or not shown
    return Page(shown, len(items), None if is_last or mark is None else mark(shown[-1]))


__all__ = ["Fallback", "FallbackReader", "ToolContext", "via"]

Q = TypeVar("Q")
R = TypeVar("R")

HELD_S = 30.0  # when to recompose an answer whose source our own pacing held back; that source has answered by then


@dataclass(slots=True)
class Surroundings:
    """What a tool finds beside its sources: the service that runs it, and the values that the service remembers."""

    host: Any = None
    history: TimeSeriesStore = field(default_factory=TimeSeriesStore)


class ToolContext:
    """One composition of one tool's answer. Each composition gets a new context."""

    def __init__(
        self,
        reader: SourceReader,
        *,
        now: Callable[[], datetime],
        sla_s: float,
        hedge_after_s: float = 2.5,
        patience_s: float = math.inf,
        surroundings: Surroundings | None = None,
        caller: Caller | None = None,
    ) -> None:
        self._reader = reader
        self._now = now
        self._sla_s = sla_s
        self._hedge_after_s = hedge_after_s
        self._give_up_at = math.inf if patience_s == math.inf else anyio.current_time() + patience_s
        self.now = now()  # one instant for the whole composition
        surroundings = surroundings or Surroundings()
        self.host, self.history = surroundings.host, surroundings.history
        self.caller = caller  # set for payment and account tools only
        self.notes = Provenance()
        self.empty = False
        self.shortened_s: float | None = None

    @property
    def token(self) -> str:
        """The caller's bearer token, checked before the tool ran. Raises PaymentRequired if there is none."""
        if self.caller is None or self.caller.token is None:
            raise MissingToken("This tool acts for the owner of a token: send a bearer token.")
        return self.caller.token

    def warn(self, section: str, code: Code, message: str, source: str | None = None) -> None:
        """Add a warning to the answer: one sentence that says what is missing, without advice."""
        self.notes.warn(section, code, message, source)

    def page(self, items: Sequence[T], limit: int, section: str = "data") -> list[T]:
        """Return the first `limit` items of a list. If there are more, a warning says how many."""
        return self.page_from(items, limit, None, lambda item: "", section).items

    def page_from(
        self,
        items: Sequence[T],
        limit: int,
        cursor: str | None,
        mark: Callable[[T], str],
        section: str = "data",
        *,
        count_fitting: Callable[[Sequence[T]], int] | None = None,
    ) -> Page[T]:
        """Return the first `limit` items after the one whose mark is the cursor, and the next cursor.

        `count_fitting` returns how many of these items fit into an answer; the others are left to the next page.

        Raises:
            InvalidArguments: no item has that mark, or no longer.
        """
        page = cut_page(items, limit, cursor=cursor, mark=mark)
        if count_fitting is not None and (fitting := count_fitting(page.items)) < len(page.items):
            page = cut_page(items, fitting, cursor=cursor, mark=mark)
        if len(page.items) < page.total:
            self.notes.warn_truncated(section, len(page.items), page.total)
        return page

    def mark_empty(self) -> None:
        """Declare that a premium payload contains nothing worth paying for, so that it is returned but not charged."""
        self.empty = True

    def shorten(self, seconds: float) -> None:
        """Shorten this answer's lifetime to `seconds`. The smallest of several values counts."""
        self.shortened_s = seconds if self.shortened_s is None else min(self.shortened_s, seconds)

    def judge_stale(self, stale: bool) -> None:
        """Declare whether the whole answer is stale, if the share of stale sources does not show it."""
        self.notes.stale_as_a_whole = stale

    async def kept(self, source: Source[Q, R], query: Q = None, *, section: str = "data") -> R | None:  # type: ignore[assignment]
        """Return a source's last good answer without a request, or None. It is noted as cached or stale, by its age."""
        reading = FallbackReader(self._reader, section, self._now, self._sla_s, kept_only=True)
        try:
            value = await reading.read(source, query)
        except SourceError:
            return None
        self.notes.add(reading.notes)
        return value

    async def read(self, source: Source[Q, R], query: Q = None, *, section: str = "data") -> R:  # type: ignore[assignment]
        """Return one source's answer, or a kept one if it cannot be refreshed. Raise SourceError."""
        return await self.first(section, via(source, query))

    async def section(self, section: str, *fallbacks: Fallback[T]) -> T | None:
        """Return what `first` returns, or None with a warning in the answer."""
        value = await self.attempt(section, *fallbacks)
        return None if isinstance(value, SourceError) else value

    async def attempt(self, section: str, *fallbacks: Fallback[T]) -> T | SourceError:
        """Return the result of `first` or its SourceError, with a warning. For sections of which one is enough."""
        try:
            return await self.first(section, *fallbacks)
        except SourceError as error:
            return error

    async def first(self, section: str, *fallbacks: Fallback[T]) -> T:
        """Return the first answer, preferring fresh to stale ones. Raise the first SourceError if there is none."""
        readings = [FallbackReader(self._reader, section, self._now, self._sla_s) for _ in fallbacks]
        chain: FallbackChain[T] = FallbackChain(fallbacks, readings, self._hedge_after_s, self._give_up_at)
        if (result := await chain.run()) is not None:
            self._account(section, chain, result.index)
            return result.value
        for fallback in fallbacks:
            reading = FallbackReader(self._reader, section, self._now, self._sla_s, kept_only=True)
            try:
                value = await attempt(fallback, reading)
            except SourceError:
                continue
            self._account_kept(section, chain, reading)
            return value
        self._account_nothing(section, chain)
        raise chain.choose_error()

    def _account(self, section: str, chain: "FallbackChain[Any]", winner: int) -> None:
        failed = chain.list_failures()
        notes = chain.readings[winner].notes
        if missed := chain.find_missed(winner):
            source, reason = missed
            notes = [_as_fallback(note, source, reason) for note in notes]
            names = ", ".join(sorted({note.source.name for note in notes if note.used}))
            lacks = ", ".join(chain.readings[winner].lacks)
            use = f"{names} is used, without {lacks}." if lacks else f"{names} is used."
            self.warn(section, "fallback_used", f"{source.name} gave nothing ({reason}); {use}", source.name)
            if reason == RequestWithheld.word:
                self.shorten(HELD_S)
        self.notes.add([*notes, *failed])
        self._warn_stale(section, notes)

    def _account_kept(self, section: str, chain: "FallbackChain[Any]", reading: FallbackReader) -> None:
        reasons = {id(n.source): n.reason for n in chain.list_failures()}
        notes = [
            n if not n.used else replace(n, status="stale", reason=reasons.get(id(n.source)), replaces=None)
            for n in reading.notes
        ]
        sources = {id(n.source) for n in notes}
        self.notes.add([*notes, *(n for n in chain.list_failures() if id(n.source) not in sources)])
        self._warn_stale(section, notes)

    def _account_nothing(self, section: str, chain: "FallbackChain[Any]") -> None:
        failures = chain.list_failures()
        self.notes.add(failures)
        if failures and all(n.reason and n.reason.startswith("licence") for n in failures):
            self.warn(section, "licence_excluded", "The licence policy excludes every source of this section.")
            return
        code: Code = "section_unavailable"
        if any(n.reason and n.reason.startswith(SourceUnproved.word) for n in failures):
            code = "unproved_empty"
        reasons = "; ".join(f"{n.source.name}: {n.reason}" for n in failures) or "no source is usable"
        self.warn(
            section,
            code,
            f"No source answered ({reasons}).",
            failures[0].source.name if failures else None,
        )

    def _warn_stale(self, section: str, notes: list[SourceNote]) -> None:
        for note in notes:
            if note.status == "stale" and note.fetched_at:
                reason = f" ({note.reason})" if note.reason else ""
                self.warn(
                    section,
                    "stale_data",
                    f"{note.source.name} could not be refreshed{reason}; the value is from {iso(note.fetched_at)}.",
                    note.source.name,
                )


def _as_fallback(note: SourceNote, replaced: Source[Any, Any], reason: str) -> SourceNote:
    if not note.used:
        return note
    status = note.status if note.status == "stale" else "fallback"
    return replace(note, status=status, reason=f"{reason}: {replaced.name}"[:120], replaces=replaced.name)


class Sections:
    """The results of sections by name: a value, or the SourceError that left a warning."""

    def __init__(self, results: Mapping[str, Any]) -> None:
        self._results = results

    def get(self, name: str, then: Callable[[Any], T]) -> T | None:
        """Return a section's value converted by `then`, or None if it failed or was not requested."""
        value = self._results.get(name)
        return None if value is None or isinstance(value, SourceError) else then(value)

    def require_any(self) -> None:
        """Raise the first section's SourceError if every section failed."""
        errors = [value for value in self._results.values() if isinstance(value, SourceError)]
        if errors and len(errors) == len(self._results):
            raise errors[0]


async def read_sections(
    ctx: ToolContext,
    chains: Mapping[str, tuple[Fallback[Any], ...]],
    others: Mapping[str, Callable[[], Awaitable[Any]]] | None = None,
) -> Sections:
    """Read every section at once by its chain of fallbacks. `others` are sections read in another way."""
    results: dict[str, Any] = dict.fromkeys(
        [*chains, *(others or {})]
    )  # in the requested order, not the order of arrival

    async def run(name: str, read: Callable[[], Awaitable[Any]]) -> None:
        try:
            results[name] = await read()
        except SourceError as error:
            results[name] = error

    def chained(name: str, fallbacks: tuple[Fallback[Any], ...]) -> Callable[[], Awaitable[Any]]:
        return lambda: ctx.first(name, *limit_time(fallbacks))

    async with anyio.create_task_group() as tasks:
        for name, fallbacks in chains.items():
            tasks.start_soon(run, name, chained(name, fallbacks))
        for name, read in (others or {}).items():
            tasks.start_soon(run, name, read)
    return Sections(results)
