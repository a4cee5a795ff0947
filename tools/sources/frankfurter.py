"""Frankfurter: the ECB's euro reference rates with the dollar as base (JSON, no key, credit to the ECB).

https://frankfurter.dev/
"""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

from tools.shared.numbers import positive
from tools.shared.series import midnight
from tools.sources.hosts import other
from toolserver.errors import SourceEmpty
from toolserver.upstream.source import Gauge, Get, Keys, Licence, Source

API = "https://api.frankfurter.dev/v1"
LICENCE = Licence(
    "attribution", "European Central Bank reference rates, by way of Frankfurter", "https://frankfurter.dev/"
)
CODES = (
    "EUR", "GBP", "JPY", "CAD", "AUD", "CHF", "CNY", "INR", "MXN", "BRL", "KRW", "SGD", "HKD", "SEK", "NOK", "NZD",
)  # fmt: skip
LEAST_DAYS, LEAST_CODES = 20, 12


class FxDay(NamedTuple):
    """What a dollar was worth on a day: units of each currency, by code."""

    date: date
    per_usd: Mapping[str, float]


FxDays: TypeAlias = tuple[FxDay, ...]
"""Published days, oldest first: no weekends, no holidays."""


class FxWindow(NamedTuple):
    """The days to ask for."""

    since: date
    until: date


def request(query: FxWindow, keys: Keys) -> Get:
    return Get(f"{API}/{query.since}..{query.until}", params={"base": "USD", "symbols": ",".join(CODES)})


def parse(body: Any, query: FxWindow) -> FxDays:
    """Every published day of the window, and of the business day before it."""
    if body["base"] != "USD":
        raise ValueError(f"base is {body['base']!r:.10}")
    days = (FxDay(date.fromisoformat(day), chosen(rates)) for day, rates in body["rates"].items())
    return complete(sorted(days, key=lambda day: day.date))


def chosen(rates: Mapping[str, Any]) -> dict[str, float]:
    """The rates of our currencies, in our order; a code that is not quoted is absent."""
    return {code: positive(rates[code]) for code in CODES if rates.get(code) is not None}


def complete(days: list[FxDay]) -> FxDays:
    """The days, if there are enough of them and the youngest is not reduced. Raises SourceEmpty."""
    if len(days) < LEAST_DAYS:
        raise SourceEmpty(f"{len(days)} days")
    if len(days[-1].per_usd) < LEAST_CODES:
        raise SourceEmpty(f"{len(days[-1].per_usd)} currencies")
    return tuple(days)


def newest(days: FxDays) -> datetime:
    return midnight(days[-1].date)


def newest_rates(day: FxDay) -> dict[str, float]:
    """The rates by the names under which providers are compared."""
    return {f"USD-{code}": rate for code, rate in day.per_usd.items()}


USD_TIMESERIES = Source(
    "Frankfurter.usd_timeseries",
    request,
    parse,
    licence=LICENCE,
    hosts=other("frankfurter"),
    fresh_s=3600,
    keep_s=604800,
    timeout_s=8,
    conditional=True,
    newest=newest,
    newest_max_s=6 * 86400,
    least=LEAST_DAYS,
    key=lambda query: "usd",  # the window only bounds what is asked
    gauge=Gauge(lambda days: newest_rates(days[-1]), 0.4),
    probe=lambda: FxWindow(date.today() - timedelta(days=50), date.today()),
)
