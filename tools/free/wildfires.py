"""GET /api/wildfires."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple

from anyio import gather, to_thread
from pydantic import Field

from tools.shared.fires import distinct, recent
from tools.shared.states import state_of
from tools.sources.firms import FILES, FIRES_AREA, MAINLAND, REGIONS, Confidence, Detection, FireFile
from tools.sources.nifc import INCIDENTS, Incident
from toolserver import (
    CardValue,
    Fallback,
    FallbackReader,
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

SHOWN, SHOWN_INCIDENTS = 25, 10


class Fire(Payload):
    lat: float
    lon: float
    frp_mw: float = Field(description="Fire radiative power")
    confidence: Confidence
    detected_at: Timestamp
    satellite: str
    daynight: Literal["D", "N"] | None
    approx_state: str | None = Field(description="U.S. state, by boxes", examples=["CA"])


class FireIncident(Payload):
    name: str
    state: str | None
    acres: float | None
    contained_percent: float | None
    discovered_at: Timestamp | None


class Wildfires(Payload):
    window_hours: Literal[24]
    total_detections: int = Field(ge=0)
    by_satellite: dict[str, int] = Field(description="Satellites that could be read")
    top: list[Fire] = Field(max_length=SHOWN, description="Most radiative power first")
    incidents: list[FireIncident] | None = Field(max_length=SHOWN_INCIDENTS, description="Largest first")


class SeenFires(NamedTuple):
    """Detections, their satellites, and the files that could not be read, each with its reason's word."""

    detections: tuple[Detection, ...]
    satellites: tuple[str, ...]
    missing: Mapping[FireFile, str] = MappingProxyType({})


@tool(
    path="/api/wildfires",
    title="Wildfires",
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
