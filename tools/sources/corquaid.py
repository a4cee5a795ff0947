"""Read the people in space from a hand-maintained list in a public repository (JSON, no key).

https://github.com/corquaid/international-space-station-APIs
"""

from datetime import datetime
from typing import Any, NamedTuple

from tools.parsing.fields import NAME, clean, clean_or_none, from_epoch, optional
from tools.parsing.spaceflight import LEAST_PEOPLE, MOST_PEOPLE
from tools.sources.hosts import DAY, HOUR, other
from toolserver import Get, Licence, Source, SourceChanged, read_rows

PEOPLE_URL = "https://corquaid.github.io/international-space-station-APIs/JSON/people-in-space.json"
# The repository, which has the list, is under the MIT licence.
LICENCE = Licence(
    "attribution",
    "corquaid/international-space-station-APIs (MIT)",
    "https://github.com/corquaid/international-space-station-APIs",
)
LONGEST_S = 240 * 86400  # crews change more often than that: an older list is abandoned


class Traveller(NamedTuple):
    """A human in space. `spacecraft` is the craft they arrived in; they are on board the ISS when `on_iss`."""

    name: str
    agency: str | None
    spacecraft: str | None
    on_iss: bool
    launched_at: datetime | None


def parse(body: Any, query: None) -> tuple[Traveller, ...]:
    """Return everyone on the list."""
    people = read_rows(body["people"], _traveller)
    if len(people) > MOST_PEOPLE:
        raise SourceChanged(f"{len(people)} people")
    if people and not any("iss" in person for person in body["people"]):
        raise SourceChanged("no person is said to be on the ISS or not")
    if people and newest(people) is None:
        raise SourceChanged("no person has a launch date")
    return people


def _traveller(person: dict[str, Any]) -> Traveller:
    return Traveller(
        clean(person["name"], NAME),
        clean_or_none(person.get("agency"), NAME),
        clean_or_none(person.get("spacecraft"), NAME),
        person.get("iss") is True,
        optional(from_epoch, person.get("launched")),
    )


def newest(people: tuple[Traveller, ...]) -> datetime | None:
    return max((person.launched_at for person in people if person.launched_at), default=None)


PEOPLE = Source(
    "Corquaid.people_in_space",
    Get(PEOPLE_URL),
    parse,
    licence=LICENCE,
    hosts=other("corquaid"),
    fresh_s=6 * HOUR,
    keep_s=2 * DAY,
    timeout_s=10,
    conditional=True,
    newest=newest,
    newest_max_s=LONGEST_S,
    least=LEAST_PEOPLE,
    untrusted=True,
)
