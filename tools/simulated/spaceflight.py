"""Simulate rockets and crews: launches on a schedule that firms up, and the people in orbit."""

import math
from datetime import UTC, datetime
from typing import NamedTuple

from toolserver.world.model import World

HOUR, DAY = 3600.0, 86400.0
REGULAR_S = 13 * HOUR  # a launch somewhere in the middle half of each: 6.5 to 19.5 hours apart
RESERVE_S = 50 * 60.0  # small rockets, announced an hour ahead: one has always just flown and one is next
ASCENT_S = 30 * 60.0
RECENT_S, RESERVE_RECENT_S = 24 * HOUR, 70 * 60.0  # how long flown ones stay listed
AHEAD_S = 25 * DAY

ROCKETS = [
    ("SpaceX", "Falcon 9 Block 5", "Space Launch Complex 40", "Cape Canaveral SFS, FL, USA", 28.56, -80.58),
    ("Rocket Lab", "Electron", "Launch Complex 1A", "Mahia Peninsula, New Zealand", -39.26, 177.86),
    ("CASC", "Long March 7A", "Launch Area 2", "Wenchang Space Launch Site", 19.61, 110.95),
    ("Arianespace", "Ariane 64", "Ariane Launch Area 4", "Guiana Space Centre, French Guiana", 5.26, -52.79),
    ("ISRO", "PSLV-XL", "First Launch Pad", "Satish Dhawan Space Centre, India", 13.73, 80.23),
]
MISSIONS = [("Starlink Group", "Communications"), ("Sentinel", "Earth Science"), ("Explorer", "Astrophysics")]
SMALL = ("Halcyon Aerospace", "Kestrel 1", "Pad 3", "Northern Spaceport, Iceland", 66.1, -15.2)
FLOWN = {"Success", "Failure", "Partial Failure"}


class SimLaunch(NamedTuple):
    """One launch as it is known now. `code` is Go, TBC, TBD, In Flight, Success, Failure or Partial Failure."""

    id: str
    provider: str
    vehicle: str
    pad: str
    location: str
    lat: float
    lon: float
    mission: str
    kind: str
    net: float
    precision: str  # SEC, MIN, HR, DAY or M
    code: str

    @property
    def name(self) -> str:
        return f"{self.vehicle} | {self.mission}"


def launches(world: World) -> list[SimLaunch]:
    """Return all listed launches, by time. With `launches.quiet` pinned to 1, none from two
    hours ago to 13 hours ahead.
    """
    listed = [*_regular(world), *_reserve(world), *_injected(world)]
    if world.pinned("launches.quiet") == 1:
        listed = [launch for launch in listed if not -2 * HOUR < launch.net - world.now < 13 * HOUR]
    return sorted(listed, key=lambda launch: launch.net)


def _regular(world: World) -> list[SimLaunch]:
    first, last = math.floor((world.now - RECENT_S) / REGULAR_S), math.floor((world.now + AHEAD_S) / REGULAR_S)
    planned = [_planned(world, index) for index in range(first, last + 1)]
    return [launch for launch in planned if launch.net > world.now - RECENT_S]


def _planned(world: World, index: int) -> SimLaunch:
    provider, vehicle, pad, location, lat, lon = world.pick("launch.rocket", index, ROCKETS)
    title, kind = world.pick("launch.mission", index, MISSIONS)
    crewed = index % 8 == 0
    net = round((index + world.between("launch.at", index, 0.25, 0.75)) * REGULAR_S)
    precision, code, shown = _known(world, index, net)
    return SimLaunch(
        f"00000000-0000-4000-8000-{index:012d}",
        provider,
        vehicle,
        pad,
        location,
        lat,
        lon,
        f"Crew Rotation {index}" if crewed else f"{title} {index}",
        "Human Exploration" if crewed else kind,
        shown,
        precision,
        code if shown > world.now else _outcome(world, index, net),
    )


def _known(world: World, index: int, net: float) -> tuple[str, str, float]:
    """Return the precision of a time: the second shortly before the launch, the day or the month long before."""
    left = net - world.now
    if index % 6 == 5 and left > 5 * DAY:
        return "M", "TBD", _month_end(net)
    if index % 3 == 2 and left > 3 * DAY:
        return "DAY", "TBC", net - net % DAY
    if left > 4 * DAY:
        return "HR", "Go", net - net % HOUR
    return ("SEC", "Go", net) if left < 12 * HOUR else ("MIN", "Go", net - net % 60)


