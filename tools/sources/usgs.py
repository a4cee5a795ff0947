"""USGS earthquake feeds and catalogue query (GeoJSON, no key, public domain).

https://earthquake.usgs.gov/earthquakes/feed/v1.0/geojson.php
"""

from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from tools.shared.numbers import number, number_or_none, within
from tools.shared.text import clean, web_url
from tools.shared.times import from_epoch_ms
from tools.sources.hosts import USGS
from toolserver.errors import SourceChanged, SourceEmpty
from toolserver.upstream.source import MIB, Get, Keys, Licence, Source

FEEDS = "https://earthquake.usgs.gov/earthquakes/feed/v1.0/summary"
CATALOGUE = "https://earthquake.usgs.gov/fdsnws/event/1/query"
LICENCE = Licence("yes", "U.S. Geological Survey", "https://www.usgs.gov/information-policies-and-instructions")

Magnitude = Literal["significant", "4.5", "2.5", "1.0", "all"]
Period = Literal["hour", "day", "week", "month"]


class QuakeQuery(NamedTuple):
    """One of the twenty summary feeds."""

    magnitude: Magnitude = "2.5"
    period: Period = "day"


class CatalogueQuery(NamedTuple):
    """Events of at least a magnitude in the hours before a time (to be rounded, so that the query repeats)."""

    magnitude: float
    hours: int
    until: datetime
    limit: int = 200


class Quake(NamedTuple):
    """One event. `magnitude` is None until the first solution is published; `kind` tells quarry blasts apart."""

    id: str
    magnitude: float | None
    place: str
    time: datetime
    depth_km: float | None
    lat: float | None
    lon: float | None
    kind: str
    url: str | None
    tsunami: bool | None = None
    magnitude_type: str | None = None
    status: str | None = None
    updated: datetime | None = None


class QuakeList(NamedTuple):
    """Events in the order of the feed, and when the feed was made (None where its age does not matter)."""

    quakes: tuple[Quake, ...]
    generated: datetime | None


LEAST = {QuakeQuery("2.5", "day"): 5}  # the world is never quieter than this; every other feed may be empty


def request(query: QuakeQuery, keys: Keys) -> Get:
    return Get(f"{FEEDS}/{query.magnitude}_{query.period}.geojson")


def parse(body: Any, query: QuakeQuery) -> QuakeList:
    """Every feature of a FeatureCollection."""
    if body["type"] != "FeatureCollection":
        raise SourceChanged(f"type is {body['type']!r:.40}")
    if len(body["features"]) < LEAST.get(query, 0):
        raise SourceEmpty(f"{len(body['features'])} events")
    generated = from_epoch_ms(body["metadata"]["generated"])
    minutely = query.period in ("hour", "day")
    return QuakeList(tuple(_quake(f) for f in body["features"]), generated if minutely else None)


def request_catalogue(query: CatalogueQuery, keys: Keys) -> Get:
    return Get(
        CATALOGUE,
        params={
            "format": "geojson",
            "minmagnitude": f"{query.magnitude:g}",
            "starttime": (query.until - timedelta(hours=query.hours)).strftime("%Y-%m-%dT%H:%M:%S"),
            "orderby": "time",
            "limit": str(query.limit),
        },
    )


def parse_catalogue(body: Any, query: CatalogueQuery) -> QuakeList:
    """Every feature; no content (HTTP 204) means no event. The age of the document says nothing."""
    if body is None:
        return QuakeList((), None)
    if body["type"] != "FeatureCollection":
        raise SourceChanged(f"type is {body['type']!r:.40}")
    return QuakeList(tuple(_quake(f) for f in body["features"]), None)


def _quake(feature: dict[str, Any]) -> Quake:
    properties = feature["properties"]
    lon, lat, depth = [*feature["geometry"]["coordinates"], None][:3]
    magnitude = number_or_none(properties["mag"])
    updated = properties.get("updated")
    tsunami = properties.get("tsunami")
    return Quake(
        id=clean(str(feature["id"]), 60),
        magnitude=None if magnitude is None else within(magnitude, -3, 10),
        place=clean(properties.get("place") or "unknown"),
        time=from_epoch_ms(properties["time"]),
        depth_km=number_or_none(depth),
        lat=within(number(lat), -90, 90),
        lon=within(number(lon), -360, 360),
        kind=clean(str(properties.get("type") or "earthquake"), 40),
        url=web_url(properties.get("url")),
        tsunami=None if tsunami is None else bool(tsunami),
        magnitude_type=properties.get("magType"),
        status=properties.get("status"),
        updated=None if updated is None else from_epoch_ms(updated),
    )


def newest(listed: QuakeList) -> datetime | None:
    return max((quake.time for quake in listed.quakes), default=None)


FEED_FRESH_S = {"hour": 60, "day": 60, "week": 300, "month": 900}


def feed(period: Period) -> Source[QuakeQuery, QuakeList]:
    """The feeds of a period: one public name, and the freshness that the period has upstream."""
    return Source(
        "USGS.earthquakes_feed",
        request,
        parse,
        licence=LICENCE,
        hosts=USGS,
        fresh_s=FEED_FRESH_S[period],
        keep_s=86400,
        timeout_s=8,
        max_bytes=12 * MIB,
        conditional=True,
        newest=newest,
        stamp=lambda listed: listed.generated,
        newest_max_s=1800,
        least=0,
        untrusted=True,
        probe=QuakeQuery("2.5", period),
    )


QUAKES_HOUR = feed("hour")
QUAKES_DAY = feed("day")
QUAKES_WEEK = feed("week")
QUAKES_MONTH = feed("month")
QUAKES: dict[Period, Source[QuakeQuery, QuakeList]] = {
    "hour": QUAKES_HOUR,
    "day": QUAKES_DAY,
    "week": QUAKES_WEEK,
    "month": QUAKES_MONTH,
}

CATALOGUE_QUAKES = Source(
    "USGS.earthquakes_query",
    request_catalogue,
    parse_catalogue,
    licence=LICENCE,
    hosts=USGS,
    fresh_s=60,
    keep_s=3600,
    timeout_s=8,
    newest=newest,
    least=0,
    also=frozenset({204}),
    key=lambda query: (query.magnitude, query.hours, query.limit),  # the window moves with the clock
    untrusted=True,
)
