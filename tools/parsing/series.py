"""Hold dated values: one type for macro series, the figures that are computed from one, and daily exchange rates."""

import csv
import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from tools.parsing.fields import positive
from toolserver import MIB, Gauge, Get, HostGroup, Licence, Source, SourceChanged, SourceEmpty

CUT = "cut short"


class Observation(NamedTuple):
    """A published value of a day, or of the period that begins on that day."""

    date: dt.date
    value: float


Series: TypeAlias = tuple[Observation, ...]
"""Oldest first, one observation a date. A value that was not published is absent: a gap, never a repeat."""


def series(pairs: Iterable[tuple[dt.date, float | None]]) -> Series:
    """Return the series of (date, value) pairs in any order; a value of None was not published."""
    values = {date: value for date, value in pairs if value is not None}
    return tuple(Observation(date, values[date]) for date in sorted(values))


def nonzero(observations: Series) -> Series:
    """Return the series. Raises SourceChanged when every value is 0: that is a broken upstream, not a market."""
    if observations and not any(value for _, value in observations):
        raise SourceChanged("every value is 0")
    return observations


def newest(observations: Series) -> Observation:
    """Return the latest observation. Raises SourceEmpty when there is none."""
    if not observations:
        raise SourceEmpty("no observation")
    return observations[-1]


def previous(observations: Series) -> Observation | None:
    """Return the observation published before the latest one, at any distance in time."""
    return observations[-2] if len(observations) > 1 else None


def year_over_year_percent(observations: Series) -> float | None:
    """Compare the latest value with the one 12 months earlier; None when that month was not published."""
    last = newest(observations)
    before = next(
        (o for o in observations if (o.date.year + 1, o.date.month) == (last.date.year, last.date.month)), None
    )
    return None if before is None else (last.value / before.value - 1) * 100


def spread(minuend: Series, subtrahend: Series) -> Series:
    """Return the difference on the dates that both series have."""
    other = dict(subtrahend)
    return series((date, value - other[date]) for date, value in minuend if date in other)


def newest_at(*lists: Series) -> dt.datetime | None:
    """Return the latest date of the series, as the UTC midnight it begins with."""
    dates = [one[-1].date for one in lists if one]
    return midnight(max(dates)) if dates else None


def midnight(date: dt.date) -> dt.datetime:
    return dt.datetime.combine(date, dt.time(), dt.UTC)


def calendar_date(text: str) -> dt.date:
    """Read a date from MM/DD/YYYY, M/D/YYYY or ISO. Raises ValueError."""
    text = text.strip()
    if "/" not in text:
        return dt.date.fromisoformat(text)
    month, day, year = text.split("/")
    return dt.date(int(year), int(month), int(day))


def table(text: str, *columns: str) -> list[dict[str, str]]:
    """Return the rows of a CSV text by header name, without blank lines.

    A short row does not show which cell it lacks, so all its cells are `CUT`, which is neither a number nor a date.

    Raises:
        SourceChanged: a column is missing, or the text ends inside a row, so that more may be missing.
    """
    reader = csv.DictReader(text.removeprefix("\ufeff").splitlines(), restval=None, skipinitialspace=True)
    names = [name.strip() for name in reader.fieldnames or []]
    missing = [column for column in columns if column not in names]
    if missing:
        raise SourceChanged(f"no column {missing[0]!r:.40}")
    reader.fieldnames = names
    rows = list(reader)
    if rows and any(rows[-1][column] is None for column in columns):
        raise SourceChanged("the last row is cut short")
    return [row if None not in row.values() else dict.fromkeys(names, CUT) for row in rows]


def series_source(
    name: str,
    request: Get,
    parse: Callable[[Any, None], Series],
    *,
    licence: Licence,
    hosts: HostGroup,
    newest_max_s: float,
    timeout_s: float = 15,
    max_bytes: int = 2 * MIB,
    conditional: bool = False,
    least: int = 1,
    gauge: Gauge[Series] | None = None,
) -> Source[None, Series]:
    """Return the source of a published series, requested every six hours and kept for two weeks."""
    return Source(
        name,
        request,
        parse,
        licence=licence,
        hosts=hosts,
        fresh_s=21600,
        keep_s=1209600,
        timeout_s=timeout_s,
        max_bytes=max_bytes,
        conditional=conditional,
        newest=newest_at,
        newest_max_s=newest_max_s,
        least=least,
        gauge=gauge,
    )


CODES = (
    "EUR", "GBP", "JPY", "CAD", "AUD", "CHF", "CNY", "INR", "MXN", "BRL", "KRW", "SGD", "HKD", "SEK", "NOK", "NZD",
)  # fmt: skip
LEAST_DAYS, LEAST_CODES = 20, 12


class FxDay(NamedTuple):
    """The value of a dollar on a day: units of each currency, by code."""

    date: dt.date
    per_usd: Mapping[str, float]


FxDays: TypeAlias = tuple[FxDay, ...]
"""Published days, oldest first: no weekends, no holidays."""


def choose_rates(rates: Mapping[str, Any]) -> dict[str, float]:
    """Return the rates of our currencies, in our order; a code that is not quoted is absent."""
    return {code: positive(rates[code]) for code in CODES if rates.get(code) is not None}


def require_complete(days: list[FxDay]) -> FxDays:
    """Return the days. Raises SourceEmpty when there are too few of them, or when the latest one lacks currencies."""
    if len(days) < LEAST_DAYS:
        raise SourceEmpty(f"{len(days)} days")
    if len(days[-1].per_usd) < LEAST_CODES:
        raise SourceEmpty(f"{len(days[-1].per_usd)} currencies")
    return tuple(days)


def newest_day(days: FxDays) -> dt.datetime:
    return midnight(days[-1].date)


def newest_rates(day: FxDay) -> dict[str, float]:
    """Return the rates by the names under which providers are compared."""
    return {f"USD-{code}": rate for code, rate in day.per_usd.items()}
