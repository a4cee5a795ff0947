"""Read mid-market dollar rates of a day from currency-api, weekends included (JSON on jsDelivr, no key, CC0).

These are not the ECB's fixings. https://github.com/fawazahmed0/exchange-api
"""

from datetime import date, datetime
from typing import Any, NamedTuple

from tools.parsing.series import LEAST_CODES, FxDay, choose_rates, midnight, newest_rates
from tools.sources.hosts import DAY, HOUR, RAW, WEEK
from toolserver import Gauge, Get, Keys, Licence, Source, SourceEmpty

PACKAGE = "https://cdn.jsdelivr.net/npm/@fawazahmed0/currency-api"
LICENCE = Licence("yes", "fawazahmed0/exchange-api (CC0)", "https://github.com/fawazahmed0/exchange-api")


class UsdRates(NamedTuple):
    """The rates of a day. `past` says that this day was requested by name, so that its age does not matter."""

    day: FxDay
    past: bool


def request(query: date | None, keys: Keys) -> Get:
    """Return the request for the file of a day; for the latest one if the query is None."""
    return Get(f"{PACKAGE}@{query or 'latest'}/v1/currencies/usd.json")


def parse(body: Any, query: date | None) -> UsdRates:
    """Return our currencies, out of several hundred."""
    day = date.fromisoformat(body["date"])
    if query is not None and day != query:
        raise ValueError(f"the rates of {day} instead of {query}")
    rates = choose_rates({code.upper(): rate for code, rate in body["usd"].items()})
    if len(rates) < LEAST_CODES:
        raise SourceEmpty(f"{len(rates)} currencies")
    return UsdRates(FxDay(day, rates), past=query is not None)


def judged(rates: UsdRates) -> datetime | None:
    return None if rates.past else midnight(rates.day.date)


USD_RATES = Source(
    "CurrencyApi.usd_rates",
    request,
    parse,
    licence=LICENCE,
    hosts=RAW,
    fresh_s=HOUR,
    keep_s=WEEK,
    newest=lambda rates: midnight(rates.day.date),
    stamp=judged,
    newest_max_s=3 * DAY,
    gauge=Gauge(lambda rates: {} if rates.past else newest_rates(rates.day), 0.4),
)
