"""Define the U.S. macro series: each indicator's unit and its chain of providers, in their order of use.

The official publisher comes first, FRED with a key next, FRED's charts without one last. Every
fallback returns the whole series as published, so that a tool may show one value or a history.
"""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import NamedTuple, TypeAlias

from tools.parsing.series import Series, midnight, newest, series, spread, year_over_year_percent
from tools.sources import bls
from tools.sources.bls import TIMESERIES, Labour, Years
from tools.sources.dbnomics import REAL_GDP_GROWTH
from tools.sources.fred import GRAPH_CSV, OBSERVATIONS, Charts, GraphQuery, ObservationsQuery
from tools.sources.freddiemac import PMMS_30Y
from tools.sources.nyfed import EFFR
from tools.sources.treasury import PAR_YIELDS, YieldCurve, YieldYear
from toolserver import DayLine, Definition, Fallback, FallbackReader, Meaning, SourceEmpty, SourceFrozen, read_all, via

SOURCES = (EFFR, TIMESERIES, REAL_GDP_GROWTH, PAR_YIELDS, PMMS_30Y, OBSERVATIONS, GRAPH_CSV)

ENOUGH_ROWS, LEAST_ROWS = 45, 20  # of a year's yields: below the first, the year before is read too
YOUNG_MONTHS = 2  # too early in the year for that many rates: both years are requested at once
FIRST_RATES_BY = 7  # of January
PERCENT, INDEX, GROWTH, POINTS = "percent", "index 1982-84=100", "percent, quarterly annualised", "percentage points"


class Sourced(NamedTuple):
    """A series with at least one value, and its source: `provider:series`.

    `yearly` is the series that the publisher takes the change of 12 months from, where that is another one.
    """

    series: Series
    source: str
    yearly: Series = ()


Fallbacks: TypeAlias = tuple[Fallback[Sourced], ...]


class MacroIndicator(NamedTuple):
    """What an indicator is, its unit, and its chain on a day (the day in New York)."""

    name: str
    unit: str
    fallbacks: Callable[[date], Fallbacks]


class _Group(NamedTuple):
    """Series of one frequency, which share a file at FRED; `days` back to request, and the age
    limit of the newest value.

    A month and a quarter are dated by their first day and are published weeks after their last.
    """

    ids: tuple[str, ...]
    days: int
    oldest: int


_DAILY = _Group(("DFF", "DGS10", "DGS2"), 120, 14)
_WEEKLY = _Group(("MORTGAGE30US",), 120, 21)
_MONTHLY = _Group(("CPIAUCSL", "CPIAUCNS", "UNRATE"), 3 * 366, 120)
_QUARTERLY = _Group(("A191RL1Q225SBEA",), 8 * 366, 260)  # holds 30 quarters


def new_york_date(now: datetime) -> date:
    """Return the date in New York, give or take the hour of daylight saving."""
    return (now - timedelta(hours=5)).date()


def name_source(observations: Series, source: str, yearly: Series = ()) -> Sourced:
    """Return the series with its name. Raises SourceEmpty when it is empty."""
    newest(observations)
    return Sourced(observations, source, yearly)


def require_young(observations: Series, today: date, oldest: int) -> Series:
    """Return the series. Raises SourceFrozen when its newest value is more than `oldest` days old."""
    last = newest(observations).date
    if (today - last).days > oldest:
        raise SourceFrozen(f"it ends on {last}")
    return observations


def _fed_rate(today: date) -> Fallbacks:
    return via(EFFR, None, lambda funds: name_source(funds.percent, "nyfed:EFFR")), *_fred("DFF", _DAILY, today)


def _labour(name: str, chosen: Callable[[Labour], Series], today: date) -> Fallback[Sourced]:
    return via(TIMESERIES, Years(today.year - 3, today.year), lambda labour: name_source(chosen(labour), f"bls:{name}"))


