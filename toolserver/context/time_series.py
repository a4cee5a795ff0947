"""Stores time series that tools keep between compositions: numbers by series and key, bounded, kept across restarts.

Rows that are more than a number and need not survive a restart go into a `Ring`.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from toolserver.core.models import DataPoint

Row = TypeVar("Row")

KEYS = 2000  # per series; above it the least recently written key is dropped
POINTS = 1000  # per key


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
        table[key] = [p for p in points if p.at.timestamp() >= oldest][-POINTS:]
        if len(table) > KEYS:
            del table[next(iter(table))]
        return newer
