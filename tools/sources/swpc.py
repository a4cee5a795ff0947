"""Read the NOAA Space Weather Prediction Center: Kp, solar wind, X-rays, alerts (JSON, no key, public domain).

https://www.swpc.noaa.gov/content/data-access
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, TypeVar

from tools.parsing.fields import TITLE, clean, from_iso, number, number_or_none, optional, within
from tools.parsing.kp_index import KpReading
from tools.sources.hosts import HOUR, MINUTE, NOAA, WEEK
from toolserver import MIB, Get, Keys, Licence, Source, SourceChanged, SourceEmpty, read_rows

R = TypeVar("R")

SERVICES = "https://services.swpc.noaa.gov"
LICENCE = Licence("yes", "NOAA Space Weather Prediction Center", "https://www.weather.gov/disclaimer")
LONG_BAND = "0.1-0.8nm"  # flares are classed by this band; the list has another one as well
LEAST_KP, LEAST_XRAY = 8, 60
WINDOW = timedelta(hours=3)  # of Kp, from 00, 03, … UTC
FASTEST, SLOWEST = 2500, 150  # km/s

Satellite = Literal["primary", "secondary"]
Kind = Literal["alert", "warning", "watch", "summary"]


class KpEstimate(NamedTuple):
    """The newest minute's estimate, and the last one of the three-hour window before. It begins each window at 0."""

    newest: KpReading
    before: KpReading | None


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
    """One message. Its serial number counts within its code; `ends` is the serial number that it cancels or extends."""

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


def parse_kp(body: Any, query: None) -> tuple[KpReading, ...]:
    """Return every period with a value that some station measured, oldest first."""
    return tuple(sorted(_read(body, _kp)))


def _kp(row: dict[str, Any]) -> KpReading | None:
    if row["kp"] is None or number_or_none(row.get("station_count")) == 0:
        return None
    return KpReading(from_iso(row["time_tag"]), within(number(row["kp"]), 0, 9))


