"""Read Launch Library 2 by The Space Devs: launches, people in space, crews of stations (JSON, no key).

LL2_TOKEN raises the budget from 12 to 60 requests an hour.

https://ll.thespacedevs.com/docs/
"""

from datetime import datetime
from typing import Any, NamedTuple

from tools.parsing.fields import NAME, clean, clean_or_none, from_iso, number, optional, positive, web_url, within
from tools.parsing.spaceflight import LEAST_PEOPLE, MOST_PEOPLE, Launch, Precision
from tools.sources.hosts import DAY, HOUR, LL2, MINUTE
from toolserver import MIB, Get, Keys, Licence, Proof, Source, SourceChanged, read_rows

API = "https://ll.thespacedevs.com/2.3.0"
LICENCE = Licence("unclear", "The Space Devs (Launch Library 2)", "https://thespacedevs.com/llapi")

PRECISIONS: dict[str, Precision] = {"SEC": "second", "MIN": "minute", "HR": "hour", "DAY": "day", "M": "month"}


def _asked(path: str, keys: Keys, **params: str) -> Get:
    token = keys.get("LL2_TOKEN")
    headers = {"Authorization": f"Token {token}"} if token else {}
    return Get(f"{API}/{path}/", params=params | {"format": "json"}, headers=headers)


def launches_request(query: None, keys: Keys) -> Get:
    return _asked("launches/upcoming", keys, limit="15", mode="normal", ordering="net")


def parse_launches(body: Any, query: None) -> tuple[Launch, ...]:
    """Return every launch of the answer, in its order. Some have flown: they stay listed for a while."""
    return read_rows(body["results"], _launch)


def _launch(launch: dict[str, Any]) -> Launch:
    mission, pad = launch.get("mission"), launch.get("pad")
    details = mission if isinstance(mission, dict) else {}
    place = pad.get("location") if isinstance(pad, dict) else launch.get("location")
    vehicle = (launch.get("rocket") or {}).get("configuration") or {}
    lat, lon = optional(_place, pad) or (None, None)
    return Launch(
        id=clean(str(launch["id"]), 60),
        name=clean(launch["name"]),
        provider=_name(launch.get("launch_service_provider")) or clean_or_none(launch.get("lsp_name"), NAME),
        vehicle=clean_or_none(vehicle.get("full_name") or vehicle.get("name"), NAME),
        mission=_name(mission),
        mission_type=clean_or_none(details.get("type") or launch.get("mission_type"), NAME),
        status=clean(launch["status"]["name"], NAME),
        status_code=clean_or_none(launch["status"].get("abbrev"), 40),
        net=from_iso(launch["net"]),
        precision=_precision(launch.get("net_precision")),
        window_start=optional(from_iso, launch.get("window_start")),
        window_end=optional(from_iso, launch.get("window_end")),
        pad=_name(pad),
        location=_name(place),
        url=web_url(launch.get("url")),
        updated_at=optional(from_iso, launch.get("last_updated")),
        lat=lat,
        lon=lon,
    )


def _place(pad: dict[str, Any]) -> tuple[float, float]:
    """Return latitude and longitude of a pad, which version 2.2.0 wrote as text; the list mode has none."""
    return within(number(pad["latitude"]), -90, 90), within(number(pad["longitude"]), -180, 180)


def _name(value: Any) -> str | None:
    """Return the name of an object, or the plain string that the list mode has."""
    return clean_or_none(value.get("name") if isinstance(value, dict) else value, NAME)


def _precision(value: Any) -> Precision:
    abbreviation = value.get("abbrev") if isinstance(value, dict) else None
    return PRECISIONS.get(abbreviation, "unknown") if isinstance(abbreviation, str) else "unknown"


LAUNCHES = Source(
    "LaunchLibrary.upcoming_launches",
    launches_request,
    parse_launches,
    licence=LICENCE,
    hosts=LL2,
    fresh_s=10 * MINUTE,
    timeout_s=15,
    max_bytes=4 * MIB,
    newest=lambda launches: max((launch.updated_at for launch in launches if launch.updated_at), default=None),
    least=3,
    proof=Proof.by_newest(3 * DAY),
    untrusted=True,
)


class Astronaut(NamedTuple):
    """A human in space."""

    id: int
    name: str
    agency: str | None


def astronauts_request(query: None, keys: Keys) -> Get:
    return _asked("astronauts", keys, in_space="true", is_human="true", limit="60", mode="normal")


def parse_astronauts(body: Any, query: None) -> tuple[Astronaut, ...]:
    """Return everyone in space who is human: the list includes a mannequin."""
    if body.get("next"):
        raise SourceChanged(f"more than one page: {body.get('count')!r:.20} people")
    people = read_rows(
        body["results"], lambda person: None if _name(person.get("type")) == "Non-Human" else _astronaut(person)
    )
    if len(people) > MOST_PEOPLE:
        raise SourceChanged(f"{len(people)} people")
    return people


def _astronaut(person: dict[str, Any]) -> Astronaut:
    agency = person.get("agency")
    short = clean_or_none(agency.get("abbrev"), NAME) if isinstance(agency, dict) else None
    return Astronaut(int(positive(person["id"])), clean(person["name"], NAME), short or _name(agency))


ASTRONAUTS = Source(
    "LaunchLibrary.astronauts_in_space",
    astronauts_request,
    parse_astronauts,
    licence=LICENCE,
    hosts=LL2,
    fresh_s=6 * HOUR,
    ageless="crews change months apart, and people carry no timestamp",
    keep_s=2 * DAY,
    timeout_s=15,
    least=LEAST_PEOPLE,
    untrusted=True,
)


class Expedition(NamedTuple):
    """A crew on a station, by the ids of its members."""

    name: str
    station: str
    started_at: datetime | None
    crew: frozenset[int]


def expeditions_request(query: None, keys: Keys) -> Get:
    return _asked("expeditions", keys, is_active="true", mode="detailed", limit="10")


def parse_expeditions(body: Any, query: None) -> tuple[Expedition, ...]:
    """Return every active expedition that has a crew."""
    return tuple(expedition for expedition in read_rows(body["results"], _expedition) if expedition.crew)


def _expedition(expedition: dict[str, Any]) -> Expedition:
    return Expedition(
        clean(expedition["name"], NAME),
        clean(expedition["spacestation"]["name"], NAME),
        optional(from_iso, expedition.get("start")),
        frozenset(int(positive(member["astronaut"]["id"])) for member in expedition.get("crew") or []),
    )


EXPEDITIONS = Source(
    "LaunchLibrary.active_expeditions",
    expeditions_request,
    parse_expeditions,
    licence=LICENCE,
    hosts=LL2,
    fresh_s=6 * HOUR,
    ageless="an expedition lasts for months: the newest may have begun half a year ago",
    keep_s=2 * DAY,
    timeout_s=25,
    max_bytes=8 * MIB,
    newest=lambda expeditions: max((e.started_at for e in expeditions if e.started_at), default=None),
    untrusted=True,
)
