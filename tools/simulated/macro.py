"""Simulate the economy: business days, rates that move in small steps, figures published on their days.

Every simulated provider of a quantity reads it here, so they agree; each writes it in its own
form. Pin `macro.<name>` (or `fx.<code>`) to fix a value; names are those of `LEVELS`, `cpi`,
`unemployment`, `gdp_growth` and `target`.
"""

import datetime as dt
import math
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from toolserver.world.model import World, expects

Calendar = Callable[[dt.date], bool]
DAY = dt.timedelta(days=1)
HOUR = 3600.0

LEVELS = {
    "1 Mo": 3.85, "2 Mo": 3.84, "3 Mo": 3.83, "4 Mo": 3.8, "6 Mo": 3.75, "1 Yr": 3.65, "treasury_2y": 3.55,
    "3 Yr": 3.56, "5 Yr": 3.7, "7 Yr": 3.9, "treasury_10y": 4.12, "20 Yr": 4.7, "30 Yr": 4.72, "mortgage_30y": 6.3,
    "oil": 62.0, "nat_gas": 3.6, "dollar_index": 121.0,
}  # fmt: skip
PER_USD = {
    "EUR": 0.86, "GBP": 0.755, "JPY": 154.0, "CAD": 1.39, "AUD": 1.52, "CHF": 0.8, "CNY": 7.1, "INR": 88.6, "MXN": 18.4,
    "BRL": 5.3, "KRW": 1440.0, "SGD": 1.295, "HKD": 7.78, "SEK": 9.45, "NOK": 10.1, "NZD": 1.75,
}  # fmt: skip
SHUTDOWN = {(2025, 10)}  # a month without a survey: no figure was or will be published


def epoch(date: dt.date, hours: float = 0) -> float:
    return dt.datetime.combine(date, dt.time(), dt.UTC).timestamp() + hours * HOUR


# Calendars


def nth_weekday(year: int, month: int, weekday: int, n: int) -> dt.date:
    """Return the n-th Monday (0) … Sunday (6) of a month."""
    first = dt.date(year, month, 1)
    return first + DAY * ((weekday - first.weekday()) % 7 + 7 * (n - 1))


