"""Read consumer prices and unemployment from the U.S. Bureau of Labor Statistics (JSON, public domain).

`BLS_API_KEY` is optional: it moves the request to version 2, which allows more of them.
Without it 25 a day are allowed, so one request serves all series.
https://www.bls.gov/developers/
"""

from datetime import date
from typing import Any, NamedTuple

from tools.parsing.fields import number_or_none, within
from tools.parsing.series import Series, newest_at, series
from tools.sources.hosts import BLS, DAY, HOUR, WEEK
from toolserver import (
    Gauge,
    Keys,
    Licence,
    Post,
    Source,
    SourceChanged,
    SourceEmpty,
    SourceLimited,
    SourceRefused,
    read_rows,
)

API = "https://api.bls.gov/publicAPI"
CPI, CPI_UNADJUSTED, UNEMPLOYMENT = "CUSR0000SA0", "CUUR0000SA0", "LNS14000000"
PLAUSIBLE = {CPI: (50, 2000), CPI_UNADJUSTED: (50, 2000), UNEMPLOYMENT: (0.1, 50)}
LICENCE = Licence("yes", "U.S. Bureau of Labor Statistics", "https://www.bls.gov/developers/termsOfService.htm")


class Years(NamedTuple):
    """The first and the last year to request."""

    first: int
    last: int


class Labour(NamedTuple):
    """Monthly: the price index (1982-84 = 100) and the unemployment rate in percent, both seasonally adjusted.

    `cpi_unadjusted` is the index that BLS takes the change of 12 months from; empty where it was not answered.
    """

    cpi: Series
    unemployment_percent: Series
    cpi_unadjusted: Series = ()


def request(query: Years, keys: Keys) -> Post:
    selection: dict[str, Any] = {
        "seriesid": [CPI, UNEMPLOYMENT, CPI_UNADJUSTED],
        "startyear": str(query.first),
        "endyear": str(query.last),
    }
    key = keys.get("BLS_API_KEY")
    if key:
        return Post(f"{API}/v2/timeseries/data/", json=selection | {"registrationkey": key})
    return Post(f"{API}/v1/timeseries/data/", json=selection)


def parse(body: Any, query: Years) -> Labour:
    """Return the series, the two adjusted ones with at least one month each."""
    if body["status"] != "REQUEST_SUCCEEDED":
        raise _refusal(body)
    months = {row["seriesID"]: _months(row) for row in body["Results"]["series"]}
    if not months[CPI] or not months[UNEMPLOYMENT]:
        raise SourceEmpty("a series without months")
    return Labour(months[CPI], months[UNEMPLOYMENT], months.get(CPI_UNADJUSTED, ()))


def _refusal(body: dict[str, Any]) -> Exception:
    """Return the error for an unsuccessful status. The messages quote the key, so they are not passed on."""
    text = " ".join(map(str, body.get("message") or [])).lower()
    if "threshold" in text:
        return SourceLimited("daily threshold reached")
    if "key" in text:
        return SourceRefused("the key is not accepted")
    return SourceChanged(f"status is {body['status']!r:.40}")


def _months(row: dict[str, Any]) -> Series:
    """Return the months of a series, without M13 (the average of the year) and `-` (a month never published)."""
    low, high = PLAUSIBLE.get(row["seriesID"], (-1e9, 1e9))

    def month(item: dict[str, Any]) -> tuple[date, float | None] | None:
        if item["period"] == "M13" or not item["period"].startswith("M"):
            return None
        value = number_or_none(item["value"])
        return date(int(item["year"]), int(item["period"][1:]), 1), None if value is None else within(value, low, high)

    return series(read_rows(row["data"], month))


TIMESERIES = Source(
    "BLS.timeseries",
    request,
    parse,
    licence=LICENCE,
    hosts=BLS,
    fresh_s=6 * HOUR,
    keep_s=2 * WEEK,
    timeout_s=15,
    newest=lambda labour: newest_at(labour.cpi, labour.unemployment_percent),
    newest_max_s=75 * DAY,
    key=lambda query: "cpi, unemployment",  # the years only limit the size of the answer
    gauge=Gauge(lambda labour: {"cpi": labour.cpi[-1].value}, 0.4),
    probe=lambda now: Years(now.year - 3, now.year),
)