def _cpi(today: date) -> Fallbacks:
    years = Years(today.year - 3, today.year)

    def of_fred(adjusted: Series, unadjusted: Series) -> Sourced:
        return name_source(require_young(adjusted, today, _MONTHLY.oldest), "fred:CPIAUCSL", unadjusted)

    async def by_key(reading: FallbackReader) -> Sourced:
        names = ("CPIAUCSL", "CPIAUCNS")
        adjusted, unadjusted = await read_all(reading, *((OBSERVATIONS, ObservationsQuery(name)) for name in names))
        return of_fred(adjusted["CPIAUCSL"], unadjusted["CPIAUCNS"])

    return (
        via(TIMESERIES, years, lambda labour: name_source(labour.cpi, f"bls:{bls.CPI}", labour.cpi_unadjusted)),
        by_key,
        via(GRAPH_CSV, _graph(_MONTHLY, today), lambda charts: of_fred(charts["CPIAUCSL"], charts["CPIAUCNS"])),
    )


def _unemployment(today: date) -> Fallbacks:
    first = _labour(bls.UNEMPLOYMENT, lambda labour: labour.unemployment_percent, today)
    return first, *_fred("UNRATE", _MONTHLY, today)


def _gdp_growth(today: date) -> Fallbacks:
    by_key, by_chart = _fred("A191RL1Q225SBEA", _QUARTERLY, today)
    mirror = via(
        REAL_GDP_GROWTH, None, lambda observations: name_source(observations, "dbnomics:BEA/NIPA-T10101/A191RL-Q")
    )
    return by_key, mirror, by_chart


def _mortgage_30y(today: date) -> Fallbacks:
    first = via(PMMS_30Y, None, lambda observations: name_source(observations, "freddiemac:PMMS30"))
    return first, *_fred("MORTGAGE30US", _WEEKLY, today)


def _treasury_10y(today: date) -> Fallbacks:
    first = _treasury(today, lambda curve: name_source(curve.ten_year, "treasury:BC_10YEAR"))
    return first, *_fred("DGS10", _DAILY, today)


def _treasury_2y(today: date) -> Fallbacks:
    first = _treasury(today, lambda curve: name_source(curve.two_year, "treasury:BC_2YEAR"))
    return first, *_fred("DGS2", _DAILY, today)


def _yield_curve(today: date) -> Fallbacks:
    """Return the fallbacks for 10 years less 2 years, both of one provider and one day."""

    def of_fred(ten: Series, two: Series) -> Sourced:
        return _steepness(require_young(ten, today, _DAILY.oldest), require_young(two, today, _DAILY.oldest))

    async def by_key(reading: FallbackReader) -> Sourced:
        ten, two = await read_all(reading, *((OBSERVATIONS, ObservationsQuery(name)) for name in ("DGS10", "DGS2")))
        return of_fred(ten["DGS10"], two["DGS2"])

    return (
        _treasury(today, lambda curve: _steepness(curve.ten_year, curve.two_year)),
        by_key,
        via(GRAPH_CSV, _graph(_DAILY, today), lambda charts: of_fred(charts["DGS10"], charts["DGS2"])),
    )


def _steepness(ten_year: Series, two_year: Series) -> Sourced:
    return name_source(spread(ten_year, two_year), "derived:T10Y2Y")


def _fred(series_id: str, group: _Group, today: date) -> Fallbacks:
    """Return the last two fallbacks of most chains: FRED with a key, FRED's chart without."""

    def named(charts: Charts) -> Sourced:
        return name_source(require_young(charts[series_id], today, group.oldest), f"fred:{series_id}")

    return (
        via(OBSERVATIONS, ObservationsQuery(series_id), named),
        via(GRAPH_CSV, _graph(group, today), named),
    )


def _graph(group: _Group, today: date) -> GraphQuery:
    return GraphQuery(group.ids, today - timedelta(days=group.days))


