"""GET /api/wildfires.

The fire detections of several satellites become one list: the past day's, each fire once, strongest first. The U.S.
state of a point is found roughly, by boxes that overlap at the borders.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from math import floor
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple

from anyio import gather, to_thread
from pydantic import Field

from tools.parsing.places import distance_km
from tools.sources.firms import FILES, FIRES_AREA, MAINLAND, REGIONS, Confidence, Detection, FireFile
from tools.sources.nifc import INCIDENTS, Incident
from toolserver import (
    CardValue,
    Definition,
    Fallback,
    FallbackReader,
    Meaning,
    Payload,
    Picture,
    SourceError,
    SourceFrozen,
    Timestamp,
    ToolContext,
    tool,
    up_to,
    via,
)

WINDOW = timedelta(hours=24)
SAME_KM, SAME_TIME = 1.0, timedelta(hours=3)
CELL_LAT, CELL_LON = 0.01, 0.05  # degrees, each more than that distance, as far north as there is land


def recent(detections: Iterable[Detection], now: datetime) -> list[Detection]:
    """Return the detections of the past 24 hours."""
    return [fire for fire in detections if now - WINDOW <= fire.time]


def distinct(detections: Iterable[Detection]) -> list[Detection]:
    """Return detections, strongest first, without those that are near a stronger one of another satellite in place and
    time.
    """
    fires: list[Detection] = []
    by_cell: defaultdict[tuple[int, int], list[Detection]] = defaultdict(list)
    for fire in sorted(detections, key=lambda fire: (-fire.frp_mw, fire.time, fire.lat, fire.lon)):
        row, column = floor(fire.lat / CELL_LAT), floor(fire.lon / CELL_LON)
        near = (seen for r in (-1, 0, 1) for c in (-1, 0, 1) for seen in by_cell.get((row + r, column + c), ()))
        if not any(_same(fire, seen) for seen in near):
            fires.append(fire)
            by_cell[row, column].append(fire)
    return fires


def _same(fire: Detection, seen: Detection) -> bool:
    return (
        fire.satellite != seen.satellite
        and abs(fire.time - seen.time) <= SAME_TIME
        and distance_km(fire.lat, fire.lon, seen.lat, seen.lon) <= SAME_KM
    )


class Box(NamedTuple):
    """The box around a state, in degrees."""

    state: str
    south: float
    north: float
    west: float
    east: float

    def holds(self, lat: float, lon: float) -> bool:
        return self.south <= lat <= self.north and self.west <= lon <= self.east

    def off_centre(self, lat: float, lon: float) -> float:
        """Return 0 in the middle of the box, 1 at its edge."""
        height, width = self.north - self.south, self.east - self.west
        return max(abs(2 * lat - self.south - self.north) / height, abs(2 * lon - self.west - self.east) / width)


BOXES = (
    Box("AL", 30.2, 35, -88.5, -84.9),
    Box("AK", 51.2, 71.5, -179.9, -129.9),
    Box("AZ", 31.3, 37, -114.8, -109),
    Box("AR", 33, 36.5, -94.6, -89.6),
    Box("CA", 32.5, 42, -124.5, -114.1),
    Box("CO", 37, 41, -109.1, -102),
    Box("CT", 40.9, 42.1, -73.7, -71.8),
    Box("DE", 38.4, 39.9, -75.8, -75),
    Box("DC", 38.8, 39, -77.1, -76.9),
    Box("FL", 24.4, 31, -87.6, -80),
    Box("GA", 30.4, 35, -85.6, -80.8),
    Box("HI", 18.9, 22.3, -160.3, -154.8),
    Box("ID", 42, 49, -117.2, -111),
    Box("IL", 37, 42.5, -91.5, -87),
    Box("IN", 37.8, 41.8, -88.1, -84.8),
    Box("IA", 40.4, 43.5, -96.6, -90.1),
    Box("KS", 37, 40, -102.1, -94.6),
    Box("KY", 36.5, 39.1, -89.6, -82),
    Box("LA", 28.9, 33, -94, -88.8),
    Box("ME", 43, 47.5, -71.1, -66.9),
    Box("MD", 37.9, 39.7, -79.5, -75),
    Box("MA", 41.2, 42.9, -73.5, -69.9),
    Box("MI", 41.7, 48.3, -90.4, -82.1),
    Box("MN", 43.5, 49.4, -97.2, -89.5),
    Box("MS", 30.2, 35, -91.7, -88.1),
    Box("MO", 36, 40.6, -95.8, -89.1),
    Box("MT", 44.4, 49, -116.1, -104),
    Box("NE", 40, 43, -104.1, -95.3),
    Box("NV", 35, 42, -120, -114),
    Box("NH", 42.7, 45.3, -72.6, -70.6),
    Box("NJ", 38.9, 41.4, -75.6, -73.9),
    Box("NM", 31.3, 37, -109.1, -103),
    Box("NY", 40.5, 45, -79.8, -71.9),
    Box("NC", 33.8, 36.6, -84.3, -75.5),
    Box("ND", 45.9, 49, -104.1, -96.6),
    Box("OH", 38.4, 42, -84.8, -80.5),
    Box("OK", 33.6, 37, -103, -94.4),
    Box("OR", 42, 46.3, -124.6, -116.5),
    Box("PA", 39.7, 42.3, -80.5, -74.7),
    Box("RI", 41.1, 42, -71.9, -71.1),
    Box("SC", 32, 35.2, -83.4, -78.5),
    Box("SD", 42.5, 45.9, -104.1, -96.4),
    Box("TN", 35, 36.7, -90.3, -81.6),
    Box("TX", 25.8, 36.5, -106.6, -93.5),
    Box("UT", 37, 42, -114.1, -109),
    Box("VT", 42.7, 45, -73.4, -71.5),
    Box("VA", 36.5, 39.5, -83.7, -75.2),
    Box("WA", 45.5, 49, -124.8, -116.9),
    Box("WV", 37.2, 40.6, -82.6, -77.7),
    Box("WI", 42.5, 47.1, -92.9, -86.8),
    Box("WY", 41, 45, -111.1, -104.1),
)


def state_of(lat: float, lon: float) -> str | None:
    """Return the state in whose box the point is nearest to the middle; None outside all boxes."""
    boxes = [box for box in BOXES if box.holds(lat, lon)]
    return min(boxes, key=lambda box: box.off_centre(lat, lon)).state if boxes else None


SHOWN, SHOWN_INCIDENTS = 25, 10


class Fire(Payload):
    lat: float = Field(description="Degrees north of the pixel")
    lon: float = Field(description="Degrees east of the pixel")
    frp_mw: float = Field(description="Fire radiative power of the pixel, megawatts")
    confidence: Confidence = Field(description="NASA's class of confidence in the detection")
    detected_at: Timestamp = Field(description="When the satellite saw it")
    satellite: str = Field(description="Satellite that saw it")
    daynight: Literal["D", "N"] | None = Field(description="D: by day; N: by night; null: not given")
    approx_state: str | None = Field(
        description="U.S. state, by boxes that overlap; null: outside all of them", examples=["CA"]
    )


class FireIncident(Payload):
    name: str = Field(description="Name of the fire")
    state: str | None = Field(description="State where it began; null: not reported")
    acres: float | None = Field(description="Acres burned, as reported; null: not reported")
    contained_percent: float | None = Field(
        description="Part of the edge that is contained, percent; null: not reported"
    )
    discovered_at: Timestamp | None = Field(description="When it was discovered; null: not reported")


class Wildfires(Payload):
    window_hours: Literal[24] = Field(description="Hours that the detections are from")
    total_detections: int = Field(ge=0, description="Distinct hot spots in the window; `top` has the strongest")
    by_satellite: dict[str, int] = Field(description="Hot spots by satellite, of those that could be read")
    top: list[Fire] = Field(max_length=SHOWN, description="Strongest first, by radiative power")
    incidents: list[FireIncident] | None = Field(
        max_length=SHOWN_INCIDENTS,
        description="Reported wildfires, largest first; null: the agencies' list could not be read",
    )


class SeenFires(NamedTuple):
    """Detections, their satellites, and the files that could not be read, each with its reason's word."""

    detections: tuple[Detection, ...]
    satellites: tuple[str, ...]
    missing: Mapping[FireFile, str] = MappingProxyType({})


