"""What every other tool asserts: the values that the simulated world itself expects of it.

A value is part of the declaration where the answer without any fault has it; under a fault it may be null, remarked
about, or true: of now, or of the moment the warm engine last asked.
"""

from fnmatch import fnmatch
from typing import Any

from tests.served import all_tools
from tests.truth.known import expected_of
from tests.truth.leaves import Leaves, collect, is_close
from tests.truth.said import Said
from tests.truth.stage import WARM_S, Case, Stage
from toolserver.upstream.source import Source

COMPLETE = {"earthquakes", "climate_earthquakes", "climate_weather_alerts", "disaster_alerts", "funding_rates"}
"""Their own declarations know how two catalogues of the same things differ."""
DATED_S = 5 * 86400.0  # a figure of a day is the newest there is until so long after it: weekends and holidays
PERIOD_S = 3 * 3600.0  # of an index that is published so often, by one provider later than by another
DATES = ("kp_time", "date", "as_of", "time", "updated_at", "previous_date", "observed_at")
ROOTS = ("data", "", "context")


def lags(case: Case) -> list[float]:
    """How old what a source tells is, for each fault that makes it tell old things."""
    told = [fault.since or dict(fault.parameters).get("seconds", 0.0) for fault in case.faults]
    return sorted({lag for lag in told if lag})


def bearable_lags(case: Case) -> list[float]:
    """The lags within what a source may be behind, by its own declaration: it counts as live."""
    sources = all_tools()[case.tool].sources
    return [
        lag
        for fault in case.faults
        if (lag := fault.since or dict(fault.parameters).get("seconds", 0.0))
        and all(lag <= limit_s(source) for source in sources if fnmatch(source.name, fault.match))
    ]


def limit_s(source: Source[Any, Any]) -> float:
    """How old the newest of an answer may be, in seconds; 0 where nothing says so."""
    return source.newest_max_s or (source.proof.within_s if source.proof else None) or 0.0


def is_other_id(case: Case, path: str) -> bool:
    """An older form of the same answer has other ids for the same things."""
    return path.removesuffix("[]").endswith("id") and any(fault.kind == "drift" for fault in case.faults)


def is_dated(path: str, given: Leaves, then: Leaves, now: Leaves) -> bool:
    """Whether a value stands beside a date, and the date is the earlier one: it asserts nothing of today."""
    above = path.split(".")
    for depth in range(len(above) - 1, -1, -1):
        dates = [".".join([*above[:depth], name]) for name in DATES]
        if any(given.get(date) == then.get(date) != now.get(date) and date in given for date in dates):
            return True
    return above[-1] in DATES and path in given and given.get(path) == then.get(path)


class Expectations:
    """The values that a tool asserts in a scenario: those that are as expected when nothing is wrong."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._known: dict[Any, tuple[str, Leaves]] = {}

    async def falsehoods(self, said: Said) -> list[str]:
        if said.case.tool in COMPLETE:
            return []
        root, asserted = await self._asserted(said.case)
        given = collect(said.get(root) if root else said.answer)
        before = expected_of(said.case, said.composed.at - WARM_S) if said.case.warm else {}
        earlier = [expected_of(said.case, said.composed.at - lag) for lag in bearable_lags(said.case)]
        dated = [
            expected_of(said.case, said.composed.at - lag) for lag in (*lags(said.case), PERIOD_S) if lag <= DATED_S
        ]
        found = []
        for path, true in asserted.items():
            section = ".".join(filter(None, (root, path.replace("[]", ""))))
            if is_other_id(said.case, path) or said.touched(section) or said.flagged(section):
                continue
            known = [*true, *before.get(path, ())]
            known += [one for then in earlier for one in then.get(path, ())]
            known += [one for then in dated if is_dated(path, given, then, asserted) for one in then.get(path, ())]
            false = [leaf for leaf in given.get(path, ()) if not any(is_close(leaf, one, path) for one in known)]
            if false and len(false) > 0.34 * len(given[path]):
                found.append(f"{section}: {str(false[0])[:40]!r} where {str(true[0])[:40]!r} is true")
        return found

    async def _asserted(self, case: Case) -> tuple[str, Leaves]:
        key = case.tool, case.arguments, case.scenario
        if key not in self._known:
            good = await self._stage.compose(case._replace(faults=(), warm=False))
            self._known[key] = _agreed(Said(case, good), expected_of(case, good.at))
        return self._known[key]


def _agreed(said: Said, expected: Leaves) -> tuple[str, Leaves]:
    """Where the expected values stand in the answer, and those that are there."""
    best: tuple[str, Leaves] = ("", {})
    for root in ROOTS:
        given = collect(said.get(root) if root else said.answer)
        same = {
            path: true
            for path, true in expected.items()
            if path in given and all(any(is_close(leaf, one) for one in true) for leaf in given[path])
        }
        best = max(best, (root, same), key=lambda pair: len(pair[1]))
    return best
