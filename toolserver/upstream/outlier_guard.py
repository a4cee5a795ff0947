"""Withholds answers that are far from what the same query usually returns: a value that jumps, or a list that is short.

A value that jumps is withheld until a second provider agrees or the same one repeats it ten minutes later.

A feed that lost most of its rows looks alive in every other way: its stamp and its newest
item are recent. Only the usual length, that of the past week's lists for the same query,
reveals the loss. A short list is accepted if another provider of the same data also lists few
items; otherwise it proves as little as an empty one, and the next source is queried.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import Any

from cachetools import LRUCache

from toolserver.core.models import DataPoint
from toolserver.upstream.source import Gauge, Source, SourceImplausible, SourceUnproved, count_listed

MEMORY_S = 24 * 3600.0  # seconds; older good values are no longer used for comparison
REPEAT_S = 600.0
AGREES = 0.02


@dataclass(frozen=True, slots=True)
class _Seen:
    value: float
    at: datetime


class OutlierGuard:
    """Remembers the last good value and the last withheld value of each gauge and source."""

    def __init__(self) -> None:
        self._good: dict[str, dict[str, _Seen]] = {}
        self._withheld: dict[str, dict[str, _Seen]] = {}

    def check(self, source: Source[Any, Any], value: Any, now: datetime) -> None:
        """Accept the answer's gauges. If one of them jumped, remember the values and raise SourceImplausible."""
        gauge = source.gauge
        if gauge is None:
            return
        values = gauge.values(value)
        jumped = [name for name in values if self._jumps(gauge, source.name, name, values[name], now)]
        if jumped and not all(self._is_confirmed(source.name, name, values[name], now) for name in jumped):
            for name in jumped:
                self._withheld.setdefault(name, {}).setdefault(source.name, _Seen(values[name], now))
            raise SourceImplausible(f"{jumped[0]} jumped to {values[jumped[0]]:g}")
        self._accept(source.name, values, now)

    def remember(self, source: Source[Any, Any], value: Any, at: datetime) -> None:
        """Use the gauges of a stored answer as the last good values, without comparing them."""
        if source.gauge is not None:
            self._accept(source.name, source.gauge.values(value), at)

    def _accept(self, source: str, values: Mapping[str, float], at: datetime) -> None:
        for name, value in values.items():
            self._good.setdefault(name, {})[source] = _Seen(value, at)
            self._withheld.get(name, {}).pop(source, None)

    def _jumps(self, gauge: Gauge[Any], source: str, name: str, value: float, now: datetime) -> bool:
        last = self._good.get(name, {}).get(source)
        if last is None or (now - last.at).total_seconds() > MEMORY_S:
            return False
        distance = abs(value - last.value)
        return distance > (gauge.limit if gauge.absolute else gauge.limit * abs(last.value))

    def _is_confirmed(self, source: str, name: str, value: float, now: datetime) -> bool:
        def agrees(seen: _Seen) -> bool:
            return abs(seen.value - value) <= AGREES * abs(value)

        mine = self._withheld.get(name, {}).get(source)
        if mine is not None and not agrees(mine):
            del self._withheld[name][source]  # a different jump: the ten minutes start again
            mine = None
        repeated = mine is not None and (now - mine.at).total_seconds() >= REPEAT_S
        others = [
            seen
            for table in (self._good, self._withheld)
            for other, seen in table.get(name, {}).items()
            if other != source
        ]
        return repeated or any(agrees(seen) and (now - seen.at).total_seconds() <= REPEAT_S for seen in others)


SERIES = "list_size"  # the series name of the points on disk
SHARE = 0.15
"""The share of the median below which lists are withheld.

The lengths of real feeds vary with the hour and the weekday: on a Sunday there are a third to a half of Wednesday's
news and advisories, and on the day after a week of storms a fifth to a third of that week's weather warnings. This
share is below all of these, and above three rows of usually fifty. A source whose length naturally falls further, such
as an hourly list, says so in `size_varies`.
"""
LEAST_USUAL = 20  # items; below this the share depends on chance
EVERY_S = 6 * 3600.0  # one count per this time, so that every part of the day is included
MOST = 30  # counts per query: seven and a half days, including a weekend
LEAST = 4  # counts before a list is judged: a day
KEEP_S = 30 * 86400.0  # on disk; a rarely sent query has a longer history
AGREE_S = 600.0
CHANGED_S = 2 * 86400.0  # a list that stays short for this long has a new usual size
QUESTIONS = 1024

SaveCount = Callable[[str, str, DataPoint, float], None]
"""Saves a count: series, key, count and how long it is kept (seconds)."""


class SizeGuard:
    """Remembers how many items the answers to each query listed, for queries with default arguments.

    `save` gets every count that is kept. The lists withheld at the moment are forgotten with the process.
    """

    def __init__(self, save: SaveCount | None = None) -> None:
        self._save = save
        self._counts: LRUCache[str, deque[DataPoint]] = LRUCache(QUESTIONS)
        self._short_since: LRUCache[str, datetime] = LRUCache(QUESTIONS)
        self._short_at: dict[tuple[str, str], datetime] = {}  # by the kind of list and by source

    def restore(self, rows: Iterable[tuple[str, str, float, float, float]]) -> None:
        """Restore stored points `(series, key, at, count, keep_s)`, oldest first, ignoring other series."""
        for series, key, at, count, _ in rows:
            if series == SERIES:
                self._note(key, DataPoint(datetime.fromtimestamp(at, UTC), count))

    def usual(self, key: str) -> float | None:
        """Return the median of the counts of a query, or None while too few are known."""
        counts = self._counts.get(key, ())
        return median(point.value for point in counts) if len(counts) >= LEAST else None

    def check(self, source: Source[Any, Any], key: str, value: Any, now: datetime) -> None:
        """Remember how many items an answer lists. Raise SourceUnproved if they are far fewer than usual."""
        count = None if source.size_varies else count_listed(value)
        if count is None:
            return
        if not self._is_short(key, count):
            self._short_since.pop(key, None)
            self._accept(key, count, now)
            return
        if source.lists:
            self._short_at[source.lists, source.name] = now
        if self._is_agreed(source, now):
            return
        if (now - self._short_since.setdefault(key, now)).total_seconds() < CHANGED_S:
            raise SourceUnproved(f"{count} items of usually {self.usual(key):g}")
        del self._short_since[key]
        self._accept(key, count, now)

    def _is_short(self, key: str, count: float) -> bool:
        usual = self.usual(key)
        return usual is not None and usual >= LEAST_USUAL and count < SHARE * usual

    def _is_agreed(self, source: Source[Any, Any], now: datetime) -> bool:
        """Return True if another provider of the same data has just listed few items too."""
        return any(
            listed == source.lists and name != source.name and (now - at).total_seconds() <= AGREE_S
            for (listed, name), at in self._short_at.items()
        )

    def _accept(self, key: str, count: int, now: datetime) -> None:
        point = DataPoint(now, float(count))
        if self._note(key, point) and self._save is not None:
            self._save(SERIES, key, point, KEEP_S)

    def _note(self, key: str, point: DataPoint) -> bool:
        """Keep a count if the last one is old enough, because several processes may have stored theirs.

        Withheld counts are never kept: a short list is the first with its new length.
        """
        counts = self._counts.setdefault(key, deque(maxlen=MOST))
        if counts and (point.at - counts[-1].at).total_seconds() < EVERY_S:
            return False
        if self._is_short(key, point.value):
            counts.clear()
        counts.append(point)
        return True
