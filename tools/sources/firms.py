"""Read fires seen by the VIIRS satellites from NASA FIRMS (CSV; regional files need no key, the area query does).

https://firms.modaps.eosdis.nasa.gov/active_fire/
"""

import csv
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from tools.parsing.fields import clean, number, within
from tools.sources.hosts import HOUR, MINUTE, NASA
from toolserver import (
    MIB,
    Definition,
    Get,
    Keys,
    Licence,
    Meaning,
    Proof,
    Source,
    SourceChanged,
    SourceLimited,
    SourceRefused,
    read_rows,
)

KEY = "FIRMS_MAP_KEY"
SITE = "https://firms.modaps.eosdis.nasa.gov"
LICENCE = Licence("attribution", "NASA FIRMS (LANCE)", "https://www.earthdata.nasa.gov/data/tools/firms/faq")
AREA = "-170,15,-50,72"

Satellite = Literal["NOAA-20", "NOAA-21", "Suomi NPP"]
Confidence = Literal["low", "nominal", "high"]
Region = Literal["USA_contiguous_and_Hawaii", "Alaska"]
MAINLAND: Region = "USA_contiguous_and_Hawaii"

FILES: dict[Satellite, tuple[str, str]] = {  # folder, start of the file name
    "NOAA-20": ("noaa-20-viirs-c2", "J1"),
    "NOAA-21": ("noaa-21-viirs-c2", "J2"),
    "Suomi NPP": ("suomi-npp-viirs-c2", "SUOMI"),
}
CODES = {
    "N": "Suomi NPP",
    "N20": "NOAA-20",
    "1": "NOAA-20",
    "N21": "NOAA-21",
    "2": "NOAA-21",
    "A": "Aqua",
    "T": "Terra",
}
WORDS: dict[str, Confidence] = {"l": "low", "n": "nominal", "h": "high"}
COLUMNS = {"latitude", "longitude", "acq_date", "acq_time", "satellite", "confidence", "frp"}


class FireFile(NamedTuple):
    """The detections of one satellite in a region over the past day."""

    satellite: Satellite
    region: Region


class Detection(NamedTuple):
    """A pixel that is burning."""

    lat: float
    lon: float
    frp_mw: float
    confidence: Confidence
    time: datetime
    satellite: str
    by_day: bool | None


def request_file(query: FireFile, keys: Keys) -> Get:
    folder, start = FILES[query.satellite]
    return Get(f"{SITE}/data/active_fire/{folder}/csv/{start}_VIIRS_C2_{query.region}_24h.csv", decode="text")


def request_area(query: None, keys: Keys) -> Get | None:
    if KEY not in keys:
        return None
    return Get(f"{SITE}/api/area/csv/{keys[KEY]}/VIIRS_NOAA20_NRT/{AREA}/2", decode="text")


def parse(body: str | None, query: object) -> tuple[Detection, ...]:
    """Return every row that has coordinates. A text without the header is an error message."""
    lines = (body or "").splitlines()
    header = lines[0] if lines else ""
    if "latitude" not in header:
        raise _refusal(header)
    table = csv.DictReader(lines)
    if missing := COLUMNS - {name.strip() for name in table.fieldnames or ()}:
        raise SourceChanged(f"no column {min(missing)}")
    rows = list(table)
    if rows and None in rows[-1].values():
        raise SourceChanged("the last row is cut short")
    detections = read_rows(rows, _placed)
    if detections and all(detection.lat == detection.lon == 0 for detection in detections):
        raise SourceChanged("every coordinate is 0")
    return detections


def _refusal(text: str) -> SourceRefused | SourceLimited | SourceChanged:
    said = clean(text, 60)
    if "MAP_KEY" in said:
        return SourceRefused(said)
    return SourceLimited(said) if "limit" in said.lower() else SourceChanged(said or "no header")


def _placed(row: dict[str, str]) -> Detection | None:
    """Return the detection of a row that has coordinates."""
    cells = {name.strip(): value for name, value in row.items() if name is not None}
    return _detection(cells) if cells["latitude"] and cells["longitude"] else None


def _detection(row: dict[str, str]) -> Detection:
    code = row["satellite"].strip()
    return Detection(
        lat=within(number(row["latitude"]), -90, 90),
        lon=within(number(row["longitude"]), -180, 180),
        frp_mw=within(number(row["frp"]), 0, 100_000),
        confidence=_confidence(row["confidence"].strip()),
        time=_time(row["acq_date"].strip(), row["acq_time"].strip()),
        satellite=CODES.get(code, clean(code, 20)),
        by_day={"D": True, "N": False}.get(row.get("daynight", "").strip()),
    )


def _confidence(written: str) -> Confidence:
    """Read the confidence: a word, its first letter, or percent."""
    if word := WORDS.get(written[:1].lower()):
        return word
    percent = within(number(written), 0, 100)
    return "low" if percent < 30 else "nominal" if percent < 80 else "high"


CONFIDENCE = Meaning(
    "wildfires.confidence",
    "VIIRS has the words low, nominal and high; MODIS has percent: low below 30, nominal below 80",
    decide=_confidence,
    rows=(
        ("29", "low"),
        ("30", "nominal"),
        ("79", "nominal"),
        ("80", "high"),
        ("l", "low"),
        ("nominal", "nominal"),
        ("h", "high"),
    ),
    definition=Definition(publisher="NASA", link="https://www.earthdata.nasa.gov/data/tools/firms/faq"),
)


def _time(date: str, time: str) -> datetime:
    """Read a UTC time. Hours and minutes are four digits, or fewer without leading zeros."""
    clock = int(within(number(time), 0, 2359))
    return datetime.strptime(date, "%Y-%m-%d").replace(hour=clock // 100, minute=clock % 100, tzinfo=UTC)


def newest(detections: tuple[Detection, ...]) -> datetime | None:
    return max((detection.time for detection in detections), default=None)


def regional(region: Region) -> Source[FireFile, tuple[Detection, ...]]:
    """Return the source of a region's files; all regions share a public name.

    There is always a fire in the contiguous states; in Alaska there may be none for months.
    """
    always = region == MAINLAND
    return Source(
        "NASA.firms_viirs_24h",
        request_file,
        parse,
        licence=LICENCE,
        hosts=NASA,
        fresh_s=10 * MINUTE,
        keep_s=12 * HOUR,
        timeout_s=20,
        max_bytes=24 * MIB,
        conditional=True,
        newest=newest,
        newest_max_s=18 * HOUR if always else None,
        ageless="" if always else "there may be no fire for months, and the mainland's file is judged as well",
        least=1 if always else 0,
        proof=None if always else Proof.harmless("it is read with the mainland's file, which is never empty"),
        size_varies="clouds and rain hide or end most fires of a region within a day",
        untrusted=True,
        probe=FireFile("NOAA-20", region),
    )


REGIONS: dict[Region, Source[FireFile, tuple[Detection, ...]]] = {
    MAINLAND: regional(MAINLAND),
    "Alaska": regional("Alaska"),
}

FIRES_AREA = Source(
    "NASA.firms_area",
    request_area,
    parse,
    licence=LICENCE,
    hosts=NASA,
    fresh_s=10 * MINUTE,
    newest_max_s=18 * HOUR,
    keep_s=12 * HOUR,
    timeout_s=15,
    max_bytes=24 * MIB,
    newest=newest,
    also=frozenset({400}),  # an error message comes with either status
    untrusted=True,
)
