"""The list of people in space that is kept by hand."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.corquaid  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask
from tools.simulated.spaceflight import ISS, humans
from tools.sources.corquaid import LONGEST_S, PEOPLE, newest, parse
from toolserver.upstream.source import SourceChanged
from toolserver.world.model import World

PERSON = {
    "id": 1,
    "name": "Ada Arden",
    "country": "Nowhere",
    "agency": "ESA",
    "position": "Flight Engineer",
    "spacecraft": "Soyuz MS-99",
    "launched": 1663761240,
    "iss": True,
}


def test_a_person_parses_to_its_values_and_the_newest_launch_dates_the_list():
    later = PERSON | {"name": "Bo", "launched": 1677731640, "iss": False}
    people = parse({"number": 2, "people": [PERSON, later]}, None)

    assert people[0] == ("Ada Arden", "ESA", "Soyuz MS-99", True, datetime(2022, 9, 21, 11, 54, tzinfo=UTC))
    assert newest(people) == datetime(2023, 3, 2, 4, 34, tzinfo=UTC)
    assert PEOPLE.newest_max_s == LONGEST_S == 240 * 86400


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        "<html>",
        {},
        {"people": None},
        {"people": [None]},
        {"people": [{}]},
        {"people": [PERSON] * 31},
        {"people": [PERSON | {"launched": None}] * 7},
        {"people": [PERSON | {"name": None}]},
        {"people": [{name: value for name, value in PERSON.items() if name != "iss"}] * 7},
    ],
)
def test_what_is_not_a_dated_list_of_people_is_refused(body):
    with pytest.raises((SourceChanged, KeyError, TypeError, AttributeError)):
        parse(body, None)


def test_members_that_are_missing_are_null():
    (first, _) = parse({"people": [{"name": "Bo"}, PERSON]}, None)
    assert first == ("Bo", None, None, False, None)


@given(st.lists(st.text(), min_size=1, max_size=6))
def test_parse_never_invents_or_drops_a_person(names):
    assert len(parse({"people": [PERSON | {"name": name} for name in names]}, None)) == len(names)


def test_the_twin_lists_the_humans_of_the_world():
    people = ask(PEOPLE)
    assert [(p.name, p.on_iss) for p in people] == [(p.name, p.station == ISS) for p in humans(World(1, NOW))]
    assert NOW - newest(people).timestamp() < LONGEST_S


def test_the_drifted_form_is_read_like_the_usual_one_and_nobody_is_no_answer():
    assert ask(PEOPLE, form="drift") == ask(PEOPLE)
    assert len(ask(PEOPLE, form="empty")) < PEOPLE.least
