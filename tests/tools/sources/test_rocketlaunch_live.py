"""RocketLaunch.Live's next five launches."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.rocketlaunch_live  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask
from tools.shared.launches import flown, has_failed
from tools.simulated.spaceflight import launches
from tools.sources.rocketlaunch_live import NEXT_LAUNCHES, newest, parse
from toolserver.upstream.source import SourceChanged
from toolserver.world.model import World

LAUNCH = {"id": 7, "name": "CAPSTONE", "result": -1}


def test_recorded_launches_parse_to_their_values(sample):
    starlink, capstone, sslv = parse(
        {"result": json.loads(sample("rocketlaunch-live/next5-result-array-2022-05.json"))}, None
    )

    assert (starlink.id, starlink.name, starlink.provider) == ("2839", "Starlink-45 (4-13)", "SpaceX")
    assert (starlink.vehicle, starlink.pad, starlink.location) == ("Falcon 9", "SLC-4E", "Vandenberg AFB")
    assert starlink.net == starlink.window_start == datetime(2022, 5, 10, 18, 50, tzinfo=UTC)
    assert (starlink.precision, starlink.status, starlink.status_code) == ("minute", "Scheduled", None)
    assert starlink.url == "https://www.rocketlaunch.live/launch/starlink-45"
    assert [(x.net, x.precision, x.date_text) for x in (capstone, sslv)] == [
        (None, "unknown", "May 27"),
        (None, "unknown", "May 2022"),
    ]


@pytest.mark.parametrize("body", [None, [], "<html>", {}, {"result": None}, {"result": [None]}, {"result": [{}]}])
def test_what_is_not_a_list_of_launches_is_refused(body):
    with pytest.raises((SourceChanged, KeyError, TypeError, AttributeError)):
        parse(body, None)


def test_the_exact_time_wins_over_the_window_and_several_missions_are_named():
    more = {
        "t0": "2026-05-10T18:55Z",
        "win_open": "2026-05-10T18:50Z",
        "missions": [{"name": "A"}, None, {"name": "B"}],
    }
    (launch,) = parse({"result": [LAUNCH | more]}, None)
    assert launch.net == datetime(2026, 5, 10, 18, 55, tzinfo=UTC)
    assert launch.window_start == datetime(2026, 5, 10, 18, 50, tzinfo=UTC)
    assert launch.mission == "A, B"


@pytest.mark.parametrize(("result", "has_flown", "went_wrong"), [(-1, False, False), (0, True, True), (1, True, False)])
def test_the_result_says_whether_it_has_flown(result, has_flown, went_wrong):
    (launch,) = parse({"result": [LAUNCH | {"result": result}]}, None)
    assert (flown(launch), has_failed(launch)) == (has_flown, went_wrong)


def test_a_launch_of_which_little_is_known_is_still_a_launch():
    (launch,) = parse({"result": [LAUNCH]}, None)
    assert (launch.provider, launch.pad, launch.mission, launch.net, launch.url) == (None,) * 5


@given(st.lists(st.tuples(st.integers(1, 10**6), st.text()), max_size=5))
def test_parse_never_invents_or_drops_a_launch(rows):
    listed = parse({"result": [LAUNCH | {"id": i, "name": name} for i, name in rows]}, None)
    assert [x.id for x in listed] == [str(i) for i, _ in rows]


def test_the_twin_lists_the_next_five_of_the_world():
    following = [x for x in launches(World(1, NOW)) if x.net > NOW][:5]
    listed = ask(NEXT_LAUNCHES)
    assert [x.name for x in listed] == [x.mission for x in following]
    assert [x.net is None for x in listed] == [x.precision not in ("SEC", "MIN") for x in following]
    assert all(x.date_text for x in listed)


def test_the_drifted_form_is_read_and_no_launches_are_no_answer():
    drifted = ask(NEXT_LAUNCHES, form="drift")
    assert [flown(x) for x in drifted] == [True, *[False] * 5]
    assert [x.net for x in drifted[1:]] == [x.net for x in ask(NEXT_LAUNCHES)]
    assert len(ask(NEXT_LAUNCHES, form="empty")) < NEXT_LAUNCHES.least


def test_an_entry_of_the_twin_was_changed_of_late():
    assert NOW - newest(ask(NEXT_LAUNCHES)).timestamp() < NEXT_LAUNCHES.newest_max_s
