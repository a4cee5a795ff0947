"""Get the people in space, and assign them to their craft."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

import anyio

from tools.sources.corquaid import PEOPLE, Traveller, newest
from tools.sources.launch_library import ASTRONAUTS, EXPEDITIONS, Astronaut, Expedition
from toolserver import Fallback, FallbackReader, SourceError, delay_second, via

SOURCES = (ASTRONAUTS, EXPEDITIONS, PEOPLE)
PACED_S = 6.0  # after a burst a request to Launch Library waits for its turn
CHECK_S = 1.5  # how long the second list may delay the first one
SHORT = {"International Space Station": "ISS"}


class Person(NamedTuple):
    """A human in space. `id` is Launch Library's; `craft` is None when unknown."""

    name: str
    agency: str | None
    craft: str | None = None
    id: int | None = None


class Crew(NamedTuple):
    """Everyone in space; the size of another list, if one was read; the newest launch, if it dates the list."""

    people: tuple[Person, ...]
    listed_elsewhere: int | None = None
    newest_launch: datetime | None = None


def crew() -> tuple[Fallback[Crew], ...]:
    """Return the fallbacks: Launch Library's roster, compared with the other list; the other list alone."""
    return delay_second(roster, via(PEOPLE, None, from_list), PACED_S)


async def roster(reading: FallbackReader) -> Crew:
    """Read the roster and, if it arrives soon, the length of the other list, both requested at the same time."""
    astronauts: tuple[Astronaut, ...] = ()
    others: tuple[Traveller, ...] | None = None
    failed: list[SourceError] = []

    async def compare() -> None:
        nonlocal others
        others = await reading.attempt(PEOPLE, within_s=CHECK_S)
        reading.asked = ASTRONAUTS  # if another fallback overtakes this one, the missing roster is the cause

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(compare)
        try:
            astronauts = await reading.read(ASTRONAUTS)
        except SourceError as error:
            failed.append(error)
            tasks.cancel_scope.cancel()
    if failed:
        reading.asked = ASTRONAUTS
        raise failed[0]
    return Crew(tuple(map(from_astronaut, astronauts)), len(others) if others else None)


def from_astronaut(astronaut: Astronaut) -> Person:
    return Person(astronaut.name, astronaut.agency, id=astronaut.id)


def from_list(travellers: Iterable[Traveller]) -> Crew:
    listed = tuple(travellers)
    people = (Person(t.name, t.agency, "ISS" if t.on_iss else t.spacecraft) for t in listed)
    return Crew(tuple(people), newest_launch=newest(listed))


def aboard(people: Iterable[Person], expeditions: Iterable[Expedition]) -> tuple[Person, ...]:
    """Return the people with the station whose crew they belong to; None for people of no expedition."""
    stations = {member: station_name(e.station) for e in expeditions for member in e.crew}
    return tuple(person._replace(craft=stations.get(person.id)) if person.id else person for person in people)


def station_name(station: str) -> str:
    """Return the usual short name."""
    if station.startswith("Tiangong"):
        return "Tiangong"
    return SHORT.get(station, station)
