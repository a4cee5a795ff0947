"""Simulate Launch Library 2 on the wire: launches, astronauts, expeditions."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tools.simulated.spaceflight import FLOWN, HOUR, ISS, TIANGONG, SimLaunch, SimPerson, humans, launches, people
from toolserver.world.model import Ask, Handler, Reply, World, expects, serves

HOST = "ll.thespacedevs.com"
API = f"https://{HOST}/2.3.0"
STATUSES = {
    "Go": (1, "Go for Launch"),
    "TBD": (2, "To Be Determined"),
    "Success": (3, "Launch Successful"),
    "Failure": (4, "Launch Failure"),
    "In Flight": (6, "Launch in Flight"),
    "Partial Failure": (7, "Launch was a Partial Failure"),
    "TBC": (8, "To Be Confirmed"),
}
PRECISIONS = {"SEC": (0, "Second"), "MIN": (1, "Minute"), "HR": (2, "Hour"), "DAY": (5, "Day"), "M": (7, "Month")}
FORMS = {
    "limited": Reply.json(
        {"detail": "Request was throttled. Expected available in 1234 seconds."}, 429, headers={"Retry-After": "1234"}
    ),
    "auth": Reply.json({"detail": "Invalid token."}, 401),
}


def _guarded(handler: Handler) -> Handler:
    """Wrap a handler so that it refuses unknown tokens; a token is optional."""

    def answer(world: World, ask: Ask) -> Reply:
        token = ask.headers.get("authorization")
        if token is not None and not ask.key_ok(token.removeprefix("Token ")):
            return FORMS["auth"]
        return handler(world, ask)

    return answer


def _page(results: list[dict[str, Any]], ask: Ask, count: int | None = None) -> Reply:
    total, size = len(results) if count is None else count, int(ask.params.get("limit", "10"))
    more = f"{API}{ask.path.removeprefix('/2.3.0')}?limit={size}&offset={size}" if total > size else None
    return Reply.json({"count": total, "next": more, "previous": None, "results": results[:size]})


def _nothing(world: World, ask: Ask) -> Reply:
    return _page([], ask)


@serves("LaunchLibrary.upcoming_launches", HOST, "/2.3.0/launches/upcoming/", forms=FORMS)
@_guarded
def upcoming(world: World, ask: Ask) -> Reply:
    return _page([_launch(world, launch) for launch in launches(world)], ask, count=363)


@serves("LaunchLibrary.astronauts_in_space", HOST, "/2.3.0/astronauts/", forms=FORMS)
@_guarded
def astronauts(world: World, ask: Ask) -> Reply:
    """Return the astronauts, including the mannequin although the query wants humans only."""
    return _page([_astronaut(world, person) for person in people(world)], ask)


@serves("LaunchLibrary.active_expeditions", HOST, "/2.3.0/expeditions/", forms=FORMS)
@_guarded
def expeditions(world: World, ask: Ask) -> Reply:
    return _page([_expedition(world, number, station) for number, station in ((80, ISS), (81, TIANGONG))], ask)


for route in (upcoming, astronauts, expeditions):
    route.form("empty")(_nothing)


@upcoming.form("drift")
def list_mode(world: World, ask: Ask) -> Reply:
    """Return the list of version 2.2.0: provider, pad, location and mission are plain text, the vehicle is missing."""
    rows = []
    for launch in launches(world):
        row = _launch(world, launch)
        plain = {"lsp_name": launch.provider, "pad": launch.pad, "location": launch.location, "mission": launch.mission}
        gone = ("launch_service_provider", "rocket", "program", "response_mode")
        more = {"mission_type": launch.kind, "type": "list"}
        rows.append({k: v for k, v in row.items() if k not in gone} | plain | more)
    return _page(rows, ask, count=363)


def _launch(world: World, launch: SimLaunch) -> dict[str, Any]:
    number, status = STATUSES[launch.code]
    level, precision = PRECISIONS[launch.precision]
    return {
        "id": launch.id,
        "url": f"{API}/launches/{launch.id}/",
        "name": launch.name,
        "response_mode": "normal",
        "slug": "-".join("".join(c if c.isalnum() else " " for c in launch.name.lower()).split()),
        "launch_designator": None,
        "status": {"id": number, "name": status, "abbrev": launch.code, "description": f"{status}."},
        "last_updated": _iso(world.now - world.now % HOUR),
        "net": _iso(launch.net),
        "net_precision": {
            "id": level,
            "name": precision,
            "abbrev": launch.precision,
            "description": f"The T-0 is accurate to the {precision.lower()}.",
        },
        "window_end": _iso(launch.net + 2 * HOUR),
        "window_start": _iso(launch.net),
        "image": None,
        "infographic": None,
        "probability": 90 if launch.code == "Go" else None,
        "weather_concerns": None,
        "failreason": "Lost in the simulation." if launch.code == "Failure" else "",
        "hashtag": None,
        "launch_service_provider": {
            "response_mode": "list",
            "id": 121,
            "url": f"{API}/agencies/121/",
            "name": launch.provider,
            "abbrev": launch.provider[:4],
            "type": {"id": 3, "name": "Commercial"},
        },
        "rocket": {"id": 1, "configuration": _rocket(launch)},
        "webcast_live": launch.code == "In Flight",
        "program": [],
        **_flight(launch),
    }


def _flight(launch: SimLaunch) -> dict[str, Any]:
    return {
        "mission": {
            "id": 1,
            "name": launch.mission,
            "type": launch.kind,
            "description": "A simulated payload.",
            "orbit": {"id": 8, "name": "Low Earth Orbit", "abbrev": "LEO"},
        },
        "pad": {
            "id": 1,
            "name": launch.pad,
            "latitude": launch.lat,
            "longitude": launch.lon,
            "location": {"id": 1, "name": launch.location},
        },
    }


def _rocket(launch: SimLaunch) -> dict[str, Any]:
    name = launch.vehicle.removesuffix(" Block 5")
    return {"response_mode": "list", "id": 1, "name": name, "full_name": launch.vehicle, "variant": ""}


def _astronaut(world: World, person: SimPerson) -> dict[str, Any]:
    name, short = person.agency
    days = int((world.now - person.launched) / 86400)
    return {
        "id": person.id,
        "url": f"{API}/astronauts/{person.id}/",
        "name": person.name,
        "status": {"id": 1, "name": "Active"},
        "agency": {"response_mode": "list", "id": 44, "name": name, "abbrev": short},
        "image": None,
        "response_mode": "normal",
        "type": {"id": 2, "name": "Government"} if person.station else {"id": 6, "name": "Non-Human"},
        "in_space": True,
        "time_in_space": f"P{days}DT1H2M3S",
        "age": 45,
        "bio": "A simulated life.",
        "last_flight": _iso(person.launched),
        "first_flight": _iso(person.first_flight),
    }


def _expedition(world: World, number: int, station: str) -> dict[str, Any]:
    crew = [person for person in humans(world) if person.station == station]
    return {
        "id": number,
        "url": f"{API}/expeditions/{number}/",
        "name": f"Expedition {number}",
        "start": _iso(max(person.launched for person in crew)),
        "end": None,
        "spacestation": {"id": 4 if station == ISS else 18, "name": station, "orbit": "Low Earth Orbit"},
        "crew": [
            {"id": seat, "role": {"id": 1, "role": "Flight Engineer"}, "astronaut": _astronaut(world, person)}
            for seat, person in enumerate(crew)
        ],
    }


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@expects("launches")
def expected_launches(world: World, params: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the launches that `/api/launches` must list at this instant when Launch Library answers."""
    open_ = [x for x in launches(world)[:15] if x.code not in FLOWN and x.net > world.now]
    return [{"id": x.id, "name": x.name, "provider": x.provider, "status_code": x.code} for x in open_[:10]]


@expects("humans-in-space")
def expected_humans(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the people that `/api/humans-in-space` must list at this instant when Launch Library answers."""
    crafts = {ISS: "ISS", TIANGONG: "Tiangong"}
    listed = sorted((crafts[str(person.station)], person.name, person.agency[1]) for person in humans(world))
    people_ = [{"name": name, "craft": craft, "agency": agency} for craft, name, agency in listed]
    return {"count": len(people_), "people": people_}