def _treasury(today: date, then: Callable[[YieldCurve], Sourced]) -> Fallback[Sourced]:
    """Return the fallback for this year's yields, joined with last year's early in the year."""

    async def fallback(reading: FallbackReader) -> Sourced:
        this, last = YieldYear(today.year), YieldYear(today.year - 1, past=True)
        years = (this, last) if today.month <= YOUNG_MONTHS else (this,)
        curve, *before = await read_all(reading, *((PAR_YIELDS, year) for year in years))
        if not curve.ten_year and today > date(today.year, 1, FIRST_RATES_BY):
            raise SourceEmpty("the year has no rates yet")
        if len(curve.ten_year) < ENOUGH_ROWS:
            curve = _joined(before[0] if before else await reading.read(PAR_YIELDS, last), curve)
        if len(curve.ten_year) < LEAST_ROWS:
            raise SourceEmpty(f"{len(curve.ten_year)} days")
        return then(curve)

    return fallback


TREASURY_10Y_DAYS = (
    DayLine(
        PAR_YIELDS,
        lambda now: YieldYear(new_york_date(now).year),
        lambda curve: [(midnight(day), value) for day, value in curve.ten_year],
    ),
)
"""Where this year's yields are kept, because the newest one is read with those before it."""


def _joined(before: YieldCurve, curve: YieldCurve) -> YieldCurve:
    return YieldCurve(
        series([*before.two_year, *curve.two_year]), series([*before.ten_year, *curve.ten_year]), curve.past
    )


INDICATORS = {
    "fed_rate": MacroIndicator("Effective federal funds rate, percent", PERCENT, _fed_rate),
    "cpi": MacroIndicator("Consumer prices (CPI-U), all items, seasonally adjusted index", INDEX, _cpi),
    "unemployment": MacroIndicator("Unemployment (U-3), seasonally adjusted, percent", PERCENT, _unemployment),
    "gdp_growth": MacroIndicator(
        "Real GDP against the quarter before, as an annual rate, percent", GROWTH, _gdp_growth
    ),
    "treasury_10y": MacroIndicator("Par yield of 10-year Treasuries, percent", PERCENT, _treasury_10y),
    "treasury_2y": MacroIndicator("Par yield of 2-year Treasuries, percent", PERCENT, _treasury_2y),
    "mortgage_30y": MacroIndicator(
        "Freddie Mac's 30-year fixed mortgage rate, weekly, percent", PERCENT, _mortgage_30y
    ),
    "yield_curve_2s10s": MacroIndicator(
        "10-year less 2-year yield, same day and source, percentage points", POINTS, _yield_curve
    ),
}


def describe_indicator(name: str) -> str:
    """Return what a member of an answer that shows the indicator is, and what null means."""
    return f"{INDICATORS[name].name}; null: no publisher answered"


def yearly_percent(sourced: Sourced) -> float | None:
    """Return the change of 12 months as BLS prints it: of the unadjusted index, percent, one decimal.

    None where the publisher of the value gives no such index, for another month than the
    value, and after a month that was never published.
    """
    if not sourced.yearly or newest(sourced.yearly).date != newest(sourced.series).date:
        return None
    change = year_over_year_percent(sourced.yearly)
    return None if change is None else round(change, 1) + 0.0


MACRO = (
    Meaning(
        "economic-data.yoy_percent",
        "BLS's change of 12 months is of the index that is not seasonally adjusted (CUUR0000SA0), with one decimal; "
        "value is of the adjusted one",
        definition=Definition(
            publisher="U.S. Bureau of Labor Statistics",
            link="https://www.bls.gov/cpi/",
            words="before seasonal adjustment",
            read_on=date(2026, 11, 25),
        ),
    ),
    Meaning(
        "pro/macro.cpi.yoy_percent",
        "As in economic-data; absent from all other figures",
        definition=Definition(publisher="U.S. Bureau of Labor Statistics"),
    ),
    Meaning(
        "economic-data.gdp_growth",
        "BEA's real GDP against the quarter before, seasonally adjusted, as an annual rate: not the growth of a year",
        definition=Definition(publisher="U.S. Bureau of Economic Analysis"),
    ),
    Meaning(
        "economic-data.fed_rate",
        "The effective rate of the last business day, which the New York Fed publishes the day after; not the target, "
        "which is a range",
        definition=Definition(publisher="Federal Reserve Bank of New York"),
    ),
    Meaning(
        "economic-data.yield_curve_2s10s",
        "10-year less 2-year par yield of one day and one publisher, in percentage points; negative where short money "
        "costs more",
    ),
)
