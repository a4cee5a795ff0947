"""Read the effective federal funds rate from the Federal Reserve Bank of New York (JSON, no key, credit requested).

https://markets.newyorkfed.org/static/docs/markets-api.html
"""

from datetime import date
from typing import Any, NamedTuple

from tools.parsing.fields import number, number_or_none, within
from tools.parsing.series import Series, newest_at, nonzero, series
from tools.sources.hosts import DAY, HOUR, MACRO, WEEK
from toolserver import Gauge, Get, Licence, Source, SourceEmpty, read_rows

LATEST = "https://markets.newyorkfed.org/api/rates/unsecured/effr/last/45.json"
LICENCE = Licence("attribution", "Federal Reserve Bank of New York", "https://www.newyorkfed.org/privacy/termsofuse")


class FundsRate(NamedTuple):
    """The rate of each business day, and the target range of the latest one."""

    percent: Series
    target_from_percent: float | None
    target_to_percent: float | None


def parse(body: Any, query: None) -> FundsRate:
    """Return the rows of type EFFR, in any order."""
    rows = read_rows(body["refRates"], _rate)
    if not rows:
        raise SourceEmpty("no rate")
    *_, low, high = max(rows, key=lambda row: row[0])
    return FundsRate(nonzero(series((day, percent) for day, percent, *_ in rows)), low, high)


def _rate(row: dict[str, Any]) -> tuple[date, float, float | None, float | None] | None:
    if row["type"] != "EFFR":
        return None
    percent = within(number(row["percentRate"]), -2, 25)
    low, high = number_or_none(row.get("targetRateFrom")), number_or_none(row.get("targetRateTo"))
    return date.fromisoformat(row["effectiveDate"]), percent, low, high


EFFR = Source(
    "NYFed.effr",
    Get(LATEST),
    parse,
    licence=LICENCE,
    hosts=MACRO,
    fresh_s=HOUR,
    keep_s=WEEK,
    timeout_s=10,
    newest=lambda funds: newest_at(funds.percent),
    newest_max_s=6 * DAY,
    gauge=Gauge(lambda funds: {"fed_rate": funds.percent[-1].value}, 3, absolute=True),
)
