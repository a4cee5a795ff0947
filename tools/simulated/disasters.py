"""Simulate the disasters, which GDACS and EONET each report in their own form."""

from typing import NamedTuple

from tools.simulated.usgs import quakes
from toolserver.world.model import World

DAY = 86400.0
EARTHQUAKES_S = 5 * DAY  # older ones are no longer news
WORDS = {
    "EQ": "Earthquake",
    "TC": "Tropical Cyclone",
    "FL": "Flood",
    "VO": "Eruption",
    "WF": "Forest fire",
    "DR": "Drought",
}
EVERY_DAYS = {"TC": 3.0, "FL": 2.0, "VO": 5.0, "WF": 1.5, "DR": 15.0}
LASTS_DAYS = {"TC": (3.0, 7.0), "FL": (2.0, 6.0), "VO": (0.0, 0.0), "WF": (1.0, 5.0), "DR": (30.0, 60.0)}
PLACES = [
    ("Philippines", "PHL", 13.3, 123.7),
    ("Madagascar", "MDG", -18.9, 47.5),
    ("Mexico", "MEX", 19.0, -98.6),
    ("Indonesia", "IDN", -7.5, 110.4),
    ("Bangladesh", "BGD", 23.7, 90.4),
    ("Australia", "AUS", -33.9, 150.9),
    ("Brazil", "BRA", -9.9, -67.8),
    ("Ethiopia", "ETH", 9.0, 38.7),
]
NAMES = ["ALMA", "BRUNO", "CELIA", "DORIAN", "ELSA", "FINN", "GRETA", "HUGO", "IRIS", "JONAS"]


def present_level(disaster: "SimDisaster") -> str:
    """Return the colour of the present episode: one in three red disasters has calmed to orange."""
    return "Orange" if disaster.level == "Red" and disaster.number % 3 == 0 else disaster.level


class SimDisaster(NamedTuple):
    """One disaster in epoch seconds; `number` identifies it among those of its kind."""

    kind: str
    number: int
    own_name: str
    level: str
    country: str
    iso3: str
    severity: float
    began: float
    ended: float
    lat: float
    lon: float


def disasters(world: World, since: float) -> list[SimDisaster]:
    """Return the disasters that were active after `since`, the last begun first. One is always orange or red."""
    events = [d for kind in EVERY_DAYS for d in _regular(world, kind, since)]
    shaken = quakes(world, max(since, world.now - EARTHQUAKES_S))
    events += [_quake(world, q.name, q.at, q.magnitude, q.place, q.lat, q.lon) for q in shaken if q.magnitude >= 4.5]
    events += _injected(world)
    return sorted((d for d in events if d.ended > since and d.began <= world.now), key=lambda d: d.began, reverse=True)


def _regular(world: World, kind: str, since: float) -> list[SimDisaster]:
    """Return one disaster per period of its kind, at a seeded moment of the period."""
    every, longest = EVERY_DAYS[kind] * DAY, LASTS_DAYS[kind][1] * DAY
    first, last = int((since - longest) // every), int(world.now // every)
    return [
        _made(world, kind, index, (index + world.u(f"{kind}.at", index)) * every) for index in range(first, last + 1)
    ]


def _made(world: World, kind: str, index: int, began: float) -> SimDisaster:
    country, iso3, lat, lon = world.pick(f"{kind}.place", index, PLACES)
    low, high = LASTS_DAYS[kind]
    return SimDisaster(
        kind,
        1_000_000 + index % 900_000,
        f"{world.pick('TC.name', index, NAMES)}-{index % 90 + 10}" if kind in ("TC", "VO") else "",
        world.pick(f"{kind}.level", index, ["Green", "Green", "Orange", "Red"]),
        country,
        iso3,
        round(world.between(f"{kind}.severity", index, 40, 260), 1),
        float(int(began)),
        float(int(began + world.between(f"{kind}.lasts", index, low, high) * DAY)),
        round(lat + world.between(f"{kind}.lat", index, -4, 4), 4),
        round(lon + world.between(f"{kind}.lon", index, -4, 4), 4),
    )


def _quake(world: World, name: str, at: float, magnitude: float, place: str, lat: float, lon: float) -> SimDisaster:
    level = "Red" if magnitude >= 7 else "Orange" if magnitude >= 6 else "Green"
    number = 1_500_000 + int(world.u("EQ.number", name) * 400_000)
    country = place.rsplit(", ", 1)[-1]
    return SimDisaster("EQ", number, "", level, country, "", magnitude, float(int(at)), float(int(at)) + 0.5, lat, lon)


def _injected(world: World) -> list[SimDisaster]:
    """Return injected: `{"kind": "alert", "type": "TC", "level": "red", "country": …, "lat": …, "days": …}`."""
    return [
        SimDisaster(
            str(e["type"]),
            2_000_000 + int(e["at"]) % 900_000,
            str(e.get("name", "")),
            str(e.get("level", "orange")).title(),
            str(e.get("country", "Philippines")),
            "",
            float(e.get("severity", 200)),
            float(e["at"]),
            float(e["at"]) + float(e.get("days", 2)) * DAY,
            float(e.get("lat", 13.3)),
            float(e.get("lon", 123.7)),
        )
        for e in world.injected("alert")
        if e.get("type") in WORDS
    ]
