"""Read AirNow: the air quality index measured in each U.S. reporting area (one text file, no key, preliminary data).

https://docs.airnowapi.org/docs/ReportingAreaFactSheet.pdf
"""

import re
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from tools.parsing.fields import NAME, clean, number, optional, within
from tools.sources.hosts import HOUR, MINUTE, other
from toolserver import MIB, Get, Licence, Source, SourceChanged, SourceEmpty, read_rows

FILE = "https://files.airnowtech.org/airnow/today/reportingarea.dat"
LICENCE = Licence(
    "attribution",
    "EPA AirNow and the agency of the area; preliminary data",
    "https://docs.airnowapi.org/docs/DataUseGuidelines.pdf",
)
COLUMNS, LEAST_OBSERVED = 13, 200
OBSERVED = "O"  # the other rows are forecasts (F) and yesterday's summaries (Y)
ZONES: dict[str, tuple[float, ...]] = {  # hours from UTC; of several, the one that fits the place
    "AST": (-4, 3), "ADT": (-3,), "EST": (-5, 10), "EDT": (-4,), "CST": (-6, 8), "CDT": (-5,), "MST": (-7, 6.5, 8),
    "MDT": (-6,), "PST": (-8, 5, 8), "PDT": (-7,), "AKST": (-9,), "AKDT": (-8,), "HST": (-10,), "HDT": (-9,),
    "NST": (-3.5,), "NDT": (-2.5,), "SST": (-11,), "CHST": (10,), "GST": (4, 10), "GMT": (0,), "UTC": (0,),
    "WAT": (1,), "CAT": (2,), "EET": (2,), "EAT": (3,), "UZT": (5,), "PKT": (5,), "IST": (5.5, 2), "NPT": (5.75,),
    "BST": (6, 1), "ICT": (7,), "WIB": (7,), "HKT": (8,), "JST": (9,), "KST": (9,),
}  # fmt: skip
OFF = 3.0  # hours that a clock may differ from solar time: western China has the largest difference


_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?")


class Area(NamedTuple):
    """A reporting area: its index is the highest of its pollutants. `time` is None where its zone is not known.

    `state` is that of the United States, or the country of a post abroad.
    """

    name: str
    state: str
    lat: float
    lon: float
    aqi: int
    pollutant: str
    time: datetime | None


def parse(body: bytes | None, query: None) -> tuple[Area, ...]:
    """Return every area with an observed index."""
    rows = read_rows(_text(body or b"").splitlines(), _observed)
    if len(rows) < LEAST_OBSERVED:
        raise SourceEmpty(f"{len(rows)} observations")
    areas: dict[tuple[str, str], Area] = {}
    for area in rows:
        previous = areas.setdefault((area.name, area.state), area)
        if area.aqi > previous.aqi:
            areas[area.name, area.state] = area
    if not any(area.aqi for area in areas.values()):
        raise SourceChanged("every index is 0")
    return tuple(areas.values())


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace")


def _observed(line: str) -> Area | None:
    """Return the area of a row of type O; None for a row of another type, and for one without an index."""
    row = line.split("|")
    is_observed = len(row) >= COLUMNS and row[5].strip() == OBSERVED and row[12].strip()
    return _area(row) if is_observed else None


def _area(row: list[str]) -> Area:
    lon = within(number(row[10]), -180, 180)
    return Area(
        name=clean(row[7], NAME),
        state=clean(row[8], 20),
        lat=within(number(row[9]), -90, 90),
        lon=lon,
        aqi=round(within(number(row[12]), 0, 1000)),
        pollutant=clean(row[11], 20),
        time=optional(partial(_time, lon=lon), row),
    )


def _time(row: list[str], lon: float) -> datetime:
    """Return the time of a measurement: `MM/DD/YY`, `HH:MM` and the zone, an offset from UTC or an abbreviation."""
    local = datetime.strptime(f"{row[1].strip()} {row[2].strip()}+0000", "%m/%d/%y %H:%M%z")
    return local - timedelta(hours=offset(row[3].strip(), lon))


def offset(zone: str, lon: float) -> float:
    """Return the hours from UTC. An ambiguous abbreviation is resolved by longitude: Beijing's CST is +8.

    Raises ValueError where no meaning fits, KeyError for an unknown abbreviation.
    """
    if written := _OFFSET.fullmatch(zone):
        sign, hours, minutes = written.groups(default="0")
        return (-1 if sign == "-" else 1) * (int(hours) + int(minutes) / 60)
    sun = lon / 15
    distances = [(min(abs(sun - each), 24 - abs(sun - each)), each) for each in ZONES[zone.upper()]]
    away, best = min(distances)
    if away > OFF:
        raise ValueError(f"{zone} at {lon:g}")
    return best


def newest(areas: tuple[Area, ...]) -> datetime | None:
    return max((area.time for area in areas if area.time), default=None)


REPORTING_AREAS = Source(
    "AirNow.reporting_areas",
    Get(FILE, decode="bytes"),
    parse,
    licence=LICENCE,
    hosts=other("airnow"),
    fresh_s=30 * MINUTE,
    keep_s=6 * HOUR,
    timeout_s=20,
    max_bytes=6 * MIB,
    conditional=True,
    newest=newest,
    newest_max_s=6 * HOUR,
    untrusted=True,
)
