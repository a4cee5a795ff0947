"""Disasters of the past weeks: the ways to get them, and which events of two catalogues are the same."""

from datetime import datetime, timedelta

from tools.shared.geo import distance_km
from tools.sources.eonet import EVENTS, NaturalEvent
from tools.sources.gdacs import EVENT_LIST, GREEN_LIST, RSS, Disaster, EventQuery
from toolserver.context import Leg, Reading, via
from toolserver.errors import SourceEmpty

GDACS_SOURCES = (EVENT_LIST, GREEN_LIST, RSS)
EONET_LEG: Leg[tuple[NaturalEvent, ...]] = via(EVENTS)
NEAR_KM, NEAR_TIME = 200.0, timedelta(days=3)

KINDS = {
    "EQ": "earthquake",
    "TC": "tropical_cyclone",
    "FL": "flood",
    "VO": "volcano",
    "WF": "wildfire",
    "DR": "drought",
    "TS": "tsunami",
}
CATEGORIES = {"severeStorms": "TC", "volcanoes": "VO", "floods": "FL", "wildfires": "WF"}


def gdacs_legs(now: datetime) -> tuple[Leg[tuple[Disaster, ...]], ...]:
    """GDACS's event list, or its news feed."""

    async def event_list(reading: Reading) -> tuple[Disaster, ...]:
        """Two questions, since each answer is cut at 100 events and green earthquakes would crowd out the rest."""
        today = now.date()
        grave = EventQuery("EQ;TC;FL;VO;WF;DR", "Orange;Red", today - timedelta(days=30), today)
        green = EventQuery("TC;FL;VO;WF;DR", "Green", today - timedelta(days=5), today)
        found = [*await reading.read(EVENT_LIST, grave), *await reading.read(GREEN_LIST, green)]
        if not found:
            raise SourceEmpty("no event")
        return tuple({(d.kind, d.id): d for d in reversed(found)}.values())[::-1]

    return event_list, via(RSS)


def kind_of(event: NaturalEvent) -> str | None:
    """GDACS's code for what the event is, or None for what is no disaster, such as an iceberg or a burn on purpose."""
    kind = next((CATEGORIES[category] for category in event.categories if category in CATEGORIES), None)
    if kind != "WF":
        return kind
    large = event.unit == "acres" and (event.magnitude or 0) >= 1000
    return kind if large and not event.title.startswith("Prescribed") else None


def same_event(event: NaturalEvent, disaster: Disaster) -> bool:
    """Whether both catalogues mean the same: the same kind, within 200 km and three days."""
    if kind_of(event) != disaster.kind or disaster.lat is None or disaster.lon is None:
        return False
    ended = max(disaster.started_at, disaster.ended_at or disaster.started_at)
    apart = max(event.started_at - ended, disaster.started_at - event.seen_at)
    return apart <= NEAR_TIME and distance_km(event.lat, event.lon, disaster.lat, disaster.lon) <= NEAR_KM


def only_in_eonet(events: tuple[NaturalEvent, ...], disasters: tuple[Disaster, ...]) -> list[tuple[str, NaturalEvent]]:
    """The disasters that GDACS does not list, each with GDACS's code for what it is."""
    return [
        (kind, event)
        for event in events
        if (kind := kind_of(event)) and "GDACS" not in event.origins
        if not any(same_event(event, disaster) for disaster in disasters)
    ]
