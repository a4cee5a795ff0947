"""NOAA Space Weather Prediction Center: Kp, solar wind, X-rays, alerts (JSON, no key, public domain).

https://www.swpc.noaa.gov/content/data-access
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal, NamedTuple

from tools.shared.numbers import number, number_or_none, within
from tools.shared.optional import optional
from tools.shared.text import TITLE, clean
from tools.shared.times import from_iso
from tools.sources.hosts import NOAA
from toolserver.errors import SourceChanged, SourceEmpty
from toolserver.upstream.source import MIB, Get, Keys, Licence, Source

SERVICES = "https://services.swpc.noaa.gov"
LICENCE = Licence("yes", "NOAA Space Weather Prediction Center", "https://www.weather.gov/disclaimer")
LONG_BAND = "0.1-0.8nm"  # flares are classed by this one; the other band is in the same list
LEAST_KP, LEAST_XRAY = 8, 60
FASTEST, SLOWEST = 2500, 150  # km/s

Satellite = Literal["primary", "secondary"]
Kind = Literal["alert", "warning", "watch", "summary"]


class KpReading(NamedTuple):
    """The planetary K index, 0 to 9 in thirds, of the period that begins at `time`."""

    time: datetime
    kp: float


class SolarWind(NamedTuple):
    """The newest measurement that has both numbers."""

    time: datetime
    speed_kms: float
    density_cm3: float


class XrayPeak(NamedTuple):
    """The strongest minute of the past day in the long band, and the time of the newest minute."""

    flux_wm2: float
    time: datetime
    newest: datetime


class Bulletin(NamedTuple):
    """One message. Its serial number counts within its code; `ends` is the serial that it cancels or extends."""

    product_id: str
    code: str | None
    kind: Kind
    title: str
    issued_at: datetime
    message: str
    serial: int | None = None
    valid_to: datetime | None = None
    ends: int | None = None
    cancels: bool = False


def request_kp(query: None, keys: Keys) -> Get:
    return Get(f"{SERVICES}/products/noaa-planetary-k-index.json")


def parse_kp(body: Any, query: None) -> tuple[KpReading, ...]:
    """Every period with a value that some station measured, oldest first."""
    rows = [
        KpReading(from_iso(row["time_tag"]), within(number(row["kp"]), 0, 9))
        for row in _rows(body)
        if row["kp"] is not None and number_or_none(row.get("station_count")) != 0
    ]
    return tuple(sorted(rows))


def request_kp_1m(query: None, keys: Keys) -> Get:
    return Get(f"{SERVICES}/json/planetary_k_index_1m.json")


def parse_kp_1m(body: Any, query: None) -> KpReading:
    """The newest estimate."""
    row = max((row for row in _rows(body) if row["estimated_kp"] is not None), key=lambda row: str(row["time_tag"]))
    estimate = within(number(row["estimated_kp"]), 0, 9)
    written = str(row.get("kp") or "")[:1]  # the same as a digit with a sign: 1P, 2Z, 3M
    if written.isdigit() and abs(int(written) - estimate) > 0.5:
        raise SourceChanged(f"estimated_kp is {estimate:g}, kp is {written}")
    return KpReading(from_iso(row["time_tag"]), estimate)


def request_wind(query: None, keys: Keys) -> Get:
    return Get(f"{SERVICES}/json/rtsw/rtsw_wind_1m.json")


def request_propagated_wind(query: None, keys: Keys) -> Get:
    return Get(f"{SERVICES}/products/geospace/propagated-solar-wind-1-hour.json")


def parse_wind(body: Any, query: None) -> SolarWind:
    """The newest row with both numbers, of the spacecraft in use where several are listed."""
    found = [wind for row in _rows(body) if row.get("active", True) and (wind := optional(_wind, row))]
    if not found:
        raise SourceEmpty("no row with speed and density")
    return max(found)


def _wind(row: dict[str, Any]) -> SolarWind:
    speed = row["proton_speed"] if "proton_speed" in row else row["speed"]
    density = row["proton_density"] if "proton_density" in row else row["density"]
    return SolarWind(
        from_iso(row["time_tag"]), within(number(speed), SLOWEST, FASTEST), within(number(density), 0, 1000)
    )


def request_xray(query: Satellite, keys: Keys) -> Get:
    return Get(f"{SERVICES}/json/goes/{query}/xrays-1-day.json")


def parse_xray(body: Any, query: Satellite) -> XrayPeak:
    """Over the long band only. Minutes in eclipse have no flux."""
    minutes = [
        (flux, from_iso(row["time_tag"]))
        for row in _rows(body)
        if row["energy"] == LONG_BAND and (flux := number_or_none(row["flux"])) is not None and 0 < flux < 1
    ]
    if len(minutes) < LEAST_XRAY:
        raise SourceEmpty(f"{len(minutes)} minutes")
    flux, time = max(minutes)
    return XrayPeak(flux, time, max(time for _, time in minutes))


def request_alerts(query: None, keys: Keys) -> Get:
    return Get(f"{SERVICES}/products/alerts.json")


def parse_alerts(body: Any, query: None) -> tuple[Bulletin, ...]:
    """The messages of a month, cancellations included, newest first."""
    found = [_bulletin(row) for row in _rows(body)]
    told = [bulletin for bulletin in found if bulletin is not None]
    if found and not told:
        raise SourceChanged("no message says what it is")
    return tuple(sorted(told, key=lambda bulletin: bulletin.issued_at, reverse=True))


_HEADLINE = re.compile(r"^(?:(CANCEL|EXTENDED|CONTINUED) )?(ALERT|WARNING|WATCH|SUMMARY):(.*)$", re.MULTILINE)
_CODE = re.compile(r"^Space Weather Message Code: *(\w+)", re.MULTILINE)
_SERIAL = re.compile(r"^Serial Number: *(\d+)", re.MULTILINE)
_ENDS = re.compile(r"^(?:Cancel|Extension to) Serial Number: *(\d+)", re.MULTILINE)
_VALID_TO = re.compile(r"^(?:Now )?Valid (?:To|Until): *(\d{4} \w{3} \d{1,2} \d{4}) UTC", re.MULTILINE)
_KINDS: dict[str, Kind] = {"ALERT": "alert", "WARNING": "warning", "WATCH": "watch", "SUMMARY": "summary"}


def _bulletin(row: dict[str, Any]) -> Bulletin | None:
    """None for a message without a line that says what it is."""
    text = str(row["message"])
    headline = _HEADLINE.search(text)
    if headline is None:
        return None
    valid_to = _first(_VALID_TO, text)
    return Bulletin(
        product_id=clean(str(row["product_id"]), 20),
        code=_first(_CODE, text),
        kind=_KINDS[headline[2]],
        title=clean(headline[3], TITLE),
        issued_at=from_iso(row["issue_datetime"]),
        message=clean(text, 1000),
        serial=_number(_first(_SERIAL, text)),
        valid_to=optional(_utc, valid_to),
        ends=_number(_first(_ENDS, text)),
        cancels=headline[1] == "CANCEL",
    )


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found[1] if found else None


def _number(digits: str | None) -> int | None:
    return int(digits) if digits and len(digits) < 10 else None


def _utc(text: str) -> datetime:
    return datetime.strptime(f"{text}+0000", "%Y %b %d %H%M%z")


def _rows(body: Any) -> Iterator[dict[str, Any]]:
    """Rows by lower-case column name: a list of objects, or a list of lists under a header."""
    if not isinstance(body, list):
        raise SourceChanged("not a list")
    header = [str(name).lower() for name in body[0]] if body and isinstance(body[0], list) else None
    for row in body[1:] if header else body:
        yield dict(zip(header, row, strict=True)) if header else {name.lower(): row[name] for name in row}


KP_INDEX = Source(
    "SWPC.planetary_k",
    request_kp,
    parse_kp,
    licence=LICENCE,
    hosts=NOAA,
    fresh_s=300,
    keep_s=43200,
    timeout_s=8,
    newest=lambda readings: readings[-1].time,
    newest_max_s=7 * 3600,
    least=LEAST_KP,
)

KP_ESTIMATE = Source(
    "SWPC.planetary_k_1m",
    request_kp_1m,
    parse_kp_1m,
    licence=LICENCE,
    hosts=NOAA,
    fresh_s=120,
    keep_s=43200,
    timeout_s=8,
    newest=lambda reading: reading.time,
    newest_max_s=1800,
)

SOLAR_WIND = Source(
    "SWPC.solar_wind_1m",
    request_wind,
    parse_wind,
    licence=LICENCE,
    hosts=NOAA,
    fresh_s=120,
    keep_s=43200,
    timeout_s=10,
    max_bytes=8 * MIB,
    newest=lambda wind: wind.time,
    newest_max_s=3600,
)

PROPAGATED_WIND = Source(
    "SWPC.propagated_solar_wind",
    request_propagated_wind,
    parse_wind,
    licence=LICENCE,
    hosts=NOAA,
    fresh_s=120,
    keep_s=43200,
    timeout_s=8,
    newest=lambda wind: wind.time,
    newest_max_s=3600,
)

XRAY_FLUX = Source(
    "SWPC.goes_xray_1d",
    request_xray,
    parse_xray,
    licence=LICENCE,
    hosts=NOAA,
    fresh_s=120,
    keep_s=43200,
    timeout_s=10,
    newest=lambda peak: peak.newest,
    newest_max_s=1800,
    probe="primary",
)

ALERTS = Source(
    "SWPC.alerts",
    request_alerts,
    parse_alerts,
    licence=LICENCE,
    hosts=NOAA,
    fresh_s=120,
    keep_s=43200,
    timeout_s=8,
    newest=lambda bulletins: bulletins[0].issued_at,
    untrusted=True,
)
