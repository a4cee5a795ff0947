"""U.S. Treasury daily par yield curve (CSV a year, no key, public domain).

https://home.treasury.gov/resource-center/data-chart-center/interest-rates
"""

from datetime import date, datetime
from typing import NamedTuple

from tools.shared.numbers import number_or_none, within
from tools.shared.series import Series, calendar_date, newest_at, nonzero, series, table
from tools.sources.hosts import MACRO
from toolserver.upstream.source import Gauge, Get, Keys, Licence, Source

RATES = "https://home.treasury.gov/resource-center/data-chart-center/interest-rates/daily-treasury-rates.csv"
LICENCE = Licence("yes", "U.S. Department of the Treasury")


class YieldYear(NamedTuple):
    """One file: the rates of a year. `past` says that the year is over, so that its age does not matter."""

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
    """The two tenors we use; the others come and go."""
    rows = [(calendar_date(row["Date"]), row) for row in table(body, "Date", "2 Yr", "10 Yr")]
    if any(day.year != query.year for day, _ in rows):
        raise ValueError(f"not the rates of {query.year}")
    return YieldCurve(_tenor(rows, "2 Yr"), _tenor(rows, "10 Yr"), query.past)


def _tenor(rows: list[tuple[date, dict[str, str]]], name: str) -> Series:
    values = ((day, number_or_none(row[name])) for day, row in rows)
    return nonzero(series((day, None if value is None else within(value, -2, 20)) for day, value in values))


def newest(curve: YieldCurve) -> datetime | None:
    return newest_at(curve.two_year, curve.ten_year)


def judged(curve: YieldCurve) -> datetime | None:
    """The day by which a file may be too old: none for a year that is over or has just begun."""
    return None if curve.past else newest(curve)


def _newest_yields(curve: YieldCurve) -> dict[str, float]:
    named = {"treasury_2y": curve.two_year, "treasury_10y": curve.ten_year}
    return {} if curve.past else {name: found[-1].value for name, found in named.items() if found}


PAR_YIELDS = Source(
    "Treasury.par_yield_curve",
    request,
    parse,
    licence=LICENCE,
    hosts=MACRO,
    fresh_s=3600,
    keep_s=604800,
    timeout_s=15,
    newest=newest,
    stamp=judged,
    newest_max_s=6 * 86400,
    gauge=Gauge(_newest_yields, 3, absolute=True),
    probe=lambda: YieldYear(date.today().year),
)
