"""Simulate the earthquakes: one process, which every catalogue reports with small differences."""

import math
from functools import lru_cache
from typing import NamedTuple

from toolserver.world.model import World

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

    There is always one of M4+ in the last hour and a significant one in the last day, unless the value
    `quakes.quiet` is pinned to 1, which leaves only those below M4.
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
