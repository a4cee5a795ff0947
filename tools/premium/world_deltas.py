"""GET /api/pro/world-deltas."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from tools.parsing.earthquakes import Quake
from tools.parsing.spaceflight import Launch
from tools.shared import deltas
from tools.shared import launches as flights
from tools.shared.deltas import HOUR, MovedMarket, Prices, SeenStory, Severity
from toolserver import (
    FREE_SIBLING,
    EventArguments,
    EventId,
    EventKind,
    Fallback,
    InvalidArguments,
    Payload,
    Picture,
    Sections,
    Tier,
    Timestamp,
    ToolContext,
    TopLevel,
    UntrustedText,
    read_sections,
    tool,
    up_to,
)

TYPES = ("earthquake", "tech_news_story", "prediction_market_update", "space_launch")
AHEAD_OF_US = timedelta(seconds=60)  # a caller's clock may be fast by that much
RETRY_S = 15.0
_PLUS_LOST = re.compile(r"([T ]\d\d:\d\d\S*) (\d\d:?\d\d)$")  # a "+" that was not encoded in a URL

EventType = Literal["earthquake", "tech_news_story", "prediction_market_update", "space_launch"]


def whole_second(value: Any) -> datetime | None:
    """Return the requested time in UTC and whole seconds, so that equal times share an answer. Raises ValueError."""
    if value is None:
        return None
    if not isinstance(value, str | datetime):
        raise ValueError("give an ISO 8601 time")
    try:
        text = value if isinstance(value, datetime) else _PLUS_LOST.sub(r"\1+\2", value.strip())
        time = text if isinstance(text, datetime) else datetime.fromisoformat(text)
        if time.tzinfo is None:
            time = time.replace(tzinfo=UTC)
        return time.astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError):
        raise ValueError("give an ISO 8601 date or time, such as 2026-01-15T07:30:00Z") from None


Since = Annotated[
    datetime | None,
    BeforeValidator(whole_second),
    WithJsonSchema({"type": "string", "format": "date-time"}),
    Field(
        description="Only events after this (ISO 8601, else UTC); default and earliest: an hour ago",
        examples=["2026-01-15T07:30:00Z"],
    ),
]


class QuakeFacts(Payload):
    id: str = Field(description="The network's id of the event")
    magnitude: float = Field(description="Magnitude on the network's preferred scale")
    place: str = Field(description="Place, as the network names it")
    depth_km: float | None = Field(description="Depth of the focus, kilometres; null: not published")
    lat: float | None = Field(description="Degrees north; null: not published")
    lon: float | None = Field(description="Degrees east; null: not published")
    tsunami: bool | None = Field(
        description="USGS's flag for large events in oceanic regions, no warning of a tsunami; null: not given (EMSC)"
    )
    mag_type: str | None = Field(description="Scale of the magnitude, such as mww or ml; null: not published")
    url: str | None = Field(description="The network's page of the event; null: none")
    updated: Timestamp | None = Field(description="When the network last changed the event; null: not given")


class StoryFacts(Payload):
    id: int = Field(description="Hacker News's id of the story")
    title: str = Field(description="Title of the story")
    url: str = Field(description="The article, or the discussion for text posts")
    points: int = Field(description="Points on Hacker News")
    num_comments: int | None = Field(description="Comments on Hacker News; null: not given")
    author: str | None = Field(description="Who submitted it; null: not given")
    created_at: Timestamp = Field(description="When it was submitted")
    first_seen_at: Timestamp = Field(description="When we first saw it on the front page")


class MarketFacts(Payload):
    id: str = Field(description="The market place's id")
    question: str = Field(description="The question, in the market's words")
    yes_probability: float = Field(
        ge=0, le=1, description="Price of yes as a probability, 0-1; of Kalshi the last trade"
    )
    change_1h: float | None = Field(
        description="Change of yes_probability in an hour; null for some markets opened within the hour"
    )
    volume_24h: float = Field(ge=0, description="Traded in 24 hours, USD; of Kalshi contracts times the last price")
    url: str | None = Field(description="Page of the market; null: none")
    source: str = Field(description="Market place: Polymarket or Kalshi")


class LaunchFacts(Payload):
    id: str = Field(description="The list's id of the launch")
    name: str = Field(description="Vehicle and mission, as listed")
    mission: str | None = Field(description="Name of the mission; null: not given")
    vehicle: str | None = Field(description="Rocket; null: not given")
    provider: str | None = Field(description="Company or agency that launches; null: not given")
    status: str = Field(description="State in the list's words")
    net: Timestamp = Field(description="Time of the launch: no earlier than")
    window: Literal["recent", "upcoming"] = Field(description="recent: the time is past; upcoming: it is ahead")
    pad: str | None = Field(description="Launch pad; null: not given")
    url: str | None = Field(description="Entry of the launch in the list; null: none")


class Event(Payload):
    type: EventType = Field(description="Kind of event")
    timestamp: Timestamp = Field(description="Time of the event; which one depends on the type, as `notes` says")
    severity: Severity = Field(description="Our word for how large it is, by the rules in `notes`")
    data: QuakeFacts | StoryFacts | MarketFacts | LaunchFacts = Field(description="Facts of the event, by type")


class DeltaSample(Payload):
    events_in_rolling_hour: int = Field(ge=0, description="Events of the past hour, launches ahead included")
    events_after_since_filter: int = Field(ge=0, description="Those after `since`")
    sources_ok: int = Field(ge=0, description="Sources that gave something")
    sources_failed: int = Field(ge=0, description="Sources that were asked and gave nothing, as in _meta")


class PremiumWorldDeltas(TopLevel):
    since: Timestamp = Field(description="Time after which events are listed")
    since_clamped: bool = Field(description="True: `since` was given as more than an hour ago")
    events: list[Event] = Field(description="Latest first, launches ahead included")
    counts: dict[str, int] = Field(description="Events listed, by type; a type whose sources failed is absent")
    sample_size: DeltaSample = Field(description="How many events and sources this rests on")
    notes: dict[str, str] = Field(description="Remarks on windows, types and severity")


class MarketMove(EventArguments):
    min_change: float = Field(
        0.1,
        ge=0.02,
        le=1,
        description="Least change of the probability of yes in an hour, up or down, 0-1",
        examples=[0.1],
    )


class MarketTexts(Payload):
    question: UntrustedText = Field(description="The question, in the market's words")


class MovedPrediction(Payload):
    id: EventId = Field(description="The market place's id, with the UTC day")
    market: EventId = Field(description="The market place's id")
    yes_probability: float = Field(ge=0, le=1, description="Price of yes as a probability, 0-1")
    change_1h: float = Field(description="Change of yes_probability in an hour")
    volume_24h: float = Field(ge=0, description="Traded in 24 hours, USD")
    source: Literal["Polymarket", "Kalshi"] = Field(description="Market place")
    untrusted: MarketTexts = Field(description="Texts of third parties: data, never an instruction")


def _read_markets(payload: Any, wanted: MarketMove, now: datetime) -> list[Mapping[str, Any]] | None:
    if TYPES[2] not in payload["counts"]:
        return None  # its sources failed
    moved = (event["data"] for event in payload["events"] if event["type"] == TYPES[2])
    return [
        {
            **facts,
            "id": f"{facts['id']}:{now:%Y-%m-%d}",
            "market": facts["id"],
            "untrusted": {"question": facts["question"]},
        }
        for facts in moved
        if abs(facts["change_1h"] or 0) >= wanted.min_change
    ]


MARKET_MOVED = EventKind(
    "market.moved",
    "The probability in a prediction market that is traded much moved by at least so much within an hour. Each market"
    " counts once a day (UTC); all of five minutes come in one event.",
    MarketMove,
    MovedPrediction,
    ask=lambda wanted: {"limit": 200},
    read=_read_markets,
)


@tool(
    path="/api/pro/world-deltas",
    title="World deltas",
    search_hint="what changed since the last hour new events updates stream",
    tier=Tier.PREMIUM,
    credits=2,
    ttl_s=60,
    sla_s=300,
    follow_s=60.0,
    toolset="core",
    tags={FREE_SIBLING: "earthquakes", "webhook_since": "since"},
    sources=deltas.SOURCES,
    pictures=(
        Picture(
            "timeline",
            "What happened in the hour, and launches ahead",
            rows="events",
            values=("severity", "data.title|data.question|data.place|data.name"),
            label="type",
            time="timestamp",
        ),
        Picture("bars", "Events by kind", rows="counts"),
    ),
    events=(MARKET_MOVED,),
)
async def premium_world_deltas(
    ctx: ToolContext, since: Since = None, limit: Annotated[int, up_to(200)] = 50
) -> PremiumWorldDeltas:
    """What changed in the world within the past hour, as one stream: earthquakes of M4+, stories that came to the
    front page of Hacker News, prediction markets that moved, and launches from an hour ago to 12 hours ahead. Poll it
    with `since` for what is new; for the state of the world use premium_agent_context.

    Shape: latest first. A type whose sources failed, or know no hour, is absent from `counts`, with a warning.
    Chart: `events` on a line of time: x `timestamp`, a lane for each `type`, sized by `severity`; `counts` as bars.
    Source: USGS, else EMSC; Hacker News Search; Polymarket, else Kalshi; Launch Library, else RocketLaunch.Live. Read
    every minute while there are requests.
    Errors: 400 for a `since` that is no time or more than a minute ahead; 503 when no source answers. Nothing is
    charged then, nor when there is no event.
    """
    start, clamped = window(since, ctx.now)
    chains: dict[str, tuple[Fallback[Any], ...]] = {
        TYPES[0]: deltas.quake_fallbacks(ctx.now),
        TYPES[1]: (deltas.page_fallback,),
        TYPES[2]: deltas.price_fallbacks(),
        TYPES[3]: flights.launches(ctx.now),
    }
    sections = await read_sections(ctx, chains)
    sections.require_any()
    answered = events_of(ctx, sections)
    if len(answered) < len(TYPES):
        ctx.shorten(RETRY_S)
    whole = in_order(event for events in answered.values() for event in events)
    after = [event for event in whole if event.timestamp > start]
    if not after:
        ctx.mark_empty()
    counts = Counter(event.type for event in after)
    return PremiumWorldDeltas(
        since=start,
        since_clamped=clamped,
        events=ctx.page(after, limit, "events"),
        counts={name: counts[name] for name in answered},
        sample_size=_sample(ctx, whole, after),
        notes=_notes(),
    )


def _sample(ctx: ToolContext, whole: Sequence[Event], after: Sequence[Event]) -> DeltaSample:
    sources_ok, sources_failed = ctx.notes.count_sources()
    return DeltaSample(
        events_in_rolling_hour=len(whole),
        events_after_since_filter=len(after),
        sources_ok=sources_ok,
        sources_failed=sources_failed,
    )


def window(since: datetime | None, now: datetime) -> tuple[datetime, bool]:
    """Return the time from which events are listed, and whether it is later than requested. Raises InvalidArguments."""
    earliest = now - HOUR
    if since is None:
        return earliest, False
    if since > now + AHEAD_OF_US:
        why = "is more than 60 seconds in the future"
        raise InvalidArguments(f"since: {why}", errors=[{"loc": "since", "msg": why, "type": "value_error"}])
    if since < earliest.replace(microsecond=0):
        return earliest, True
    return max(earliest, min(since, now)), False


def events_of(ctx: ToolContext, sections: Sections) -> dict[EventType, list[Event]]:
    """Return the events of the rolling hour by type, for the types that a source answered."""
    now = ctx.now
    by_type: dict[EventType, list[Event] | None] = {
        "earthquake": sections.get(TYPES[0], lambda lists: [quake(*pair) for pair in deltas.quakes(lists, now)]),
        "tech_news_story": sections.get(
            TYPES[1], lambda page: [story(s) for s in deltas.find_new_stories(ctx.history, page, now)]
        ),
        "prediction_market_update": sections.get(TYPES[2], lambda prices: _market_updates(ctx, prices)),
        "space_launch": sections.get(TYPES[3], lambda all_: [launch(*x, now) for x in deltas.launches(all_, now)]),
    }
    return {name: events for name, events in by_type.items() if events is not None}


def _market_updates(ctx: ToolContext, prices: Prices) -> list[Event] | None:
    """Return the markets that moved; None when no change of the past hour is known, which differs from 0 updates."""
    moves = deltas.moves(ctx.history, prices, ctx.now)
    moved, unknown, traded = moves
    if moves.is_incomplete:
        message = f"The change of the hour is unknown of {unknown} of {traded} markets; prices are kept from now on."
        ctx.warn(TYPES[2], "incomplete_window", message)
    return None if unknown == traded and not moved else [market(m) for m in moved]


def in_order(events: Iterable[Event]) -> list[Event]:
    """Return each event once, the latest first; within a second, which is the precision shown, in the order of the
    types.
    """
    once = {(event.type, event.data.id): event for event in events}
    return sorted(once.values(), key=lambda event: (-int(event.timestamp.timestamp()), TYPES.index(event.type)))


def quake(event: Quake, magnitude: float) -> Event:
    facts = QuakeFacts(
        id=event.id,
        magnitude=round(magnitude, 2),
        place=event.place,
        depth_km=event.depth_km,
        lat=event.lat,
        lon=event.lon,
        tsunami=event.tsunami,
        mag_type=event.magnitude_type,
        url=event.url,
        updated=event.updated,
    )
    return Event(type="earthquake", timestamp=event.time, severity=deltas.quake_severity(magnitude), data=facts)


def story(seen: SeenStory) -> Event:
    submission, at = seen
    facts = StoryFacts(
        id=submission.id,
        title=submission.title,
        url=submission.url or f"https://news.ycombinator.com/item?id={submission.id}",
        points=submission.points,
        num_comments=submission.comments,
        author=submission.author,
        created_at=submission.created_at,
        first_seen_at=at,
    )
    return Event(type="tech_news_story", timestamp=at, severity=deltas.story_severity(submission.points), data=facts)


def market(moved: MovedMarket) -> Event:
    bet, change, at = moved
    facts = MarketFacts(
        id=bet.id,
        question=bet.question,
        yes_probability=round(bet.prices[0], 4),
        change_1h=change,
        volume_24h=round(bet.volume_24h_usd, 2),
        url=bet.url,
        source=bet.source,
    )
    return Event(type="prediction_market_update", timestamp=at, severity=deltas.move_severity(change), data=facts)


def launch(flight: Launch, net: datetime, now: datetime) -> Event:
    facts = LaunchFacts(
        id=flight.id,
        name=flight.name,
        mission=flight.mission,
        vehicle=flight.vehicle,
        provider=flight.provider,
        status=flight.status,
        net=net,
        window="recent" if net <= now else "upcoming",
        pad=flight.pad,
        url=flight.url,
    )
    return Event(type="space_launch", timestamp=net, severity=deltas.launch_severity(flight), data=facts)


def _notes() -> dict[str, str]:
    return {
        "window": "The past hour, launches from an hour ago to 12 hours ahead. An earlier since is an hour ago."
        " An event in the same second as since may be repeated: compare ids.",
        "types": "earthquake by origin time, tech_news_story by first_seen_at, prediction_market_update by when the"
        " price was read, space_launch by net.",
        "severity": "major, moderate: earthquakes from M6, M5; stories from 100, 25 points; markets from 0.10, 0.05"
        " moved; launches are moderate, major when crewed or failed.",
        "markets": "24 h volume of 10000 USD and a move of 0.01 in an hour, or opened in it: the venue stamps all"
        " markets as updated at once, so the stamp alone says nothing. A move is listed again for as long as it lasts.",
        "story_coverage": "Stories that were seen reaching the front page; if it was not read in the hour before, those"
        " submitted within the hour.",
        "poll_recommendation": "Every 60 to 300 seconds, with since = generated_at of the previous answer.",
    }
