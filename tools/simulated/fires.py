"""Simulate the wildfires: several hundred that burn for days, seen whenever a satellite passes.

NOAA-20 sees an injected event of kind `fire` when it happens: `lat`, `lon`, `frp` (MW); with a
`name` it is also an incident, with `acres`, `contained` and `state`.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from toolserver.world.model import World

BURNING, INCIDENTS = 300, 20
LASTS = 10 * 86400
ORBIT_S = 6090.0
DELAY_S = 3600.0  # from a pass until its data are available
SEEN = 0.17  # how often a pass covers a fire under a clear sky
KM = 0.009  # degrees of latitude
BOXES = (  # state, south, north, west, east, how many of thirty fires
    ("CA", 34.5, 41.5, -122.5, -117.5, 6),
    ("OR", 42.5, 45.5, -122.5, -118.0, 4),
    ("ID", 43.0, 47.0, -116.0, -113.0, 3),
    ("MT", 45.5, 48.5, -114.0, -106.0, 3),
    ("AZ", 32.0, 36.5, -114.0, -110.0, 3),
    ("TX", 29.0, 33.0, -101.5, -96.0, 3),
    ("FL", 26.5, 30.0, -82.0, -80.8, 2),
    ("KS", 37.5, 39.5, -101.0, -96.0, 2),
    ("HI", 19.2, 20.0, -155.8, -155.2, 1),
    ("AK", 62.0, 66.5, -158.0, -145.0, 3),
)
PLACES = [box for box in BOXES for _ in range(box[5])]
NAMES = ["Cedar", "Bootleg", "Dixie", "Sheep Creek", "Park", "Borel", "Lone Rock", "Smokehouse", "Gray", "Tinder"]


class Satellite(NamedTuple):
    """A satellite; `offset_s` is its position on its orbit at the epoch."""

    name: str
    code: str
    offset_s: float


SATELLITES = {
    "J1": Satellite("NOAA-20", "N20", 0.0),
    "J2": Satellite("NOAA-21", "N21", 1500.0),
    "SUOMI": Satellite("Suomi NPP", "N", 3045.0),
}


class Blaze(NamedTuple):
    """A wildfire. `identity` names it; the same number burns elsewhere ten days later."""

    identity: str
    number: int
    state: str
    lat: float
    lon: float
    power: float
    since: float


class Pixel(NamedTuple):
    """A detection by a satellite; `at` is the minute of the pass."""

    lat: float
    lon: float
    frp: float
    at: float
    satellite: Satellite
    confidence: str
    state: str


def blazes(world: World) -> list[Blaze]:
    """Return all burning fires."""
    return [_blaze(world, number, world.now) for number in range(BURNING)]


def _blaze(world: World, number: int, at: float) -> Blaze:
    phase = LASTS * world.u("blaze.phase", number)
    generation = int((at + phase) // LASTS)
    identity = f"{number}.{generation}"
    state, south, north, west, east, _ = PLACES[number % len(PLACES)]
    return Blaze(
        identity,
        number,
        state,
        world.between("blaze.lat", identity, south, north),
        world.between("blaze.lon", identity, west, east),
        10 ** world.between("blaze.power", identity, 0.3, 2.3),
        generation * LASTS - phase,
    )


def pixels(world: World, satellite: Satellite, hours: float = 24) -> list[Pixel]:
    """Return a satellite's detections of the past hours that are available by now, oldest first."""
    detections = [pixel for at in _passes(world, satellite, hours) for pixel in _seen(world, satellite, at)]
    since = world.now - hours * 3600
    if satellite.name == "NOAA-20":
        detections += [_injected(event) for event in world.injected("fire", since)]
    return sorted((pixel for pixel in detections if pixel.at > since), key=lambda pixel: pixel.at)


def _passes(world: World, satellite: Satellite, hours: float) -> list[float]:
    last = int((world.now - DELAY_S - satellite.offset_s) // ORBIT_S)
    return [satellite.offset_s + ORBIT_S * k for k in range(last - int(hours * 3600 // ORBIT_S), last + 1)]


def _seen(world: World, satellite: Satellite, at: float) -> Iterator[Pixel]:
    """Yield the detections of a pass: one to three pixels for each fire below."""
    orbit = f"{satellite.code}.{at:.0f}"
    for number in range(BURNING):
        if world.u("fire.seen", f"{orbit}.{number}") < SEEN:
            blaze = _blaze(world, number, at)
            for k in range(1 + int(2.2 * world.u("fire.pixels", f"{orbit}.{number}"))):
                yield _pixel(world, satellite, blaze, at, f"{orbit}.{blaze.identity}.{k}")


def _pixel(world: World, satellite: Satellite, blaze: Blaze, at: float, key: str) -> Pixel:
    return Pixel(
        lat=round(blaze.lat + KM * world.between("fire.north", key, -1, 1), 5),
        lon=round(blaze.lon + KM * world.between("fire.east", key, -1, 1), 5),
        frp=round(blaze.power * world.between("fire.frp", key, 0.4, 1.6), 2),
        at=at // 60 * 60,
        satellite=satellite,
        confidence=world.pick("fire.confidence", key, ["low", "nominal", "nominal", "nominal", "high"]),
        state=blaze.state,
    )


def _injected(event: dict[str, Any]) -> Pixel:
    return Pixel(
        lat=float(event.get("lat", 38.0)),
        lon=float(event.get("lon", -120.0)),
        frp=float(event.get("frp", 900.0)),
        at=float(event["at"]) // 60 * 60,
        satellite=SATELLITES["J1"],
        confidence="high",
        state=str(event.get("state", "CA")),
    )


class SimFireIncident(NamedTuple):
    """A fire that is being fought."""

    name: str
    state: str
    acres: float
    contained: int
    discovered: float
    lat: float
    lon: float


def incidents(world: World) -> list[SimFireIncident]:
    """Return the twenty largest fires, as the agencies report them, and the injected ones that have a name."""
    largest = sorted(blazes(world), key=lambda blaze: blaze.power, reverse=True)[:INCIDENTS]
    reports = [_incident(world, blaze) for blaze in largest]
    reports += [_named(event) for event in world.injected("fire") if event.get("name")]
    return sorted(reports, key=lambda incident: incident.acres, reverse=True)


def _incident(world: World, blaze: Blaze) -> SimFireIncident:
    age = (world.now - blaze.since) / LASTS
    return SimFireIncident(
        name=f"{world.pick('blaze.name', blaze.identity, NAMES)} {blaze.number}",
        state=blaze.state,
        acres=round(blaze.power * (20 + 400 * age), 1),
        contained=min(100, int(110 * age**2)),
        discovered=blaze.since,
        lat=blaze.lat,
        lon=blaze.lon,
    )


def _named(event: dict[str, Any]) -> SimFireIncident:
    def value(name: str, default: float) -> float:
        return float(event.get(name, default))

    return SimFireIncident(
        name=str(event["name"]),
        state=str(event.get("state", "CA")),
        acres=value("acres", 1000.0),
        contained=int(value("contained", 0)),
        discovered=float(event["at"]),
        lat=value("lat", 38.0),
        lon=value("lon", -120.0),
    )


def write_time(at: float, form: str) -> str:
    return datetime.fromtimestamp(at, UTC).strftime(form)