def parse_kp_1m(body: Any, query: None) -> KpEstimate:
    """Return the newest estimate, and the last of the window before if the body goes back so far."""
    minutes = _read(body, _estimate)
    newest = max(minutes)
    start = newest.time.replace(hour=newest.time.hour // 3 * 3, minute=0, second=0, microsecond=0)
    before = (minute for minute in minutes if start - WINDOW <= minute.time < start)
    return KpEstimate(newest, max(before, default=None))


def _estimate(row: dict[str, Any]) -> KpReading | None:
    if row["estimated_kp"] is None:
        return None
    estimate = within(number(row["estimated_kp"]), 0, 9)
    written = str(row.get("kp") or "")[:1]  # the same value as a digit with a suffix: 1P, 2Z, 3M
    if written.isdigit() and abs(int(written) - estimate) > 0.5:
        raise SourceChanged(f"estimated_kp is {estimate:g}, kp is {written}")
    return KpReading(from_iso(row["time_tag"]), estimate)


def parse_wind(body: Any, query: None) -> SolarWind:
    """Return the newest row with both numbers, of the active spacecraft where several are listed."""
    winds = _read(body, _wind)
    if not winds:
        raise SourceEmpty("no row with speed and density")
    return max(winds)


def _wind(row: dict[str, Any]) -> SolarWind | None:
    speed = row["proton_speed"] if "proton_speed" in row else row["speed"]
    density = row["proton_density"] if "proton_density" in row else row["density"]
    if not row.get("active", True) or number_or_none(speed) is None or number_or_none(density) is None:
        return None
    return SolarWind(
        from_iso(row["time_tag"]), within(number(speed), SLOWEST, FASTEST), within(number(density), 0, 1000)
    )


def request_xray(query: Satellite, keys: Keys) -> Get:
    return Get(f"{SERVICES}/json/goes/{query}/xrays-1-day.json")


def parse_xray(body: Any, query: Satellite) -> XrayPeak:
    """Return the peak of the long band. Minutes in eclipse have no flux."""
    minutes = _read(body, _minute)
    if len(minutes) < LEAST_XRAY:
        raise SourceEmpty(f"{len(minutes)} minutes")
    flux, time = max(minutes)
    return XrayPeak(flux, time, max(time for _, time in minutes))


def _minute(row: dict[str, Any]) -> tuple[float, datetime] | None:
    flux = number_or_none(row["flux"]) if row["energy"] == LONG_BAND else None
    return None if flux is None or not 0 < flux < 1 else (flux, from_iso(row["time_tag"]))


def parse_alerts(body: Any, query: None) -> tuple[Bulletin, ...]:
    """Return the messages of a month, cancellations included, newest first."""
    bulletins = _read(body, _bulletin)
    if body and not bulletins:
        raise SourceChanged("no message states its kind")
    return tuple(sorted(bulletins, key=lambda bulletin: bulletin.issued_at, reverse=True))


_HEADLINE = re.compile(r"^(?:(CANCEL|EXTENDED|CONTINUED) )?(ALERT|WARNING|WATCH|SUMMARY):(.*)$", re.MULTILINE)
_CODE = re.compile(r"^Space Weather Message Code: *(\w+)", re.MULTILINE)
_SERIAL = re.compile(r"^Serial Number: *(\d+)", re.MULTILINE)
_ENDS = re.compile(r"^(?:Cancel|Extension to) Serial Number: *(\d+)", re.MULTILINE)
_VALID_TO = re.compile(r"^(?:Now )?Valid (?:To|Until): *(\d{4} \w{3} \d{1,2} \d{4}) UTC", re.MULTILINE)
_KINDS: dict[str, Kind] = {"ALERT": "alert", "WARNING": "warning", "WATCH": "watch", "SUMMARY": "summary"}


def _bulletin(row: dict[str, Any]) -> Bulletin | None:
    """Return a message as a bulletin; None if no line states its kind."""
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
    match = pattern.search(text)
    return match[1] if match else None


def _number(digits: str | None) -> int | None:
    return int(digits) if digits and len(digits) < 10 else None


def _utc(text: str) -> datetime:
    return datetime.strptime(f"{text}+0000", "%Y %b %d %H%M%z")


def _read(body: Any, read: Callable[[dict[str, Any]], R | None]) -> tuple[R, ...]:
    """Return the results of `read` for each row by lower-case column name: the rows are
    objects, or lists under a header.
    """
    if not isinstance(body, list):
        raise SourceChanged("not a list")
    header = [str(name).lower() for name in body[0]] if body and isinstance(body[0], list) else None

    def named(row: Any) -> dict[str, Any]:
        return dict(zip(header, row, strict=True)) if header else {name.lower(): row[name] for name in row}

    return read_rows(body[1:] if header else body, lambda row: read(named(row)))


KP_INDEX = Source(
    "SWPC.planetary_k",
    Get(f"{SERVICES}/products/noaa-planetary-k-index.json"),
    parse_kp,
    licence=LICENCE,
    hosts=NOAA,
    fresh_s=300,
    keep_s=12 * HOUR,
    newest=lambda readings: readings[-1].time,
    newest_max_s=7 * HOUR,
    least=LEAST_KP,
)

KP_ESTIMATE = Source(
    "SWPC.planetary_k_1m",
    Get(f"{SERVICES}/json/planetary_k_index_1m.json"),
    parse_kp_1m,
    licence=LICENCE,
    hosts=NOAA,
    fresh_s=120,
    keep_s=12 * HOUR,
    newest=lambda estimate: estimate.newest.time,
    newest_max_s=30 * MINUTE,
)

SOLAR_WIND = Source(
    "SWPC.solar_wind_1m",
    Get(f"{SERVICES}/json/rtsw/rtsw_wind_1m.json"),
    parse_wind,
    licence=LICENCE,
    hosts=NOAA,
    fresh_s=120,
    keep_s=12 * HOUR,
    timeout_s=10,
    max_bytes=8 * MIB,
    newest=lambda wind: wind.time,
    newest_max_s=HOUR,
)

PROPAGATED_WIND = Source(
    "SWPC.propagated_solar_wind",
    Get(f"{SERVICES}/products/geospace/propagated-solar-wind-1-hour.json"),
    parse_wind,
    licence=LICENCE,
    hosts=NOAA,
    fresh_s=120,
    keep_s=12 * HOUR,
    newest=lambda wind: wind.time,
    newest_max_s=HOUR,
)

XRAY_FLUX = Source(
    "SWPC.goes_xray_1d",
    request_xray,
    parse_xray,
    licence=LICENCE,
    hosts=NOAA,
    fresh_s=120,
    keep_s=12 * HOUR,
    timeout_s=10,
    newest=lambda peak: peak.newest,
    newest_max_s=30 * MINUTE,
    probe="primary",
)

ALERTS = Source(
    "SWPC.alerts",
    Get(f"{SERVICES}/products/alerts.json"),
    parse_alerts,
    licence=LICENCE,
    hosts=NOAA,
    fresh_s=120,
    newest_max_s=3 * WEEK,
    keep_s=12 * HOUR,
    newest=lambda bulletins: bulletins[0].issued_at,
    untrusted=True,
)
