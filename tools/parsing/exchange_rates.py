"""Read exchange rates of the dollar, day by day."""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, NamedTuple, TypeAlias

from tools.parsing.fields import positive
from tools.parsing.series import midnight
from toolserver import SourceEmpty

CODES = (
    "EUR", "GBP", "JPY", "CAD", "AUD", "CHF", "CNY", "INR", "MXN", "BRL", "KRW", "SGD", "HKD", "SEK", "NOK", "NZD",
)  # fmt: skip
LEAST_DAYS, LEAST_CODES = 20, 12


class FxDay(NamedTuple):
    """The value of a dollar on a day: units of each currency, by code."""

    date: date
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


def newest_day(days: FxDays) -> datetime:
    return midnight(days[-1].date)


def newest_rates(day: FxDay) -> dict[str, float]:
    """Return the rates by the names under which providers are compared."""
    return {f"USD-{code}": rate for code, rate in day.per_usd.items()}
