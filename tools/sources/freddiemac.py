"""Read the weekly 30-year fixed rate of Freddie Mac's Primary Mortgage Market Survey (CSV, no key, terms unclear).

https://www.freddiemac.com/pmms
"""

from datetime import date

from tools.parsing.fields import number_or_none, within
from tools.parsing.series import Series, calendar_date, series, series_source, table
from tools.sources.hosts import DAY, MACRO
from toolserver import Gauge, Get, Licence, read_rows

HISTORY = "https://www.freddiemac.com/pmms/docs/PMMS_history.csv"
LICENCE = Licence("unclear", "Freddie Mac", "https://www.freddiemac.com/terms")


def parse(body: str, query: None) -> Series:
    """Return the 30-year rate in percent, every week since 1971."""
    rows = table(body, "date", "pmms30")
    return series(read_rows((row for row in rows if row["date"].strip()), _week))


def _week(row: dict[str, str]) -> tuple[date, float | None]:
    value = number_or_none(row["pmms30"])
    return calendar_date(row["date"]), None if value is None else within(value, 0.1, 30)


PMMS_30Y = series_source(
    "FreddieMac.pmms_30y",
    Get(HISTORY, decode="text"),
    parse,
    licence=LICENCE,
    hosts=MACRO,
    conditional=True,
    newest_max_s=14 * DAY,
    gauge=Gauge(lambda observations: {"mortgage_30y": observations[-1].value}, 3, absolute=True),
)
