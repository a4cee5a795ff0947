"""GET /api/climate/earthquakes."""

from datetime import datetime, timedelta
from typing import Annotated, NamedTuple

from pydantic import Field

from tools.shared.quakes import LEAST_A_DAY
from tools.shared.text import clean_or_none
from tools.sources.emsc import QUAKES_QUERY, CatalogueQuery
from tools.sources.usgs import QUAKES, Magnitude, Period, Quake, QuakeList, QuakeQuery
from toolserver.context import Leg, ToolContext, via
from toolserver.payloads import Payload, Timestamp, TopLevel
from toolserver.registry import tool

TTL_S: dict[Period, float] = {"hour": 60, "day": 120, "week": 300, "month": 900}
HOURS: dict[Period, int] = {"hour": 1, "day": 24, "week": 7 * 24, "month": 30 * 24}
FLOORS: dict[Magnitude, float] = {"significant": 6.0, "4.5": 4.5, "2.5": 2.5, "1.0": 1.0, "all": 0.0}
EMSC_MOST = 1000
LENIENT = timedelta(days=3)  # a kept list may be a day old, and a month has 31
ROUNDING = 0.11  # feeds choose by magnitudes before they are rounded


class CatalogueEvent(Payload):
    id: str
    magnitude: float | None = Field(description="Null until it is published")
    place: str
    time: Timestamp = Field(description="Origin time")
    depth_km: float | None
    lat: float | None
    lon: float | None
    type: str = Field(description="earthquake, quarry blast, …", examples=["earthquake"])
    tsunami: bool | None = Field(description="Flagged as possibly causing one; null: not known")
    url: str | None
    magnitude_type: str | None
    status: str | None = Field(description="automatic or reviewed")


class CatalogueFilters(Payload):
    magnitude: Magnitude
    period: Period


class CatalogueEvents(TopLevel):
    data: list[CatalogueEvent] = Field(description="Newest first")
    count: int = Field(ge=0)
    filters: CatalogueFilters


class Found(NamedTuple):
    """A list, and whether EMSC gave it."""

    quakes: tuple[Quake, ...]
    from_emsc: bool = False


@tool(
    path="/api/climate/earthquakes",
    title="Earthquake catalogue",
    ttl_s=lambda arguments: TTL_S[arguments.period],
    sources=(*QUAKES.values(), QUAKES_QUERY),
)
async def climate_earthquakes(
    ctx: ToolContext,
    magnitude: Annotated[Magnitude, Field(description="Smallest magnitude; significant: as judged by USGS")] = "2.5",
    period: Annotated[Period, Field(description="The past hour, day, week or month")] = "day",
) -> CatalogueEvents:
    """Earthquakes and blasts worldwide by smallest magnitude and period, from the past hour to the past month, newest
    first. Use it for any magnitude or period other than "2.5 and above today", which earthquakes answers.

    Shape: nothing is cut: all events of a month are several thousand. Quarry blasts and events without a magnitude are
    listed too; `type` tells them apart.
    Source: USGS, refreshed every 1 to 15 minutes by period; EMSC when USGS is down: at most 1,000 events, no tsunami
    flag, and magnitude 6 and above in place of `significant`.
    """
    found = await ctx.first("data", *_legs(QuakeQuery(magnitude, period), ctx.now))
    if found.from_emsc:
        _warn(ctx, magnitude, len(found.quakes))
    events = [_event(quake) for quake in sorted(found.quakes, key=lambda q: q.time, reverse=True)]
    return CatalogueEvents(data=events, count=len(events), filters=CatalogueFilters(magnitude=magnitude, period=period))


def _legs(query: QuakeQuery, now: datetime) -> tuple[Leg[Found], ...]:
    """The feed of USGS, or the catalogue of EMSC."""

    def of_usgs(listed: QuakeList) -> Found:
        return Found(_plausible(listed.quakes, query, now))

    def of_emsc(listed: QuakeList) -> Found:
        return Found(_plausible(listed.quakes, query, now), from_emsc=True)

    minute = now.replace(second=0, microsecond=0)
    other = CatalogueQuery(FLOORS[query.magnitude], HOURS[query.period], minute, EMSC_MOST)
    return via(QUAKES[query.period], query, of_usgs), via(QUAKES_QUERY, other, of_emsc)


def _plausible(quakes: tuple[Quake, ...], query: QuakeQuery, now: datetime) -> tuple[Quake, ...]:
    """The events, unless one of them is far older or smaller than was asked for: then something else was answered."""
    since = now - timedelta(hours=HOURS[query.period]) - LENIENT
    floor = -10.0 if query.magnitude in ("significant", "all") else FLOORS[query.magnitude] - ROUNDING
    if any(q.time < since or (q.magnitude is not None and q.magnitude < floor) for q in quakes):
        raise ValueError("events that were not asked for")
    if query.magnitude in ("2.5", "1.0", "all") and query.period != "hour" and len(quakes) < LEAST_A_DAY:
        raise ValueError(f"{len(quakes)} events in a {query.period}")
    return quakes


def _warn(ctx: ToolContext, magnitude: Magnitude, count: int) -> None:
    if magnitude == "significant":
        message = "EMSC does not judge significance: the list holds every event of magnitude 6.0 and above."
        ctx.warn("data", "degraded_fallback", message, QUAKES_QUERY.name)
    if count >= EMSC_MOST:
        ctx.warn("data", "truncated", f"EMSC lists the newest {EMSC_MOST} events only.", QUAKES_QUERY.name)


def _event(quake: Quake) -> CatalogueEvent:
    return CatalogueEvent(
        id=quake.id,
        magnitude=_rounded(quake.magnitude, 1),
        place=quake.place,
        time=quake.time,
        depth_km=_rounded(quake.depth_km, 1),
        lat=_rounded(quake.lat, 4),
        lon=_rounded(quake.lon, 4),
        type=quake.kind,
        tsunami=quake.tsunami,
        url=quake.url,
        magnitude_type=clean_or_none(quake.magnitude_type, 20),
        status=clean_or_none(quake.status, 20),
    )


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits) + 0.0
