"""Simulate the hand-maintained list of people in space on the wire."""

from typing import Any

from tools.simulated.spaceflight import ISS, SimPerson, humans
from toolserver.world.model import Ask, Reply, World, serves

AGENCIES = {"RFSA": "Roscosmos"}


def _answer(rows: list[dict[str, Any]]) -> Reply:
    body = {"number": len(rows), "iss_expedition": 80, "expedition_url": "https://en.wikipedia.org/wiki/ISS"}
    return Reply.json(body | {"people": rows}, content_type="application/json; charset=utf-8")


@serves(
    "Corquaid.people_in_space",
    "corquaid.github.io",
    "/international-space-station-APIs/JSON/people-in-space.json",
    forms={"empty": _answer([])},
)
def people_in_space(world: World, ask: Ask) -> Reply:
    """Return everyone; with `crew.missing` pinned, that many people are not on the list yet."""
    missing = int(world.pinned("crew.missing") or 0)
    listed = humans(world)[missing:]
    return _answer([_person(number, person) for number, person in enumerate(listed, 1)])


@people_in_space.form("drift")
def bare(world: World, ask: Ask) -> Reply:
    """Return only the members that were always in the list, with numbers as text."""
    rows = [_person(number, person) for number, person in enumerate(humans(world), 1)]
    members = ("name", "country", "agency", "position", "spacecraft", "iss")
    return _answer([{k: row[k] for k in members} | {"launched": str(row["launched"])} for row in rows])


def _person(number: int, person: SimPerson) -> dict[str, Any]:
    short = person.agency[1]
    return {
        "id": number,
        "name": person.name,
        "country": "Nowhere",
        "flag_code": "xx",
        "agency": AGENCIES.get(short, short),
        "position": "Flight Engineer",
        "spacecraft": person.ship,
        "launched": int(person.launched),
        "iss": person.station == ISS,
        "days_in_space": 0,
        "url": "https://en.wikipedia.org/wiki/Astronaut",
        "image": "https://upload.wikimedia.org/astronaut.jpg",
    }