@tool(
    path="/api/wildfires",
    title="Wildfires",
    search_hint="forest fire wildfire size how big burning California acres contained is it",
    ttl_s=600,
    deadline_s=25,  # six files, two at a time
    sources=(FIRES_AREA, *REGIONS.values(), INCIDENTS),
    headline=CardValue("total_detections", "fires", "seen from space in {window_hours} h"),
    pictures=(
        Picture(
            "map",
            "The strongest fires",
            rows="top",
            values=("frp_mw",),
            label="approx_state",
            time="detected_at",
            unit="MW",
            mark="triangle",
            legend="Fires",
        ),
        Picture("bars", "Detections by satellite", rows="by_satellite"),
    ),
)
async def wildfires(ctx: ToolContext, limit: Annotated[int, up_to(SHOWN)] = SHOWN) -> Wildfires:
    """Fires burning in the United States in the past 24 hours as satellites see them, strongest first, and the largest
    wildfire incidents with acres and containment. For disasters worldwide use disaster_alerts.

    Shape: `top` holds 25 of `total_detections`. What two satellites saw within a kilometre and three hours counts once.
    `by_satellite` leaves out satellites whose files are missing, which a warning names; `incidents` is null when the
    agencies' list could not be read. A detection is a hot spot, not always a wildfire.
    Source: NASA FIRMS (VIIRS), refreshed every 10 minutes, some hours behind the satellites; incidents by NIFC.
    """
    seen, incidents = await gather(ctx.attempt("data", _area(ctx.now), _files), ctx.section("data.incidents", REPORTED))
    if isinstance(seen, SourceError):
        raise seen
    for file, reason in seen.missing.items():
        sentence = f"The file of {file.satellite} for {file.region.replace('_', ' ')} could not be read ({reason})."
        ctx.warn("data.by_satellite", "partial", sentence, REGIONS[file.region].name)
    fires = await to_thread.run_sync(distinct, recent(seen.detections, ctx.now))
    counts = Counter(fire.satellite for fire in fires)
    return Wildfires(
        window_hours=24,
        total_detections=len(fires),
        by_satellite={name: counts[name] for name in sorted({*seen.satellites, *counts})},
        top=[_fire(fire) for fire in ctx.page(fires[:SHOWN], limit, "data.top")],
        incidents=None if incidents is None else [_incident(i) for i in _largest(incidents)],
    )


