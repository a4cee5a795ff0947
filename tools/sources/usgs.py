"""Read USGS earthquake feeds (GeoJSON, no key, public domain).

https://earthquake.usgs.gov/earthquakes/feed/v1.0/geojson.php
"""

from typing import Any, Literal, NamedTuple

from tools.parsing.earthquakes import Quake, QuakeList, newest_quake, require_small
from tools.parsing.fields import clean, clean_or_none, from_epoch_ms, number, number_or_none, web_url, within
from tools.parsing.providers import USGS_LICENCE
from tools.sources.hosts import HOUR, MINUTE, USGS
from toolserver import MIB, Get, Keys, Proof, Source, SourceChanged, SourceUnproved, read_rows

FEEDS = "https://earthquake.usgs.gov/earthquakes/feed/v1.0/summary"

Magnitude = Literal["significant", "4.5", "2.5", "1.0", "all"]
Period = Literal["hour", "day", "week", "month"]


class QuakeQuery(NamedTuple):
    """One of the twenty summary feeds."""

    magnitude: Magnitude = "2.5"
    period: Period = "day"


LEAST = {QuakeQuery("2.5", "day"): 5}  # the world is never quieter; every other feed may be empty
FLOORS: dict[Magnitude, float] = {"significant": 3.0, "4.5": 4.5, "2.5": 2.5, "1.0": 1.0, "all": -3.0}
ROUNDING = 0.11  # feeds select events by magnitudes before rounding
STAMP_S = {"hour": 30 * MINUTE, "day": 30 * MINUTE, "week": 30 * MINUTE, "month": HOUR}


def request(query: QuakeQuery, keys: Keys) -> Get:
    return Get(f"{FEEDS}/{query.magnitude}_{query.period}.geojson")


def parse(body: Any, query: QuakeQuery) -> QuakeList:
    """Return every feature of a FeatureCollection."""
    if body["type"] != "FeatureCollection":
        raise SourceChanged(f"type is {body['type']!r:.40}")
    if len(body["features"]) < LEAST.get(query, 0):
        raise SourceUnproved(f"{len(body['features'])} events")
    quakes = read_rows(body["features"], lambda feature: defined(_quake(feature), FLOORS[query.magnitude]))
    if query.magnitude in ("4.5", "2.5", "1.0"):
        require_small(quakes, FLOORS[query.magnitude])
    return QuakeList(quakes, from_epoch_ms(body["metadata"]["generated"]))


def defined(quake: Quake, floor: float) -> Quake:
    """Return the event. Raises SourceChanged when it is smaller than the feed's minimum."""
    if quake.magnitude is not None and quake.magnitude < floor - ROUNDING:
        raise SourceChanged(f"M{quake.magnitude:g} in a feed from M{floor:g}")
    return quake


def _quake(feature: dict[str, Any]) -> Quake:
    properties = feature["properties"]
    lon, lat, depth = [*feature["geometry"]["coordinates"], None][:3]
    magnitude = number_or_none(properties["mag"])
    updated = properties.get("updated")
    tsunami = number_or_none(properties.get("tsunami"))
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
        tsunami=None if tsunami is None else tsunami != 0,
        magnitude_type=clean_or_none(properties.get("magType"), 20),
        status=clean_or_none(properties.get("status"), 20),
        significance=number_or_none(properties.get("sig")),
        updated=None if updated is None else from_epoch_ms(updated),
    )


FEED_FRESH_S = {"hour": 60, "day": 60, "week": 300, "month": 900}


def feed(period: Period) -> Source[QuakeQuery, QuakeList]:
    """Return the source of a period's feeds: one public name, and the upstream freshness of the period."""
    return Source(
        "USGS.earthquakes_feed",
        request,
        parse,
        licence=USGS_LICENCE,
        hosts=USGS,
        fresh_s=FEED_FRESH_S[period],
        max_bytes=12 * MIB,
        conditional=True,
        newest=newest_quake,
        stamp=lambda listed: listed.generated,
        newest_max_s=STAMP_S[period],
        least=0,
        proof=Proof.by_stamp(STAMP_S[period]),
        lists="earthquakes",
        few_choices=True,
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
