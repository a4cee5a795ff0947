"""Withholds a value that jumps until a second provider agrees or the same one repeats it ten minutes later."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from toolserver.upstream.source import Gauge, Source
from toolserver.upstream.source_errors import SourceImplausible

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
