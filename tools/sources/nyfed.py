"""Federal Reserve Bank of New York: the effective federal funds rate (JSON, no key, credit asked).

https://markets.newyorkfed.org/static/docs/markets-api.html
"""

from datetime import date
from typing import Any, NamedTuple

from tools.shared.numbers import number, number_or_none, within
from tools.shared.series import Series, newest_at, nonzero, series
from tools.sources.hosts import MACRO
from toolserver.errors import SourceEmpty
from toolserver.upstream.source import Gauge, Get, Keys, Licence, Source

LATEST = "https://markets.newyorkfed.org/api/rates/unsecured/effr/last/45.json"
LICENCE = Licence("attribution", "Federal Reserve Bank of New York", "https://www.newyorkfed.org/privacy/termsofuse")


class FundsRate(NamedTuple):
    """The rate of each business day, and the target range of the youngest one."""

    percent: Series
    target_from_percent: float | None
    target_to_percent: float | None


def request(query: None, keys: Keys) -> Get:
    return Get(LATEST)


def parse(body: Any, query: None) -> FundsRate:
    """The rows of type EFFR, whatever their order."""
    rows = [row for row in body["refRates"] if row["type"] == "EFFR"]
    if not rows:
        raise SourceEmpty("no rate")
    last = max(rows, key=lambda row: row["effectiveDate"])
    pairs = ((date.fromisoformat(row["effectiveDate"]), within(number(row["percentRate"]), -2, 25)) for row in rows)
    return FundsRate(
        nonzero(series(pairs)),
        number_or_none(last.get("targetRateFrom")),
        number_or_none(last.get("targetRateTo")),
    )


EFFR = Source(
    "NYFed.effr",
    request,
    parse,
    licence=LICENCE,
    hosts=MACRO,
    fresh_s=3600,
    keep_s=604800,
    timeout_s=10,
    newest=lambda found: newest_at(found.percent),
    newest_max_s=6 * 86400,
    gauge=Gauge(lambda found: {"fed_rate": found.percent[-1].value}, 3, absolute=True),
)
