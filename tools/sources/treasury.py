"""Read the U.S. Treasury daily par yield curve (one CSV per year, no key, public domain).

https://home.treasury.gov/resource-center/data-chart-center/interest-rates
"""

from datetime import date, datetime
from typing import NamedTuple

from tools.parsing.fields import number_or_none, within
from tools.parsing.series import Series, calendar_date, newest_at, nonzero, series, table
from tools.sources.hosts import DAY, HOUR, MACRO, WEEK
from toolserver import Gauge, Get, Keys, Licence, Source, read_rows

RATES = "https://home.treasury.gov/resource-center/data-chart-center/interest-rates/daily-treasury-rates.csv"
LICENCE = Licence("yes", "U.S. Department of the Treasury")


class YieldYear(NamedTuple):
    """One file: the rates of a year. `past` says that the year has ended, so that its age does not matter."""

    year: int
    past: bool = False


class YieldCurve(NamedTuple):
    """Constant-maturity yields in percent. Both series are empty before a year's first business day."""

    two_year: Series
    ten_year: Series
    past: bool


def request(query: YieldYear, keys: Keys) -> Get:
    year = str(query.year)
    params = {"type": "daily_treasury_yield_curve", "field_tdr_date_value": year, "page": "", "_format": "csv"}
    return Get(f"{RATES}/{year}/all", params=params, decode="text")


def parse(body: str, query: YieldYear) -> YieldCurve:
    """Return the two tenors that we use; the others are not always present."""
    days = read_rows(table(body, "Date", "2 Yr", "10 Yr"), _day)
    if any(day.year != query.year for day, *_ in days):
        raise ValueError(f"not the rates of {query.year}")
    two_year = nonzero(series((day, value) for day, value, _ in days))
    return YieldCurve(two_year, nonzero(series((day, value) for day, _, value in days)), query.past)


def _day(row: dict[str, str]) -> tuple[date, float | None, float | None]:
    return calendar_date(row["Date"]), _percent(row["2 Yr"]), _percent(row["10 Yr"])


def _percent(written: str) -> float | None:
    value = number_or_none(written)
    return None if value is None else within(value, -2, 20)


def newest(curve: YieldCurve) -> datetime | None:
    return newest_at(curve.two_year, curve.ten_year)


def judged(curve: YieldCurve) -> datetime | None:
    """Return the date by which a file's age is judged: None for a year that has ended or has just begun."""
    return None if curve.past else newest(curve)


def _newest_yields(curve: YieldCurve) -> dict[str, float]:
    named = {"treasury_2y": curve.two_year, "treasury_10y": curve.ten_year}
    return {} if curve.past else {name: observations[-1].value for name, observations in named.items() if observations}


PAR_YIELDS = Source(
    "Treasury.par_yield_curve",
    request,
    parse,
    licence=LICENCE,
    hosts=MACRO,
    fresh_s=HOUR,
    keep_s=WEEK,
    timeout_s=15,
    newest=newest,
    stamp=judged,
    newest_max_s=6 * DAY,
    gauge=Gauge(_newest_yields, 3, absolute=True),
    probe=lambda now: YieldYear(now.year),
)
