"""Read the European Central Bank's euro reference rates of the past 90 days (XML, no key, credit requested).

https://www.ecb.europa.eu/stats/policy_and_exchange_rates/euro_reference_exchange_rates/
"""

from datetime import date
from typing import TYPE_CHECKING

from tools.parsing.fields import positive
from tools.parsing.series import FxDay, FxDays, choose_rates, newest_day, newest_rates, require_complete
from tools.parsing.xml import xml_root
from tools.sources.hosts import DAY, HOUR, WEEK, other
from toolserver import Gauge, Get, Licence, Source, read_rows

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

HISTORY = "https://www.ecb.europa.eu/stats/eurofxref/eurofxref-hist-90d.xml"
CUBE = "{http://www.ecb.int/vocabulary/2002-08-01/eurofxref}Cube"
LICENCE = Licence(
    "attribution",
    "European Central Bank reference rates",
    "https://www.ecb.europa.eu/services/disclaimer/html/index.en.html",
)


def parse(body: bytes, query: None) -> FxDays:
    """Return every day, converted from units per euro into units per dollar."""
    days = read_rows((cube for cube in xml_root(body).iter(CUBE) if "time" in cube.attrib), _day)
    return require_complete(sorted(days, key=lambda day: day.date))


def _day(cube: "Element") -> FxDay:
    per_euro = {row.attrib["currency"]: positive(row.attrib["rate"]) for row in cube} | {"EUR": 1.0}
    dollar = per_euro["USD"]
    return FxDay(
        date.fromisoformat(cube.attrib["time"]),
        choose_rates({code: rate / dollar for code, rate in per_euro.items()}),
    )


REFERENCE_RATES_90D = Source(
    "ECB.reference_rates_90d",
    Get(HISTORY, decode="bytes"),
    parse,
    licence=LICENCE,
    hosts=other("ecb"),
    fresh_s=HOUR,
    keep_s=WEEK,
    timeout_s=10,
    conditional=True,
    newest=newest_day,
    newest_max_s=6 * DAY,
    least=20,
    gauge=Gauge(lambda days: newest_rates(days[-1]), 0.4),
)
