"""Read U.S. real GDP growth, as BEA publishes it, from DBnomics (JSON, no key, public domain).

https://db.nomics.world/BEA/NIPA-T10101
"""

from datetime import date
from typing import Any

from tools.parsing.fields import number_or_none, within
from tools.parsing.series import Series, nonzero, series, series_source
from tools.sources.hosts import DAY, MACRO
from toolserver import Get, Licence, SourceEmpty, read_rows

SERIES = "https://api.db.nomics.world/v22/series/BEA/NIPA-T10101/A191RL-Q"
LICENCE = Licence("yes", "U.S. Bureau of Economic Analysis, by way of DBnomics", "https://db.nomics.world/")


def parse(body: Any, query: None) -> Series:
    """Return the percent change from the preceding quarter, at an annual rate, dated by the quarter's first day."""
    documents = body["series"]["docs"]
    if not documents:
        raise SourceEmpty("no series")
    pairs = zip(documents[0]["period"], documents[0]["value"], strict=True)
    return nonzero(series(read_rows(pairs, lambda pair: (quarter(pair[0]), _growth(pair[1])))))


def _growth(value: Any) -> float | None:
    read = number_or_none(value)
    return None if read is None else within(read, -60, 60)


def quarter(period: str) -> date:
    """Return the first day of a quarter such as `2026-Q2`. Raises ValueError."""
    year, number = period.split("-Q")
    return date(int(year), 3 * int(number) - 2, 1)


REAL_GDP_GROWTH = series_source(
    "DBnomics.us_real_gdp_growth",
    Get(SERIES, params={"observations": "1"}),
    parse,
    licence=LICENCE,
    hosts=MACRO,
    newest_max_s=220 * DAY,  # a quarter is dated by its first day and replaced 212 days later
)