def _area(now: datetime) -> Fallback[SeenFires]:
    """Return the fallback for all of North America from one satellite: some fire burns there every day."""

    def seen(detections: tuple[Detection, ...]) -> SeenFires:
        if not recent(detections, now):
            raise SourceFrozen("no fire of the past 24 hours")
        return SeenFires(detections, ("NOAA-20",))

    return via(FIRES_AREA, None, seen)


async def _files(reading: FallbackReader) -> SeenFires:
    """Read the regional files of every satellite. A satellite counts if its mainland file is read; one must count."""
    wanted = [FireFile(satellite, region) for region in REGIONS for satellite in FILES]
    parts = dict(zip(wanted, await gather(*(_file(reading, file) for file in wanted)), strict=True))
    missing = {file: part for file, part in parts.items() if isinstance(part, SourceError)}
    satellites = [satellite for satellite in FILES if FireFile(satellite, MAINLAND) not in missing]
    if not satellites:
        raise missing[wanted[0]]
    read = (part for file, part in parts.items() if file.satellite in satellites and not isinstance(part, SourceError))
    return SeenFires(
        tuple(fire for part in read for fire in part),
        tuple(satellites),
        {file: error.word for file, error in missing.items()},
    )


async def _file(reading: FallbackReader, file: FireFile) -> tuple[Detection, ...] | SourceError:
    try:
        return await reading.read(REGIONS[file.region], file)
    except SourceError as error:
        return error


REPORTED: Fallback[tuple[Incident, ...]] = via(INCIDENTS)


def _largest(incidents: tuple[Incident, ...]) -> list[Incident]:
    return sorted(incidents, key=lambda incident: incident.acres or 0, reverse=True)[:SHOWN_INCIDENTS]


def _fire(fire: Detection) -> Fire:
    return Fire(
        lat=round(fire.lat, 4),
        lon=round(fire.lon, 4),
        frp_mw=round(fire.frp_mw, 2),
        confidence=fire.confidence,
        detected_at=fire.time,
        satellite=fire.satellite,
        daynight=None if fire.by_day is None else "D" if fire.by_day else "N",
        approx_state=state_of(fire.lat, fire.lon),
    )


def _incident(incident: Incident) -> FireIncident:
    return FireIncident(
        name=incident.name,
        state=incident.state,
        acres=_rounded(incident.acres),
        contained_percent=_rounded(incident.contained_percent),
        discovered_at=incident.discovered_at,
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


FIRE_POWER = Meaning(
    "wildfires.frp_mw",
    "Radiative power of one pixel, which depends on the satellite and its angle: a rank of detections, not of fires",
    definition=Definition(publisher="NASA"),
)
