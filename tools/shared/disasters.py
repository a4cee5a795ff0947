"""Get the disasters of the past weeks, and match the events of two catalogues."""

from datetime import datetime, timedelta

from tools.parsing.places import distance_km
from tools.sources.eonet import EVENTS, NaturalEvent
from tools.sources.gdacs import EVENT_LIST, GREEN_LIST, RSS, Disaster, EventQuery
from toolserver import Fallback, FallbackReader, SourceFrozen, via

GDACS_SOURCES = (EVENT_LIST, GREEN_LIST, RSS)
EONET_FALLBACK: Fallback[tuple[NaturalEvent, ...]] = via(EVENTS)
NEAR_KM, NEAR_TIME = 200.0, timedelta(days=3)
SEEN = timedelta(hours=20)
GRAVE_SEEN = timedelta(days=5)  # orange or red ones are ongoing or ended recently: droughts and fires last

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


def gdacs_fallbacks(now: datetime) -> tuple[Fallback[tuple[Disaster, ...]], ...]:
    """Return the fallbacks: GDACS's event list, or its news feed."""

    async def event_list(reading: FallbackReader) -> tuple[Disaster, ...]:
        """Send two requests: each answer is cut at 100 events, and green earthquakes would crowd out the rest."""
        today = now.date()
        grave = EventQuery("EQ;TC;FL;VO;WF;DR", "Orange;Red", today - timedelta(days=30), today)
        green = EventQuery("TC;FL;VO;WF;DR", "Green", today - timedelta(days=5), today)
        worst = require_living(await reading.read(EVENT_LIST, grave), now, GRAVE_SEEN)
        disasters = [*worst, *await reading.read(GREEN_LIST, green)]
        return require_living(tuple({(d.kind, d.id): d for d in reversed(disasters)}.values())[::-1], now)

    return event_list, via(RSS, None, lambda disasters: require_living(disasters, now))


def require_living(disasters: tuple[Disaster, ...], now: datetime, within: timedelta = SEEN) -> tuple[Disaster, ...]:
    """Return the disasters. Raises SourceFrozen when none was seen within that time: some are always ongoing.

    A forecast end does not count, since it does not show when it was written.
    """
    times = [
        time for disaster in disasters for time in (disaster.started_at, disaster.ended_at) if time and time <= now
    ]
    seen = max(times, default=None)
    if seen is None or now - seen > within:
        raise SourceFrozen(f"nothing was seen since {seen:%Y-%m-%d %H:%M}" if seen else "nothing was seen")
    return disasters


def kind_of(event: NaturalEvent) -> str | None:
    """Return GDACS's code for the event; None if it is not a disaster, such as an iceberg or a prescribed burn."""
    kind = next((CATEGORIES[category] for category in event.categories if category in CATEGORIES), None)
    if kind != "WF":
        return kind
    large = event.unit == "acres" and (event.magnitude or 0) >= 1000
    return kind if large and not event.title.startswith("Prescribed") else None


def same_event(event: NaturalEvent, disaster: Disaster) -> bool:
    """Return True if both catalogues mean the same event: the same kind, within 200 km and three days."""
    if kind_of(event) != disaster.kind or disaster.lat is None or disaster.lon is None:
        return False
    ended = max(disaster.started_at, disaster.ended_at or disaster.started_at)
    apart = max(event.started_at - ended, disaster.started_at - event.seen_at)
    return apart <= NEAR_TIME and distance_km(event.lat, event.lon, disaster.lat, disaster.lon) <= NEAR_KM


def only_in_eonet(events: tuple[NaturalEvent, ...], disasters: tuple[Disaster, ...]) -> list[tuple[str, NaturalEvent]]:
    """Return the disasters that GDACS does not list, each with GDACS's code for its kind."""
    return [
        (kind, event)
        for event in events
        if (kind := kind_of(event)) and "GDACS" not in event.origins
        if not any(same_event(event, disaster) for disaster in disasters)
    ]
