"""Read ongoing natural events from NASA EONET (JSON, no key, public domain).

https://eonet.gsfc.nasa.gov/docs/v3
"""

from datetime import datetime
from typing import Any, NamedTuple

from tools.parsing.fields import clean, clean_or_none, from_iso, number, number_or_none, optional, web_url, within
from tools.sources.hosts import MINUTE, NASA, WEEK
from toolserver import MIB, Get, Licence, Source, SourceChanged, read_rows

LICENCE = Licence("yes", "NASA EONET", "https://eonet.gsfc.nasa.gov/what-is-eonet")


class NaturalEvent(NamedTuple):
    """An open event, from its first to its newest observation, and where it was last seen.

    `categories` are EONET's ids (severeStorms, volcanoes, …), `origins` the ids of the catalogues it comes from.
    """

    id: str
    title: str
    categories: tuple[str, ...]
    origins: tuple[str, ...]
    started_at: datetime
    seen_at: datetime
    lat: float
    lon: float
    magnitude: float | None
    unit: str | None
    url: str | None


def parse(body: Any, query: None) -> tuple[NaturalEvent, ...]:
    """Return every event."""
    events = body["events"]
    if not isinstance(events, list):
        raise SourceChanged("events is not a list")
    placed = read_rows(events, _event)
    if placed and all(event.lat == event.lon == 0 for event in placed):
        raise SourceChanged("every coordinate is 0")
    return placed


def _event(event: dict[str, Any]) -> NaturalEvent:
    track = sorted(event["geometry"], key=lambda seen: from_iso(seen["date"]))
    first, last = track[0], track[-1]
    lon, lat = _first_vertex(last["coordinates"])
    origins = event.get("sources") or []
    return NaturalEvent(
        id=clean(event["id"], 60),
        title=clean(event["title"]),
        categories=tuple(clean(category["id"], 40) for category in event["categories"]),
        origins=tuple(clean(str(origin.get("id")), 40) for origin in origins),
        started_at=from_iso(first["date"]),
        seen_at=from_iso(last["date"]),
        lat=within(number(lat), -90, 90),
        lon=within(number(lon), -360, 360),
        magnitude=optional(number_or_none, last.get("magnitudeValue")),
        unit=clean_or_none(last.get("magnitudeUnit"), 20),
        url=next((url for origin in origins if (url := web_url(origin.get("url")))), None)
        or web_url(event.get("link")),
    )


def _first_vertex(coordinates: Any) -> tuple[Any, Any]:
    """Return longitude and latitude of a point, or of the first corner of a polygon."""
    while isinstance(coordinates[0], list):
        coordinates = coordinates[0]
    return coordinates[0], coordinates[1]


def newest(events: tuple[NaturalEvent, ...]) -> datetime | None:
    return max((event.seen_at for event in events), default=None)


EVENTS = Source(
    "NASA.eonet_events",
    Get("https://eonet.gsfc.nasa.gov/api/v3/events", params={"status": "open", "days": "20"}),
    parse,
    licence=LICENCE,
    hosts=NASA,
    fresh_s=15 * MINUTE,
    newest_max_s=WEEK,
    timeout_s=15,
    max_bytes=4 * MIB,
    newest=newest,
    untrusted=True,
)
