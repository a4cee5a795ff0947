"""Launch Library 2: launches, astronauts, expeditions, and the spaceflight of the simulated world."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.launch_library  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask
from tools.shared.launches import flown, is_crewed
from tools.simulated.spaceflight import humans, launches
from tools.sources.launch_library import (
    ASTRONAUTS,
    EXPEDITIONS,
    LAUNCHES,
    astronauts_request,
    launches_request,
    parse_astronauts,
    parse_expeditions,
    parse_launches,
)
from toolserver.upstream.source import SourceChanged, SourceDown
from toolserver.world.model import Edits, World

LAUNCH = {
    "id": "e1079d3a",
    "name": "Falcon 9 | Starlink",
    "status": {"id": 1, "name": "Go for Launch", "abbrev": "Go"},
    "net": "2026-07-20T14:49:32Z",
}
BROKEN = [None, [], "<html>", {}, {"detail": "Request was throttled."}, {"results": [None]}, {"results": [{}]}]


def test_no_key_is_needed_and_a_token_raises_the_budget():
    assert launches_request(None, {}).headers == {}
    assert launches_request(None, {"LL2_TOKEN": "sim-x"}).headers == {"Authorization": "Token sim-x"}
    assert astronauts_request(None, {}).params["is_human"] == "true"


def test_a_recorded_list_in_which_everything_is_plain_text_parses_to_its_values(sample):
    listed = parse_launches(json.loads(sample("thespacedevs/launch-upcoming-list-2026-07.json")), None)

    assert len(listed) == 10
    first = listed[0]
    assert first.name == "Falcon 9 Block 5 | Starlink Group 17-39"
    assert (first.provider, first.mission, first.mission_type) == ("SpaceX", "Starlink Group 17-39", "Communications")
    assert (first.pad, first.location) == ("Space Launch Complex 4E", "Vandenberg SFB, CA, USA")
    assert (first.lat, first.lon) == (None, None)
    assert first.net == datetime(2026, 7, 20, 14, 49, 32, tzinfo=UTC)
    assert (first.status, first.status_code, first.precision) == ("Go for Launch", "Go", "second")
    assert [launch.precision for launch in listed[:4]] == ["second", "minute", "hour", "hour"]
    assert (listed[9].precision, listed[9].status_code) == ("month", "TBD")


def test_a_recorded_detailed_list_parses_to_its_values(sample):
    listed = parse_launches(json.loads(sample("thespacedevs/launch-upcoming-2.2.0-detailed-2026-07.json")), None)

    assert [launch.vehicle for launch in listed[:2]] == ["Falcon 9 Block 5", "Long March 7A"]
    assert (listed[3].mission, listed[3].mission_type) == ("NROL-95", "Government/Top Secret")
    assert (listed[3].pad, listed[3].location) == ("Space Launch Complex 40", "Cape Canaveral SFS, FL, USA")
    assert (listed[0].lat, listed[0].lon) == (34.632, -120.611)
    assert listed[3].window_start == datetime(2026, 7, 30, 6, 37, tzinfo=UTC)
    assert LAUNCHES.newest(listed) == max(launch.updated_at for launch in listed)


def test_a_recorded_list_without_precision_has_unknown_precision(sample):
    listed = parse_launches(json.loads(sample("thespacedevs/launch-upcoming-2.0.0-normal-2026-06.json")), None)
    assert {launch.precision for launch in listed} == {"unknown"}
    assert {launch.status_code for launch in listed} == {None}
    assert listed[0].location == "Vandenberg SFB, CA, USA"


@pytest.mark.parametrize(
    "pad",
    [
        {"latitude": "34.6", "longitude": None},
        {"latitude": 91, "longitude": 0},
        {"latitude": 0, "longitude": -181},
        {"latitude": "<b>", "longitude": 0},
        "Pad 3",
    ],
)
def test_a_place_that_cannot_be_read_is_none_and_the_launch_stays(pad):
    (launch,) = parse_launches({"results": [LAUNCH | {"pad": pad}]}, None)
    assert (launch.name, launch.lat, launch.lon) == ("Falcon 9 | Starlink", None, None)


@pytest.mark.parametrize("parse", [parse_launches, parse_astronauts, parse_expeditions])
@pytest.mark.parametrize("body", BROKEN)
def test_what_is_not_a_page_of_results_is_refused(parse, body):
    with pytest.raises((SourceChanged, KeyError, TypeError, AttributeError)):
        parse(body, None)


@pytest.mark.parametrize("member", list(LAUNCH))
def test_a_launch_without_a_required_member_is_a_changed_source(member):
    with pytest.raises(KeyError):
        parse_launches({"results": [{k: v for k, v in LAUNCH.items() if k != member}]}, None)


def test_a_launch_of_which_little_is_known_is_still_a_launch():
    odd = {
        "mission": None,
        "pad": None,
        "rocket": None,
        "net_precision": None,
        "window_start": "soon",
        "url": "ftp://x",
    }
    (launch,) = parse_launches({"results": [LAUNCH | odd]}, None)
    assert (launch.mission, launch.pad, launch.location, launch.vehicle, launch.provider) == (None,) * 5
    assert (launch.precision, launch.window_start, launch.url) == ("unknown", None, None)


def test_a_time_that_cannot_be_read_is_a_changed_source():
    with pytest.raises(ValueError, match="Invalid isoformat"):
        parse_launches({"results": [LAUNCH | {"net": "tomorrow"}]}, None)


@given(st.lists(st.tuples(st.text(), st.datetimes(datetime(2000, 1, 1), datetime(2090, 1, 1))), max_size=5))
def test_parse_never_invents_or_drops_a_launch(rows):
    body = [LAUNCH | {"id": str(i), "name": name, "net": f"{at.isoformat()}Z"} for i, (name, at) in enumerate(rows)]
    listed = parse_launches({"results": body}, None)
    assert [(x.id, x.net) for x in listed] == [(str(i), at.replace(tzinfo=UTC)) for i, (_, at) in enumerate(rows)]


def test_a_recorded_astronaut_parses_to_name_and_short_agency(sample):
    person = json.loads(sample("thespacedevs/astronaut-2.2.0-one-list-element.json"))
    assert parse_astronauts({"results": [person]}, None) == ((276, "Franz Viehböck", "ALR"),)


def test_the_mannequin_is_no_human_and_an_unfiltered_roster_is_refused():
    starman = {"id": 278, "name": "Starman", "type": {"id": 6, "name": "Non-Human"}, "agency": None}
    human = {"id": 1, "name": "Ada", "type": {"id": 2, "name": "Government"}, "agency": {"name": "ESA", "abbrev": ""}}
    assert parse_astronauts({"results": [starman, human, human | {"type": None}]}, None) == ((1, "Ada", "ESA"),) * 2
    with pytest.raises(SourceChanged):
        parse_astronauts({"results": [human] * 31}, None)
    with pytest.raises(SourceChanged):
        parse_astronauts({"results": [human] * 10, "next": "https://ll.thespacedevs.com/", "count": 800}, None)


def test_expeditions_without_a_crew_are_left_out():
    station = {"id": 4, "name": "International Space Station"}
    with_crew = {"name": "Expedition 80", "spacestation": station, "crew": [{"astronaut": {"id": 5, "name": "Ada"}}]}
    found = parse_expeditions({"results": [with_crew, with_crew | {"crew": []}, with_crew | {"crew": None}]}, None)
    assert [(e.station, e.crew) for e in found] == [("International Space Station", {5})]


def test_the_twins_say_what_the_world_says():
    world = World(1, NOW)

    listed = ask(LAUNCHES)
    assert [(x.id, x.name, x.status_code) for x in listed] == [(x.id, x.name, x.code) for x in launches(world)[:15]]
    assert {x.precision for x in listed} >= {"second", "minute", "hour", "day"}
    roster = ask(ASTRONAUTS)
    assert [(p.id, p.name) for p in roster] == [(p.id, p.name) for p in humans(world)]
    assert len({p.name for p in roster}) == 10
    assert sorted(len(e.crew) for e in ask(EXPEDITIONS)) == [3, 7]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("hour", range(0, 60, 7))
def test_at_any_time_one_has_just_flown_one_is_next_and_one_of_them_carries_people(seed, hour):
    world = World(seed, NOW + hour * 3700)
    ahead = [x.net.timestamp() - world.now for x in ask(LAUNCHES, world=world)]

    assert sum(-3600 <= s <= 0 for s in ahead) >= 1
    assert sum(0 < s <= 12 * 3600 for s in ahead) >= 1
    assert sum(0 < s <= 7 * 86400 for s in ahead) >= 5
    assert any(is_crewed(x) for x in ask(LAUNCHES, world=world))


def test_a_launch_goes_from_go_to_flown():
    target = next(x for x in launches(World(1, NOW)) if x.net > NOW)
    codes = []
    for at in (target.net - 600, target.net + 60, target.net + 3000):
        (found,) = [x for x in ask(LAUNCHES, world=World(1, at)) if x.id == target.id]
        codes.append((found.status_code, flown(found)))
    assert codes[0] == ("Go", False)
    assert codes[1] == ("In Flight", False)
    assert codes[2][1] is True


def test_in_quiet_times_no_launch_is_near_and_one_can_be_injected():
    quiet = Edits(pins={"launches.quiet": [(NOW - 60, NOW + 60, 1)]})
    ahead = [x.net.timestamp() - NOW for x in ask(LAUNCHES, world=World(1, NOW, quiet))]
    assert not any(-7200 < s < 12 * 3600 for s in ahead)

    event = {"kind": "launch", "at": NOW + 1800, "mission": "Injected", "crewed": True}
    found = [x for x in ask(LAUNCHES, world=World(1, NOW, Edits(events=[event]))) if x.mission == "Injected"]
    assert [is_crewed(x) for x in found] == [True]


def test_the_drifted_form_is_read_like_the_usual_one_without_vehicle_and_place():
    usual = ask(LAUNCHES)
    assert ask(LAUNCHES, form="drift") == tuple(x._replace(vehicle=None, lat=None, lon=None) for x in usual)


@pytest.mark.parametrize("source", [LAUNCHES, ASTRONAUTS, EXPEDITIONS])
def test_fault_forms_raise_what_they_mean(source):
    for form in ("limited", "auth"):
        with pytest.raises(SourceDown):
            ask(source, form=form)
    with pytest.raises(SourceDown):
        ask(source, keys={"LL2_TOKEN": "expired"})
    assert ask(source, keys={"LL2_TOKEN": "sim-1"}) == ask(source)
    assert len(ask(source, form="empty")) < source.least