def _month_end(at: float) -> float:
    """Return midnight of the last day of the month."""
    day = datetime.fromtimestamp(at, UTC)
    following = datetime(day.year + day.month // 12, day.month % 12 + 1, 1, tzinfo=UTC)
    return following.timestamp() - DAY


def _outcome(world: World, index: object, net: float) -> str:
    if world.now < net + ASCENT_S:
        return "In Flight"
    luck = world.u("launch.luck", index)
    return "Failure" if luck < 0.08 else "Partial Failure" if luck < 0.12 else "Success"


def _reserve(world: World) -> list[SimLaunch]:
    first, last = math.floor((world.now - 2 * HOUR) / RESERVE_S), math.floor((world.now + HOUR) / RESERVE_S)
    rideshares = []
    for index in range(first, last + 1):
        net = round(index * RESERVE_S + 480 * world.u("reserve.at", index))
        code = "Go" if net > world.now else _outcome(world, f"r{index}", net)
        identity = f"00000000-0000-4000-9000-{index:012d}"
        rideshares.append(SimLaunch(identity, *SMALL, f"Rideshare {index}", "Technology", net, "SEC", code))
    return [launch for launch in rideshares if -RESERVE_RECENT_S < launch.net - world.now < HOUR]


def _injected(world: World) -> list[SimLaunch]:
    """Return injected events of the kind `launch`, listed from the start: `at` is when it flies."""
    injected = []
    for event in (e for e in world.edits.events if e["kind"] == "launch"):
        net = float(event["at"])
        code = str(event.get("status") or ("Go" if net > world.now else _outcome(world, net, net)))
        kind = "Human Exploration" if event.get("crewed") else str(event.get("mission_type", "Test Flight"))
        mission = str(event.get("mission", "Injected"))
        identity = f"00000000-0000-4000-a000-{int(net):012d}"
        injected.append(SimLaunch(identity, *SMALL, mission, kind, net, "SEC", code))
    return [launch for launch in injected if launch.net > world.now - RECENT_S]


class SimPerson(NamedTuple):
    """Someone in orbit. `station` is None for the mannequin, which is not human."""

    id: int
    name: str
    agency: tuple[str, str]  # name and abbreviation
    station: str | None
    ship: str
    launched: float
    first_flight: float


ISS, TIANGONG = "International Space Station", "Tiangong space station"
TOUR_S = 180 * DAY
NASA = ("National Aeronautics and Space Administration", "NASA")
ROSCOSMOS = ("Russian Federal Space Agency (ROSCOSMOS)", "RFSA")
ESA, CNSA = ("European Space Agency", "ESA"), ("China National Space Administration", "CNSA")
SHIPS = [
    (ISS, "Crew Dragon", 0.0, [NASA, NASA, ESA, ROSCOSMOS]),
    (ISS, "Soyuz MS", 0.5, [ROSCOSMOS, ROSCOSMOS, NASA]),
    (TIANGONG, "Shenzhou", 0.25, [CNSA, CNSA, CNSA]),
]
GIVEN = ["Ada", "Bo", "Chen", "Dara", "Élise", "Fyodor", "Gita", "Hana", "Ivo", "Jun", "Kari", "Lev"]
FAMILY = ["Arden", "Brandt", "Ciobanu", "Dvořák", "Eriksen", "Feng", "Grigoryev", "Hoshide", "Ito", "Jansen"]


def people(world: World) -> list[SimPerson]:
    """Return seven people on the ISS and three on Tiangong, each crew for half a year, and a mannequin in a car."""
    crews = []
    for ship, (station, name, phase, agencies) in enumerate(SHIPS):
        tour = math.floor(world.now / TOUR_S - phase)
        launched = (tour + phase) * TOUR_S
        for seat, agency in enumerate(agencies):
            key = f"{ship}.{tour}.{seat}"
            first_name = GIVEN[(4 * ship + seat + tour) % len(GIVEN)]  # twelve for ten people, so that all names differ
            full = f"{first_name} {world.pick('crew.family', key, FAMILY)}"
            identity = 1000 + tour * 100 + ship * 10 + seat
            first = launched - world.between("crew.first", key, 0, 9) * 365 * DAY
            crews.append(SimPerson(identity, full, agency, station, f"{name} {tour + 20}", launched, first))
    return [*crews, SimPerson(278, "Starman", ("SpaceX", "SpX"), None, "Roadster", 1517950000, 1517950000)]


def humans(world: World) -> list[SimPerson]:
    return [person for person in people(world) if person.station]
