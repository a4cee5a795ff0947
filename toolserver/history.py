"""What a tool remembers between compositions: small series of numbers by key, bounded and kept across restarts.

What is worth nothing after a restart, and is more than a number, goes into a `Ring`.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, NamedTuple, TypeVar

Row = TypeVar("Row")

KEYS = 2000  # per series; the key written longest ago is forgotten beyond
POINTS = 1000  # per key


class Point(NamedTuple):
    at: datetime
    value: float


class Ring(Generic[Row]):
    """Rows of any kind, one per key, each for `keep_s` after its time and no more than `most`; in memory only."""

    def __init__(self, keep_s: float, most: int) -> None:
        self._keep_s, self._most = keep_s, most
        self._rows: dict[str, tuple[datetime, Row]] = {}  # put longest ago first

    def get(self, key: str) -> Row | None:
        """The row of a key."""
        found = self._rows.get(key)
        return found[1] if found else None

    def put(self, key: str, row: Row, at: datetime) -> None:
        """Keep a row, in place of the key's former one; beyond the bound, forget what was put first."""
        self._rows[key] = (at, row)
        if len(self._rows) > self._most:
            del self._rows[next(iter(self._rows))]

    def rows(self, now: datetime) -> list[Row]:
        """What is not too old yet, oldest first. The rest is forgotten."""
        oldest = now - timedelta(seconds=self._keep_s)
        self._rows = {key: kept for key, kept in self._rows.items() if kept[0] >= oldest}
        return [row for _, row in sorted(self._rows.values(), key=lambda kept: kept[0])]


class History:
    """Series of `(time, value)` by key. `changed` is told of every point, so that an owner can store it."""

    def __init__(self, changed: Callable[[str, str, Point, float], None] | None = None) -> None:
        self._series: dict[str, dict[str, list[Point]]] = {}
        self._rings: dict[str, Ring[Any]] = {}
        self._changed = changed

    def ring(self, name: str, *, keep_s: float, most: int) -> Ring[Any]:
        """The ring of that name, made at its first use."""
        if name not in self._rings:
            self._rings[name] = Ring(keep_s, most)
        return self._rings[name]

    def note(self, series: str, key: str, value: float, at: datetime, *, keep_s: float) -> None:
        """Remember a value for `keep_s`. Values come in the order of time; an older one than the last is dropped."""
        point = Point(at, float(value))
        if self._add(series, key, point, keep_s) and self._changed is not None:
            self._changed(series, key, point, keep_s)

    def near(self, series: str, key: str, when: datetime, *, within_s: float) -> Point | None:
        """The point closest to an instant, if it is close enough."""
        points = self._series.get(series, {}).get(key, [])
        index = bisect_left(points, when, key=lambda point: point.at)
        closest = min(
            points[max(0, index - 1) : index + 1], key=lambda p: abs((p.at - when).total_seconds()), default=None
        )
        ok = closest is not None and abs((closest.at - when).total_seconds()) <= within_s
        return closest if ok else None

    def first(self, series: str, key: str) -> Point | None:
        """The oldest point of a key."""
        points = self._series.get(series, {}).get(key)
        return points[0] if points else None

    def last(self, series: str, key: str) -> Point | None:
        """The newest point of a key."""
        points = self._series.get(series, {}).get(key)
        return points[-1] if points else None

    def keys(self, series: str) -> list[str]:
        """The keys of a series, the one written longest ago first."""
        return list(self._series.get(series, {}))

    def began(self, series: str) -> datetime | None:
        """The time of the oldest point of a series: since when it has been watched."""
        firsts = [points[0].at for points in self._series.get(series, {}).values() if points]
        return min(firsts, default=None)

    def restore(self, rows: Iterable[tuple[str, str, float, float, float]]) -> None:
        """Take up stored rows `(series, key, at, value, keep_s)`, oldest first."""
        for series, key, at, value, keep_s in rows:
            self._add(series, key, Point(datetime.fromtimestamp(at, UTC), value), keep_s)

    def _add(self, series: str, key: str, point: Point, keep_s: float) -> bool:
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
