"""Read the ECB's euro reference rates with the dollar as base from Frankfurter (JSON, no key, credit to the ECB).

https://frankfurter.dev/
"""

from datetime import date, timedelta
from typing import Any, NamedTuple

from tools.parsing.series import (
    CODES,
    LEAST_DAYS,
    FxDay,
    FxDays,
    choose_rates,
    newest_day,
    newest_rates,
    require_complete,
)
from tools.sources.hosts import DAY, HOUR, WEEK, other
from toolserver import Gauge, Get, Keys, Licence, Source, read_rows

API = "https://api.frankfurter.dev/v1"
LICENCE = Licence(
    "attribution", "European Central Bank reference rates, by way of Frankfurter", "https://frankfurter.dev/"
)


class FxWindow(NamedTuple):
    """The days to request."""

    since: date
    until: date


def request(query: FxWindow, keys: Keys) -> Get:
    return Get(f"{API}/{query.since}..{query.until}", params={"base": "USD", "symbols": ",".join(CODES)})


def parse(body: Any, query: FxWindow) -> FxDays:
    """Return every published day of the window, and of the business day before it."""
    if body["base"] != "USD":
        raise ValueError(f"base is {body['base']!r:.10}")
    days = read_rows(body["rates"].items(), lambda pair: FxDay(date.fromisoformat(pair[0]), choose_rates(pair[1])))
    return require_complete(sorted(days, key=lambda day: day.date))


USD_TIMESERIES = Source(
    "Frankfurter.usd_timeseries",
    request,
    parse,
    licence=LICENCE,
    hosts=other("frankfurter"),
    fresh_s=HOUR,
    keep_s=WEEK,
    conditional=True,
    newest=newest_day,
    newest_max_s=6 * DAY,
    least=LEAST_DAYS,
    key=lambda query: "usd",  # the window only limits the size of the answer
    gauge=Gauge(lambda days: newest_rates(days[-1]), 0.4),
    probe=lambda now: FxWindow(now.date() - timedelta(days=50), now.date()),
)
