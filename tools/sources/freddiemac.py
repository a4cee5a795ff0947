"""Freddie Mac Primary Mortgage Market Survey: weekly 30-year fixed rate (CSV, no key, terms unclear).

https://www.freddiemac.com/pmms
"""

from tools.shared.numbers import number_or_none, within
from tools.shared.series import Series, calendar_date, newest_at, series, table
from tools.sources.hosts import MACRO
from toolserver.upstream.source import Gauge, Get, Keys, Licence, Source

HISTORY = "https://www.freddiemac.com/pmms/docs/PMMS_history.csv"
LICENCE = Licence("unclear", "Freddie Mac", "https://www.freddiemac.com/terms")


def request(query: None, keys: Keys) -> Get:
    return Get(HISTORY, decode="text")


def parse(body: str, query: None) -> Series:
    """The 30-year rate in percent, every week since 1971."""
    rows = table(body, "date", "pmms30")
    values = ((calendar_date(row["date"]), number_or_none(row["pmms30"])) for row in rows if row["date"].strip())
    return series((day, None if value is None else within(value, 0.1, 30)) for day, value in values)


PMMS_30Y = Source(
    "FreddieMac.pmms_30y",
    request,
    parse,
    licence=LICENCE,
    hosts=MACRO,
    fresh_s=21600,
    keep_s=1209600,
    timeout_s=15,
    conditional=True,
    newest=newest_at,
    newest_max_s=14 * 86400,
    gauge=Gauge(lambda found: {"mortgage_30y": found[-1].value}, 3, absolute=True),
)
