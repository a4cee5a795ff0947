"""Simulate the earthquakes, and USGS and EMSC on the wire: two catalogues of one process, with small differences."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from toolserver.world.model import Ask, Reply, World, expects, serves

SLOT_S = 60.0
PER_DAY = 60  # of magnitude 2.5 and above
SMALL = 200  # below that: far fewer than the law predicts, as in every real catalogue
SIGNIFICANT = 6.0
PLACES = [
    ("Hihifo, Tonga", -15.8, -173.6),
    ("Ridgecrest, CA", 35.7, -117.5),
    ("Kokopo, Papua New Guinea", -4.6, 152.4),
    ("Calama, Chile", -22.3, -68.9),
    ("Adak, Alaska", 51.6, -176.6),
    ("Hachinohe, Japan", 40.5, 142.2),
    ("Sinabang, Indonesia", 2.4, 96.3),
    ("Gisborne, New Zealand", -38.6, 178.1),
    ("Volcano, Hawaii", 19.4, -155.2),
    ("Karakul, Tajikistan", 38.9, 73.4),
]
BEARINGS = ["N", "NNE", "NE", "E", "SE", "S", "SSW", "W", "WNW", "NW"]


class SimQuake(NamedTuple):
    """One event with its true values; `name` is its identity."""

    name: str
    at: float
    magnitude: float
    place: str
    lat: float
    lon: float
    depth: float


def quakes(world: World, since: float) -> list[SimQuake]:
    """Return events after `since` (epoch seconds) and up to now, newest first; from 2.5 up by Gutenberg-Richter, b = 1.

    There is always one of M4+ in the last hour and a significant one in the last day, unless
    the value `quakes.quiet` is pinned to 1, which leaves only those below M4.
    """
    quiet = world.pinned("quakes.quiet") == 1
    events = [_random(world, i, at) for i, at in world.slots("quake", since=since, slot_s=SLOT_S, rate=PER_DAY / 86400)]
    events += [_small(world, i, at) for i, at in world.slots("tremor", since=since, slot_s=SLOT_S, rate=SMALL / 86400)]
    events += [_forced(world, "hourly", i, at, 4.1, 5.4) for i, at in _regular(world, "quake4", since, 1500)]
    events += [_forced(world, "daily", i, at, SIGNIFICANT, 7.0) for i, at in _regular(world, "quake6", since, 36000)]
    events += [_injected(e) for e in world.injected("earthquake", since)]
    if quiet:
        events = [q for q in events if q.magnitude < 4 or q.name.startswith("x")]
    return sorted(events, key=lambda q: q.at, reverse=True)


def _regular(world: World, kind: str, since: float, every_s: float) -> list[tuple[int, float]]:
    """Return one event per period, at a seeded moment in its first half."""
    first, last = math.floor(since / every_s), math.floor(world.now / every_s)
    moments = [(i, (i + 0.5 * world.u(kind, i)) * every_s) for i in range(first, last + 1)]
    return [(i, at) for i, at in moments if since < at <= world.now]


def _random(world: World, index: int, at: float) -> SimQuake:
    magnitude = 2.5 - math.log10(1 - 0.99999 * world.u("quake.magnitude", index))
    return _placed(world.seed, f"{index}", at, min(magnitude, 5.9))


def _small(world: World, index: int, at: float) -> SimQuake:
    return _placed(world.seed, f"t{index}", at, world.between("tremor.magnitude", index, 0.8, 2.4))


def _forced(world: World, name: str, index: int, at: float, low: float, high: float) -> SimQuake:
    return _placed(world.seed, f"{name}{index}", at, world.between(f"quake.{name}", index, low, high))


@lru_cache(maxsize=1 << 14)
def _placed(seed: int, index: str, at: float, magnitude: float) -> SimQuake:
    """Return the earthquake of an index. It is cached, since catalogues list it again at each instant."""
    world = World(seed, at)
    near, lat, lon = world.pick("quake.place", index, PLACES)
    distance = int(world.between("quake.distance", index, 2, 190))
    bearing = world.pick("quake.bearing", index, BEARINGS)
    return SimQuake(
        index,
        at,
        round(magnitude, 1),
        f"{distance} km {bearing} of {near}",
        round(lat + world.between("quake.lat", index, -1, 1), 4),
        round(lon + world.between("quake.lon", index, -1, 1), 4),
        round(world.between("quake.depth", index, -1, 120), 2),
    )


def _injected(event: dict[str, object]) -> SimQuake:
    def value(name: str, default: float) -> float:
        return float(event.get(name, default))  # type: ignore[arg-type]

    at = value("at", 0)
    place = str(event.get("place", "5 km N of Nowhere"))
    return SimQuake(
        f"x{int(at)}", at, value("magnitude", 5), place, value("lat", 0), value("lon", 0), value("depth", 10)
    )


PERIODS = {"hour": 3600, "day": 86400, "week": 7 * 86400, "month": 31 * 86400}
FLOORS = {"significant": SIGNIFICANT, "4.5": 4.5, "2.5": 2.5, "1.0": 1.0, "all": -9.0}


@serves("USGS.earthquakes_feed", "earthquake.usgs.gov", "/earthquakes/feed/v1.0/summary/{magnitude}_{period}.geojson")
def feed(world: World, ask: Ask) -> Reply:
    magnitude, period = ask.parts["magnitude"], ask.parts["period"]
    if magnitude not in FLOORS or period not in PERIODS:
        return Reply.text("Not Found", 404)
    minute = world.now - world.now % 60  # the feeds are rewritten every minute
    events = [q for q in quakes(world.at(minute), minute - PERIODS[period]) if q.magnitude >= FLOORS[magnitude]]
    return _collection(
        [_usgs(world, q) for q in events], minute, f"USGS Magnitude {magnitude}+ Earthquakes, Past {period}"
    )


@feed.form("empty")
def no_events(world: World, ask: Ask) -> Reply:
    return _collection([], world.now, "USGS Earthquakes")


@feed.form("drift")
def extra_members(world: World, ask: Ask) -> Reply:
    """Return the change of 2026: `tz` null, other key order, additional members; the numbers are unchanged."""
    minute = world.now - world.now % 60
    since = minute - PERIODS.get(ask.parts["period"], 86400)
    events = [q for q in quakes(world.at(minute), since) if q.magnitude >= FLOORS.get(ask.parts["magnitude"], 2.5)]
    features = [dict(reversed(_usgs(world, q).items())) | {"links": []} for q in events]
    return _collection(features, minute, "USGS Earthquakes")


@serves("USGS.earthquakes_query", "earthquake.usgs.gov", "/fdsnws/event/1/query")
def query(world: World, ask: Ask) -> Reply:
    params = ask.params
    since = datetime.fromisoformat(params["starttime"]).replace(tzinfo=UTC).timestamp()
    floor = float(params.get("minmagnitude", "0"))
    events = [q for q in quakes(world, since) if q.magnitude >= floor][: int(params.get("limit", "20000"))]
    return _collection([_usgs(world, q) for q in events], world.now, "USGS Earthquakes")


@serves("EMSC.earthquakes_query", "www.seismicportal.eu", "/fdsnws/event/1/query", forms={"empty": Reply(b"", 204)})
def emsc(world: World, ask: Ask) -> Reply:
    params = ask.params
    since = datetime.fromisoformat(params["start"]).replace(tzinfo=UTC).timestamp()
    floor = float(params.get("minmag", "0"))
    features = [_emsc(world, q) for q in quakes(world, since)]
    features = [f for f in features if f["properties"]["mag"] >= floor][: int(params.get("limit", "20000"))]
    if not features:
        return Reply(b"", 204)
    return Reply.json({"type": "FeatureCollection", "metadata": {"count": len(features)}, "features": features})


def _collection(features: list[dict[str, Any]], made_at: float, title: str) -> Reply:
    body: dict[str, Any] = {
        "type": "FeatureCollection",
        "metadata": {
            "generated": int(made_at * 1000),
            "url": "https://earthquake.usgs.gov/earthquakes/feed/v1.0/summary/2.5_day.geojson",
            "title": title,
            "status": 200,
            "api": "2.7.0",
            "count": len(features),
        },
        "features": features,
    }
    if features:
        body["bbox"] = [-180, -90, -2, 180, 90, 700]
    return Reply.json(body, content_type="application/json; charset=utf-8", last_modified=made_at)


def _usgs(world: World, quake: SimQuake) -> dict[str, Any]:
    code = f"sim{quake.name}"
    return {
        "type": "Feature",
        "properties": {
            "mag": quake.magnitude,
            "place": quake.place,
            "time": int(quake.at * 1000),
            "updated": int((quake.at + 300) * 1000),
            "tz": None,
            "url": f"https://earthquake.usgs.gov/earthquakes/eventpage/us{code}",
            "detail": f"https://earthquake.usgs.gov/earthquakes/feed/v1.0/detail/us{code}.geojson",
            "felt": None,
            "alert": "green" if quake.magnitude >= SIGNIFICANT else None,
            "status": "reviewed",
            "tsunami": int(quake.magnitude >= 6.5),
            "sig": max(int(quake.magnitude**2 * 15.4), 601 if quake.magnitude >= SIGNIFICANT else 0),
            "net": "us",
            "code": code,
            "ids": f",us{code},",
            "magType": "mb",
            "type": "quarry blast" if _blast(world, quake) else "earthquake",
            "title": f"M {quake.magnitude} - {quake.place}",
        },
        "geometry": {"type": "Point", "coordinates": [quake.lon, quake.lat, quake.depth]},
        "id": f"us{code}",
    }


def _blast(world: World, quake: SimQuake) -> bool:
    return quake.magnitude < 3 and world.u("quake.blast", quake.name) < 0.03


def _emsc(world: World, quake: SimQuake) -> dict[str, Any]:
    at = quake.at + world.between("emsc.delay", quake.name, -30, 30)
    magnitude = round(quake.magnitude + world.pick("emsc.magnitude", quake.name, [-0.2, -0.1, 0.1, 0.2]), 1)
    time = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-5] + "Z"
    identity = f"20990101_{quake.name}"
    return {
        "type": "Feature",
        "geometry": {"type": "Point", "coordinates": [quake.lon, quake.lat, -quake.depth]},
        "id": identity,
        "properties": {
            "source_id": quake.name,
            "source_catalog": "EMSC-RTS",
            "lastupdate": time,
            "time": time,
            "flynn_region": quake.place.rsplit(" of ", 1)[-1].upper(),
            "lat": quake.lat,
            "lon": quake.lon,
            "depth": quake.depth,
            "evtype": "ke",
            "auth": "EMSC",
            "mag": magnitude,
            "magtype": "mb",
            "unid": identity,
        },
    }


@expects("earthquake")
def expected(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the events that `/api/earthquake` must list at this instant when USGS answers."""
    minute = world.now - world.now % 60
    events = [q for q in quakes(world.at(minute), minute - 86400) if q.magnitude >= 2.5 and not _blast(world, q)]
    return {
        "count": len(events),
        "earthquakes": [
            {"id": f"ussim{q.name}", "magnitude": q.magnitude, "location": q.place, "lat": q.lat, "lon": q.lon}
            for q in events[: int(params.get("limit", 80))]
        ],
    }


@expects("climate/earthquakes")
def expected_events(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the events that `/api/climate/earthquakes` must list when USGS answers, quarry blasts included."""
    magnitude, period = params.get("magnitude", "2.5"), params.get("period", "day")
    minute = world.now - world.now % 60
    events = [q for q in quakes(world.at(minute), minute - PERIODS[period]) if q.magnitude >= FLOORS[magnitude]]
    rows = [
        {"id": f"ussim{q.name}", "magnitude": q.magnitude, "place": q.place, "lat": q.lat, "lon": q.lon}
        | {"type": "quarry blast" if _blast(world, q) else "earthquake", "tsunami": q.magnitude >= 6.5}
        for q in events[: int(params.get("limit", 60))]
    ]
    return {"count": len(events), "filters": {"magnitude": magnitude, "period": period}, "data": rows}
