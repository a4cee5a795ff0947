"""Withholds a list that is far shorter than the same question's lists of the past week.

A feed that lost most of its rows is alive by every other sign: its stamp is young, and so is its newest item. Only what
it usually lists tells. Such a list is believed when another provider of the same things lists few of them as well;
otherwise it proves as little as an empty one, and the next source is asked.
"""

from collections import deque
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from statistics import median
from typing import Any

from cachetools import LRUCache

from toolserver.core.data_point import DataPoint
from toolserver.upstream.proof import count_listed
from toolserver.upstream.source import Source
from toolserver.upstream.source_errors import SourceUnproved

SERIES = "list_size"  # of the points on disk
SHARE = 0.15
"""Of the median: fewer are withheld.

The lengths of real feeds change with the hour and the weekday: news and advisories of a Sunday are a third to a
half of those of a Wednesday, and warnings of the weather of the day after a week of storms a fifth to a third of those
of the week. This is below all of these, and above three rows of usually fifty. What falls further by itself, such as a
list of an hour, says so in `size_varies`.
"""
LEAST_USUAL = 20  # items; of fewer, such a share is a matter of chance
EVERY_S = 6 * 3600.0  # one count in so long, so that every hour of the day is among them
MOST = 30  # counts for each question: a week and a half day, with its weekend
LEAST = 4  # counts before anything is judged: a day
KEEP_S = 30 * 86400.0  # on disk; a question that is rarely asked has a longer history
AGREE_S = 600.0
CHANGED_S = 2 * 86400.0  # so long a list is short until that is its size: the provider shows less than it did
QUESTIONS = 1024

SaveCount = Callable[[str, str, DataPoint, float], None]
"""Takes series, key, count and how long it is kept (seconds)."""


class SizeGuard:
    """Remembers how many items each question's answers listed, of what nobody chose arguments for.

    `save` is given every count that is kept. What is withheld at the moment is forgotten with the process.
    """

    def __init__(self, save: SaveCount | None = None) -> None:
        self._save = save
        self._counts: LRUCache[str, deque[DataPoint]] = LRUCache(QUESTIONS)
        self._short_since: LRUCache[str, datetime] = LRUCache(QUESTIONS)
        self._short_at: dict[tuple[str, str], datetime] = {}  # by what is listed and by source

    def restore(self, rows: Iterable[tuple[str, str, float, float, float]]) -> None:
        """Take stored points `(series, key, at, count, keep_s)`, oldest first; those of other series are left."""
        for series, key, at, count, _ in rows:
            if series == SERIES:
                self._note(key, DataPoint(datetime.fromtimestamp(at, UTC), count))

    def usual(self, key: str) -> float | None:
        """The median of the counts of a question, None while too few are known."""
        counts = self._counts.get(key, ())
        return median(point.value for point in counts) if len(counts) >= LEAST else None

    def check(self, source: Source[Any, Any], key: str, value: Any, now: datetime) -> None:
        """Remember how many items an answer lists. Raises SourceUnproved when they are far fewer than usual."""
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
        """Whether another provider of the same things listed few of them a moment ago."""
        return any(
            listed == source.lists and name != source.name and (now - at).total_seconds() <= AGREE_S
            for (listed, name), at in self._short_at.items()
        )

    def _accept(self, key: str, count: int, now: datetime) -> None:
        point = DataPoint(now, float(count))
        if self._note(key, point) and self._save is not None:
            self._save(SERIES, key, point, KEEP_S)

    def _note(self, key: str, point: DataPoint) -> bool:
        """Keep a count, if the last one is old enough: several processes may have stored theirs.

        What is withheld is never kept: a short list is the first of its new length.
        """
        counts = self._counts.setdefault(key, deque(maxlen=MOST))
        if counts and (point.at - counts[-1].at).total_seconds() < EVERY_S:
            return False
        if self._is_short(key, point.value):
            counts.clear()
        counts.append(point)
        return True
