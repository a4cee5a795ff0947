"""GET /api/climate/earthquakes."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, NamedTuple

from pydantic import Field

from tools.parsing.earthquakes import Quake, QuakeList
from tools.parsing.fields import clean_or_none
from tools.parsing.token_count import estimate_tokens
from tools.shared.quakes import FLOOR, LEAST_A_DAY, is_significant, living_day
from tools.sources.emsc import QUAKES_QUERY, EmscQuery
from tools.sources.usgs import QUAKES, Magnitude, Period, QuakeQuery
from toolserver import (
    Cursor,
    Fallback,
    Payload,
    Picture,
    SourceUnproved,
    Timestamp,
    ToolContext,
    TopLevel,
    lacking,
    tool,
    up_to,
    via,
)

TTL_S: dict[Period, float] = {"hour": 60, "day": 120, "week": 300, "month": 900}
HOURS: dict[Period, int] = {"hour": 1, "day": 24, "week": 7 * 24, "month": 30 * 24}
WIDER: dict[QuakeQuery, QuakeQuery] = {
    QuakeQuery("significant", "hour"): QuakeQuery("2.5", "day"),
    QuakeQuery("4.5", "hour"): QuakeQuery("2.5", "day"),
    QuakeQuery("2.5", "hour"): QuakeQuery("2.5", "day"),
    QuakeQuery("1.0", "hour"): QuakeQuery("1.0", "day"),
    QuakeQuery("all", "hour"): QuakeQuery("all", "day"),
    QuakeQuery("significant", "day"): QuakeQuery("2.5", "day"),
    QuakeQuery("4.5", "day"): QuakeQuery("2.5", "day"),
    QuakeQuery("significant", "week"): QuakeQuery("4.5", "week"),
    QuakeQuery("significant", "month"): QuakeQuery("4.5", "month"),
}
"""Feeds that may be empty, and the feed that is not, of which they are cut."""
FLOORS: dict[Magnitude, float] = {"significant": 6.0, "4.5": 4.5, "2.5": 2.5, "1.0": 1.0, "all": 0.0}
EMSC_MOST = 1000
SHOWN, MOST = 60, 500
ROWS_TOKENS, ROW_TOKENS = 19_000, 86  # of all rows of an answer, and of one without its id, place and address
SURE = 100  # rows fit, whatever their texts
LENIENT = timedelta(days=3)  # a cached list may be a day old, and a month has 31


class CatalogueEvent(Payload):
    id: str = Field(description="The network's id of the event")
    magnitude: float | None = Field(description="Magnitude on the network's preferred scale; null: not published yet")
    place: str = Field(description="Place, as the network names it")
    time: Timestamp = Field(description="Origin time")
    depth_km: float | None = Field(description="Depth of the focus, kilometres; null: not published")
    lat: float | None = Field(description="Degrees north; null: not published")
    lon: float | None = Field(description="Degrees east; null: not published")
    type: str = Field(
        description="Kind of event in the network's words, such as earthquake or quarry blast", examples=["earthquake"]
    )
    tsunami: bool | None = Field(
        description="USGS's flag for large events in oceanic regions, no warning of a tsunami; null: not given (EMSC)"
    )
    url: str | None = Field(description="The network's page of the event; null: none")
    magnitude_type: str | None = Field(description="Scale of the magnitude, such as mww or ml; null: not published")
    status: str | None = Field(description="automatic or reviewed by a seismologist; null: not published")


class CatalogueFilters(Payload):
    magnitude: Magnitude = Field(description="Smallest magnitude listed, or significant")
    period: Period = Field(description="Time listed: the past hour, day, week or month")


class CatalogueEvents(TopLevel):
    data: list[CatalogueEvent] = Field(max_length=MOST, description="Newest first")
    count: int = Field(ge=0, description="All matching events; the list may be cut")
    next_cursor: str | None = Field(description="Give it as `cursor` to read on; null: the list ends here")
    filters: CatalogueFilters = Field(description="What was asked for, as understood")


class QuakeFeed(NamedTuple):
    """A list, and whether it comes from EMSC."""

    quakes: tuple[Quake, ...]
    from_emsc: bool = False


@tool(
    path="/api/climate/earthquakes",
    title="Earthquake catalogue",
    search_hint="quakes above magnitude past week month history filter search show",
    ttl_s=lambda arguments: TTL_S[arguments.period],
    longest_chars=100_000,
    sources=(*QUAKES.values(), QUAKES_QUERY),
    distinct=(("magnitude", "period"), 12, 600),
    pictures=(Picture("map", "Earthquakes", rows="data", values=("magnitude",), label="place", time="time", unit="M"),),
)
async def climate_earthquakes(
    ctx: ToolContext,
    magnitude: Annotated[Magnitude, Field(description="Smallest magnitude; significant: as judged by USGS")] = "2.5",
    period: Annotated[Period, Field(description="The past hour, day, week or month")] = "day",
    limit: Annotated[int, up_to(MOST)] = SHOWN,
    cursor: Cursor | None = None,
) -> CatalogueEvents:
    """Earthquakes and blasts worldwide by smallest magnitude and period, from the past hour to the past month, newest
    first. Use it for any magnitude or period other than "2.5 and above today", which earthquakes answers.

    Shape: 60 events are listed unless `limit` says otherwise; `count` counts all, several thousand in a month, and
    `next_cursor` leads to the next ones. However large `limit` is, an answer ends below 20,000 tokens. Quarry
    blasts and events without a magnitude are listed too; see `type`.
    Source: USGS, refreshed every 1 to 15 minutes by period; EMSC when USGS is down: at most 1,000 events, no tsunami
    flag, and magnitude 6 and above in place of `significant`.
    """
    catalogue = await ctx.first("data", *_fallbacks(QuakeQuery(magnitude, period), ctx.now))
    if catalogue.from_emsc:
        _warn(ctx, magnitude, len(catalogue.quakes))
    newest_first = sorted(catalogue.quakes, key=lambda q: q.time, reverse=True)
    page = ctx.page_from(newest_first, limit, cursor, lambda quake: quake.id, count_fitting=count_fitting)
    return CatalogueEvents(
        data=[_event(quake) for quake in page.items],
        count=page.total,
        next_cursor=page.next_cursor,
        filters=CatalogueFilters(magnitude=magnitude, period=period),
    )


def count_fitting(quakes: Sequence[Quake]) -> int:
    """Return how many of these events fit into an answer of less than 20,000 tokens."""
    tokens = ROWS_TOKENS
    for count, quake in enumerate(quakes):
        if count >= SURE and tokens < 0:
            return count
        tokens -= ROW_TOKENS + sum(estimate_tokens(text) for text in (quake.id, quake.place, quake.url or ""))
    return len(quakes)


def _fallbacks(query: QuakeQuery, now: datetime) -> tuple[Fallback[QuakeFeed], ...]:
    """Return USGS's feed and EMSC's catalogue; a list that may be empty is cut from one that never is."""
    wide = WIDER.get(query, query)

    def of_usgs(listed: QuakeList) -> QuakeFeed:
        return QuakeFeed(_cut(check_window(listed, wide, now), query, listed.generated or now))

    def of_emsc(listed: QuakeList) -> QuakeFeed:
        alive = check_window(living_day(listed, now) if wide.period == "day" else listed, wide, now)
        return QuakeFeed(_cut(alive, query, now), from_emsc=True)

    minute = now.replace(second=0, microsecond=0)
    floor = FLOOR if wide.period == "day" else FLOORS[wide.magnitude]
    most = EmscQuery._field_defaults["limit"] if wide.period == "day" else EMSC_MOST
    other = EmscQuery(floor, HOURS[wide.period], minute, most)
    first = via(QUAKES[wide.period], wide, of_usgs)
    return first, lacking(via(QUAKES_QUERY, other, of_emsc), "status", "tsunami")


def check_window(listed: QuakeList, wide: QuakeQuery, now: datetime) -> tuple[Quake, ...]:
    """Return the events of a feed that is never empty.

    Raises:
        ValueError: an event is far older than requested, so the answer is for another request.
        SourceUnproved: there are too few events.
    """
    since = now - timedelta(hours=HOURS[wide.period]) - LENIENT
    if any(quake.time < since for quake in listed.quakes):
        raise ValueError("events older than requested")
    if len(listed.quakes) < LEAST_A_DAY and wide.magnitude != "4.5":
        raise SourceUnproved(f"{len(listed.quakes)} events in a {wide.period}")
    return listed.quakes


def _cut(quakes: tuple[Quake, ...], query: QuakeQuery, now: datetime) -> tuple[Quake, ...]:
    """Return the requested events of a list that may be wider; a period ends `now`, when the list was made."""
    if query not in WIDER:
        return quakes
    narrower = WIDER[query].period != query.period
    since = now - timedelta(hours=HOURS[query.period])
    return tuple(q for q in quakes if (q.time > since or not narrower) and _is_of(q, query.magnitude))


def _is_of(quake: Quake, magnitude: Magnitude) -> bool:
    """Return True if an event belongs to the feed: by USGS's significance where it has one, by magnitude otherwise."""
    if magnitude == "significant" and quake.significance is not None:
        return is_significant(quake)
    if magnitude in ("1.0", "all"):
        return True
    return quake.magnitude is not None and quake.magnitude >= FLOORS[magnitude]


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