def easter(year: int) -> dt.date:
    """Return Easter Sunday, by the anonymous Gregorian computation."""
    a, b, c = year % 19, *divmod(year, 100)
    d, e = divmod(b, 4)
    g = (8 * b + 13) // 25
    h = (19 * a + b - d - g + 15) % 30
    i, k = divmod(c, 4)
    ell = (32 + 2 * e + 2 * i - h - k) % 7
    month, day = divmod(h + ell - 7 * ((a + 11 * h + 22 * ell) // 451) + 114, 31)
    return dt.date(year, month, day + 1)


def _fixed(year: int, *named: tuple[int, int]) -> list[dt.date]:
    """Return holidays with fixed dates; those on a Sunday move to Monday."""
    dates = [dt.date(year, month, day) for month, day in named]
    return [date + DAY if date.weekday() == 6 else date for date in dates]


def _moving(year: int) -> list[dt.date]:
    memorial = max(d for d in (nth_weekday(year, 5, 0, n) for n in (4, 5)) if d.month == 5)
    thanksgiving = nth_weekday(year, 11, 3, 4)
    return [
        nth_weekday(year, 1, 0, 3),
        nth_weekday(year, 2, 0, 3),
        easter(year) - 2 * DAY,
        memorial,
        nth_weekday(year, 9, 0, 1),
        thanksgiving,
    ]


@lru_cache(maxsize=64)
def market_holidays(year: int) -> frozenset[dt.date]:
    """Return the days on which the New York exchanges are closed; a Saturday holiday but New Year moves to Friday."""
    fixed = _fixed(year, (6, 19), (7, 4), (12, 25))
    return frozenset([*_moving(year), *_fixed(year, (1, 1)), *(d - DAY if d.weekday() == 5 else d for d in fixed)])


@lru_cache(maxsize=64)
def bank_holidays(year: int) -> frozenset[dt.date]:
    """Return U.S. federal holidays, lost on a Saturday, and Good Friday, when the bond market closes too."""
    fixed = _fixed(year, (1, 1), (6, 19), (7, 4), (11, 11), (12, 25))
    return frozenset([*_moving(year), nth_weekday(year, 10, 0, 2), *fixed])


@lru_cache(maxsize=64)
def euro_holidays(year: int) -> frozenset[dt.date]:
    """Return the days without a fixing."""
    good_friday = easter(year) - 2 * DAY
    named = [(1, 1), (5, 1), (12, 25), (12, 26)]
    return frozenset([good_friday, good_friday + 3 * DAY, *(dt.date(year, month, day) for month, day in named)])


def bank_day(date: dt.date) -> bool:
    return date.weekday() < 5 and date not in bank_holidays(date.year)


def fixing_day(date: dt.date) -> bool:
    return date.weekday() < 5 and date not in euro_holidays(date.year)


def market_day(date: dt.date) -> bool:
    return date.weekday() < 5 and date not in market_holidays(date.year)


def thursday(date: dt.date) -> bool:
    return date.weekday() == 3


def following(date: dt.date, calendar: Calendar) -> dt.date:
    """Return the next day of the calendar after a date."""
    date += DAY
    while not calendar(date):
        date += DAY
    return date


def days_out(world: World, calendar: Calendar, release: Callable[[dt.date], float]) -> Iterator[dt.date]:
    """Yield the calendar's days whose value is published by now (`release` returns the instant), newest first."""
    date = world.time.date()
    while True:
        if calendar(date) and release(date) <= world.now:
            yield date
        date -= DAY


def same_evening(date: dt.date) -> float:
    return epoch(date, 23)


def next_morning(date: dt.date) -> float:
    return epoch(following(date, bank_day), 14)


def next_evening(date: dt.date) -> float:
    return epoch(following(date, bank_day), 21.25)


def afternoon(date: dt.date) -> float:
    return epoch(date, 15)


# Daily values


def walk(world: World, key: str, date: dt.date, base: float) -> float:
    """Return a level that wanders around `base`, at most 0.5 % from one weekday to the next."""
    pinned = world.pinned(key, epoch(date, 12))
    if pinned is not None:
        return pinned
    week, weekday = divmod(date.toordinal() - 1, 7)
    return base * drift(world.seed, key, 5 * week + min(weekday, 4))


@lru_cache(maxsize=1 << 15)
def drift(seed: int, key: str, n: int) -> float:
    """Return the factor of a level on the n-th weekday; it is cached, since long series
    request the same days repeatedly.
    """
    noise = World(seed, 0).noise
    return math.exp(0.04 * noise(key, n / 80) + 0.006 * noise(f"{key}.b", n / 6) + 0.0007 * noise(f"{key}.c", n))


def level(world: World, name: str, date: dt.date) -> float:
    """Return a rate of `LEVELS` in percent, or a price in dollars (barrel, million Btu), as published: two decimals."""
    return round(walk(world, f"macro.{name}", date, LEVELS[name]), 2)


def target(world: World, date: dt.date) -> float:
    """Return the lower end of the central bank's target range; it rarely moves, by a quarter point."""
    pinned = world.pinned("macro.target", epoch(date, 12))
    return pinned if pinned is not None else 3.25 + 0.25 * int(3 * world.u("macro.target", date.toordinal() // 91))


def funds_rate(world: World, date: dt.date) -> float:
    """Return the effective rate, a little above the lower end."""
    return round(target(world, date) + 0.08 + 0.01 * (world.u("macro.effr", date.toordinal()) < 0.15), 2)


def per_euro(world: World, code: str, date: dt.date) -> float:
    """Return the fixing with five significant digits, as the ECB publishes it."""
    dollars = 1 / walk(world, "fx.EUR", date, PER_USD["EUR"])
    if code == "USD":
        return float(f"{dollars:.5g}")
    return float(f"{dollars * walk(world, f'fx.{code}', date, PER_USD[code]):.5g}")


def per_usd(world: World, code: str, date: dt.date) -> float:
    """Return the same fixing with the dollar as base."""
    euro = 1.0 if code == "EUR" else per_euro(world, code, date)
    return euro / per_euro(world, "USD", date)


# Figures that come out once a month or a quarter


def _after(year: int, month: int, months: int) -> tuple[int, int]:
    index = 12 * year + month - 1 + months
    return index // 12, index % 12 + 1


def prices_release(year: int, month: int) -> float:
    """Return the 13th of the next month, in the morning."""
    return epoch(dt.date(*_after(year, month, 1), 13), 13.5)


def jobs_release(year: int, month: int) -> float:
    """Return the first Friday of the next month that is not its first day."""
    friday = nth_weekday(*_after(year, month, 1), 4, 1)
    return epoch(friday if friday.day > 1 else friday + 7 * DAY, 13.5)


def growth_release(year: int, month: int) -> float:
    """Return the 29th of the month after the quarter that begins with `month`."""
    return epoch(dt.date(*_after(year, month, 3), 29), 13.5)


def periods_out(world: World, since: int, step: int, release: Callable[[int, int], float]) -> list[dt.date]:
    """Return first days of the published months (step 1) or quarters (step 3), from January `since`, oldest first."""
    periods = []
    year, month = since, 1
    while release(year, month) <= world.now:
        periods.append(dt.date(year, month, 1))
        year, month = _after(year, month, step)
    return periods


def cpi(world: World, date: dt.date) -> float | None:
    """Return the consumer price index of a month; None where none was ever published."""
    if (date.year, date.month) in SHUTDOWN:
        return None
    months = 12 * (date.year - 2026) + date.month - 1
    swing = 0.0008 * world.noise("macro.cpi", months)
    pinned = world.pinned("macro.cpi", epoch(date))
    return pinned if pinned is not None else round(326.0 * math.exp(0.0023 * months + swing), 3)


def cpi_unadjusted(world: World, date: dt.date) -> float | None:
    """Return the index of a month as it is before seasonal adjustment: higher in summer, and a little off elsewhere."""
    adjusted = cpi(world, date)
    season = 0.004 * math.sin(math.pi * (date.month - 1) / 6)
    noise = 0.0006 * world.noise("macro.season", 12 * date.year + date.month)
    return None if adjusted is None else round(adjusted * (1 + season + noise), 3)


def unemployment(world: World, date: dt.date) -> float | None:
    """Return the percentage of the labour force in a month; None where none was ever published."""
    if (date.year, date.month) in SHUTDOWN:
        return None
    pinned = world.pinned("macro.unemployment", epoch(date))
    return (
        pinned
        if pinned is not None
        else round(4.4 + 0.5 * world.noise("macro.unemployment", date.toordinal() / 300), 1)
    )


def gdp_growth(world: World, date: dt.date) -> float:
    """Return the annualised percentage of the quarter that begins on a day."""
    pinned = world.pinned("macro.gdp_growth", epoch(date))
    return pinned if pinned is not None else round(2.2 + 2 * world.noise("macro.gdp_growth", date.toordinal() / 70), 1)


@expects("economic-data")
def expected(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    """Return what `/api/economic-data` must have at this instant when every publisher answers and no key is set."""

    def daily(
        calendar: Calendar, release: Callable[[dt.date], float], value: Callable[[dt.date], float]
    ) -> dict[str, Any]:
        day, before = islice(days_out(world, calendar, release), 2)
        return {"value": value(day), "date": str(day), "previous": value(before), "previous_date": str(before)}

    def figure(
        since: int, step: int, release: Callable[[int, int], float], value: Callable[[dt.date], Any]
    ) -> dict[str, Any]:
        out = [day for day in periods_out(world, since, step, release) if value(day) is not None]
        return {
            "value": value(out[-1]),
            "date": str(out[-1]),
            "previous": value(out[-2]),
            "previous_date": str(out[-2]),
        }

    def slope(day: dt.date) -> float:
        return round(level(world, "treasury_10y", day) - level(world, "treasury_2y", day), 2)

    year = world.time.year - 2
    return {
        "fed_rate": daily(bank_day, next_morning, lambda day: funds_rate(world, day)),
        "cpi": figure(year, 1, prices_release, lambda day: cpi(world, day)),
        "unemployment": figure(year, 1, jobs_release, lambda day: unemployment(world, day)),
        "gdp_growth": figure(year, 3, growth_release, lambda day: gdp_growth(world, day)),
        "treasury_10y": daily(bank_day, same_evening, lambda day: level(world, "treasury_10y", day)),
        "treasury_2y": daily(bank_day, same_evening, lambda day: level(world, "treasury_2y", day)),
        "mortgage_30y": daily(thursday, lambda day: epoch(day, 17), lambda day: level(world, "mortgage_30y", day)),
        "yield_curve_2s10s": daily(bank_day, same_evening, slope),
    }
