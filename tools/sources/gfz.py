"""Read the planetary K index from its publisher, GFZ Potsdam (JSON, no key).

https://kp.gfz.de/en/data
"""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from tools.parsing.fields import from_iso, number, within
from tools.parsing.kp_index import KpReading
from tools.sources.hosts import HOUR, MINUTE, other
from toolserver import Get, Keys, Licence, Source, SourceChanged, SourceEmpty, read_rows

LICENCE = Licence("attribution", "Kp index by GFZ Potsdam (CC BY 4.0)", "https://kp.gfz.de/en/license")
HOURS = 24


class KpWindow(NamedTuple):
    """The day before a time. Whole seconds: the server refuses fractions."""

    until: datetime


def request(query: KpWindow, keys: Keys) -> Get:
    until = query.until.replace(microsecond=0)
    return Get(
        "https://kp.gfz.de/app/json/",
        params={"start": _written(until - timedelta(hours=HOURS)), "end": _written(until), "index": "Kp"},
    )


def _written(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def parse(body: Any, query: KpWindow) -> tuple[KpReading, ...]:
    """Return the periods that have a value, oldest first; the latest ones may not be published yet."""
    rows = ((time, kp) for time, kp in zip(body["datetime"], body["Kp"], strict=True) if kp is not None)
    readings = sorted(read_rows(rows, lambda row: KpReading(from_iso(row[0]), within(number(row[1]), 0, 9))))
    if not readings:
        raise SourceEmpty("no value yet")
    if not any(reading.kp for reading in readings):
        raise SourceChanged("every value is 0")
    return tuple(readings)


KP_INDEX = Source(
    "GFZ.kp_index",
    request,
    parse,
    licence=LICENCE,
    hosts=other("gfz"),
    fresh_s=10 * MINUTE,
    keep_s=12 * HOUR,
    newest=lambda readings: readings[-1].time,
    newest_max_s=7 * HOUR,
    key=lambda query: None,  # always the past day
    probe=KpWindow,
)
