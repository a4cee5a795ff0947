"""The tool for who is in space."""

import pytest

import tools.simulated.corquaid
import tools.simulated.launch_library  # noqa: F401 - registers its routes
from tests.tools.desk import NOW
from tools.free.humans_in_space import humans_in_space
from tools.shared.crew import Person, aboard, station_name
from tools.simulated.spaceflight import humans
from tools.sources.launch_library import Expedition
from toolserver.upstream.source import SourceError
from toolserver.world.model import ROUTES, Edits, World

ROSTER, CREWS, LIST = (
    "LaunchLibrary.astronauts_in_space",
    "LaunchLibrary.active_expeditions",
    "Corquaid.people_in_space",
)


async def test_people_come_by_craft_and_name_and_equal_the_world(compose):
    made = await compose(humans_in_space)

    expected = ROUTES.expectations["humans-in-space"](World(1, NOW), {})
    assert {k: made.json[k] for k in ("count", "people")} == expected
    assert made.json["count"] == 10
    assert (made.json["as_of"], made.json["as_of_kind"]) == ("2027-01-15T08:00:00Z", "checked")
    assert {n.source.name for n in made.notes.sources} == {ROSTER, CREWS, LIST}
    assert not made.notes.warnings


async def test_without_the_crews_of_the_stations_the_craft_is_unknown_and_the_count_stands(compose):
    made = await compose(humans_in_space, down={CREWS})
    assert made.json["count"] == 10
    assert {p["craft"] for p in made.json["people"]} == {"unknown"}
    assert [(w.section, w.code) for w in made.notes.warnings] == [("data.craft", "section_unavailable")]


async def test_without_the_roster_the_list_kept_by_hand_answers_with_its_own_date(compose):
    made = await compose(humans_in_space, down={ROSTER})

    assert made.json["count"] == 10
    crafts = [p["craft"] for p in made.json["people"]]
    assert crafts.count("ISS") == 7
    assert {c.split()[0] for c in crafts} == {"ISS", "Shenzhou"}
    assert made.json["as_of_kind"] == "newest_launch"
    assert made.json["as_of"] < "2027-01-15"
    assert [w.code for w in made.notes.warnings] == ["fallback_used"]


async def test_when_the_two_lists_differ_the_first_is_shown_and_the_answer_says_so(compose):
    lagging = World(1, NOW, Edits(pins={"crew.missing": [(NOW - 60, NOW + 60, 4)]}))
    made = await compose(humans_in_space, world=lagging)
    assert made.json["count"] == len(humans(lagging)) == 10
    assert [(w.code, w.source) for w in made.notes.warnings] == [("disagreement", LIST)]


async def test_a_second_list_that_is_down_is_not_missed(compose):
    made = await compose(humans_in_space, down={LIST})
    assert made.json["count"] == 10
    assert not made.notes.warnings


@pytest.mark.parametrize(
    "faults", [{"down": {"*"}}, {"down": {ROSTER, LIST}}, {"forms": {ROSTER: "empty", LIST: "empty"}}]
)
async def test_when_nobody_answers_nothing_is_invented(compose, faults):
    with pytest.raises(SourceError):
        await compose(humans_in_space, **faults)


def test_craft_comes_from_the_station_whose_crew_holds_the_person():
    crews = [
        Expedition("Expedition 80", "International Space Station", None, frozenset({1})),
        Expedition("Shenzhou", "Tiangong space station", None, frozenset({2})),
        Expedition("Haven", "Haven-1", None, frozenset({3})),
    ]
    people = aboard([Person("A", None, id=i) for i in (1, 2, 3, 4)], crews)
    assert [p.craft for p in people] == ["ISS", "Tiangong", "Haven-1", None]
    assert station_name("Tiangong") == "Tiangong"
