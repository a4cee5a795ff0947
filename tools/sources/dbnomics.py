"""DBnomics: U.S. real GDP growth as BEA publishes it (JSON, no key, public domain).

https://db.nomics.world/BEA/NIPA-T10101
"""

from datetime import date
from typing import Any

from tools.shared.numbers import number_or_none, within
from tools.shared.series import Series, newest_at, nonzero, series
from tools.sources.hosts import MACRO
from toolserver.errors import SourceEmpty
from toolserver.upstream.source import Get, Keys, Licence, Source

SERIES = "https://api.db.nomics.world/v22/series/BEA/NIPA-T10101/A191RL-Q"
LICENCE = Licence("yes", "U.S. Bureau of Economic Analysis, by way of DBnomics", "https://db.nomics.world/")


def request(query: None, keys: Keys) -> Get:
    return Get(SERIES, params={"observations": "1"})


def parse(body: Any, query: None) -> Series:
    """Percent change from the preceding quarter, at an annual rate; dated by the first day of the quarter."""
    documents = body["series"]["docs"]
    if not documents:
        raise SourceEmpty("no series")
    pairs = zip(documents[0]["period"], documents[0]["value"], strict=True)
    return nonzero(series((quarter(period), _growth(value)) for period, value in pairs))


def _growth(value: Any) -> float | None:
    read = number_or_none(value)
    return None if read is None else within(read, -60, 60)


def quarter(period: str) -> date:
    """The first day of `2026-Q2`. Raises ValueError."""
    year, number = period.split("-Q")
    return date(int(year), 3 * int(number) - 2, 1)


REAL_GDP_GROWTH = Source(
    "DBnomics.us_real_gdp_growth",
    request,
    parse,
    licence=LICENCE,
    hosts=MACRO,
    fresh_s=21600,
    keep_s=1209600,
    timeout_s=15,
    newest=newest_at,
    newest_max_s=220 * 86400,  # a quarter is dated by its first day and replaced 212 days later
)
