"""Correlate dated series: pairs aligned by date, returns over the same steps, Pearson's r."""

import datetime as dt
import statistics
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

from tools.parsing.series import Series
from toolserver import Meaning

RETURNS = 30  # at most
LEAST = 10
FLAT = 1e-12  # a smaller deviation is only the rounding error of a constant

Relationship = Literal["negligible", "weak", "moderate", "strong"]
Direction = Literal["positive", "negative", "none"]
Step: TypeAlias = Callable[[float, float], float]
"""What happened from one value to the next."""


class Aligned(NamedTuple):
    """The newest common dates of two series, oldest first, and both values on each."""

    dates: tuple[dt.date, ...]
    first: tuple[float, ...]
    second: tuple[float, ...]


class Steps(NamedTuple):
    """The steps of two series between the same dates. `dates` are the days that the steps end on."""

    dates: tuple[dt.date, ...]
    first: tuple[float, ...]
    second: tuple[float, ...]


def simple_return(before: float, value: float) -> float:
    """Return the gain as a share of the old value. Raises ZeroDivisionError."""
    return value / before - 1


def difference(before: float, value: float) -> float:
    return value - before


def since(observations: Series, day: dt.date) -> Series:
    """Return the observations from that day on."""
    return tuple(observation for observation in observations if observation.date >= day)


def align(one: Series, other: Series) -> Aligned:
    """Align both series on the newest days that both have a value for: one day more than there are returns."""
    first, second = dict(one), dict(other)
    dates = tuple(sorted(first.keys() & second.keys())[-(RETURNS + 1) :])
    return Aligned(dates, tuple(first[day] for day in dates), tuple(second[day] for day in dates))


def steps(pair: Aligned, first: Step = simple_return, second: Step = simple_return) -> Steps:
    """Return the steps from each common day to the next one; a step from 0 in either series is left out."""
    ends = [i for i in range(1, len(pair.dates)) if pair.first[i - 1] and pair.second[i - 1]]
    return Steps(
        tuple(pair.dates[i] for i in ends),
        tuple(first(pair.first[i - 1], pair.first[i]) for i in ends),
        tuple(second(pair.second[i - 1], pair.second[i]) for i in ends),
    )


def pearson(steps: Steps) -> float | None:
    """Return r with 4 decimals; None for fewer than ten steps, and where one of the series is constant."""
    if len(steps.dates) < LEAST:
        return None
    if min(statistics.pstdev(steps.first), statistics.pstdev(steps.second)) < FLAT:
        return None
    return round(max(-1.0, min(1.0, statistics.correlation(steps.first, steps.second))), 4) + 0.0


def relationship(r: float) -> Relationship:
    size = abs(r)
    if size < 0.2:
        return "negligible"
    return "weak" if size < 0.4 else "moderate" if size < 0.7 else "strong"


def direction(r: float) -> Direction:
    if abs(r) < 0.05:
        return "none"
    return "positive" if r > 0 else "negative"


CORRELATION = (
    Meaning(
        "pro/correlation-matrix.pairs.relationship",
        "Nobody defines words for the size of r. Ours: negligible below 0.2, weak below 0.4, moderate below 0.7",
        decide=relationship,
        rows=(
            (0.1999, "negligible"),
            (0.2, "weak"),
            (-0.3999, "weak"),
            (0.4, "moderate"),
            (0.6999, "moderate"),
            (-0.7, "strong"),
        ),
    ),
    Meaning(
        "pro/correlation-matrix.pairs.direction",
        "The sign of r; none below 0.05",
        decide=direction,
        rows=((0.0499, "none"), (0.05, "positive"), (-0.0499, "none"), (-0.05, "negative")),
    ),
)
