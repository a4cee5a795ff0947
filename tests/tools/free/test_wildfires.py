"""The wildfires tool: which state, which fires are one, what is missing."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.firms
import tools.simulated.nifc  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, SimDesk
from tools.free.wildfires import BOXES, SAME_KM, SAME_TIME, distinct, recent, state_of, wildfires
from tools.parsing.places import distance_km
from tools.sources.firms import Detection, FireFile
from toolserver.upstream.source import SourceDown, SourceError
from toolserver.world.model import ROUTES, Edits, World

T = datetime.fromtimestamp(NOW, UTC)
HOUR = timedelta(hours=1)
FILES = "NASA.firms_viirs_24h"
KEYS = {"FIRMS_MAP_KEY": "sim-1"}


def fire(frp, lat=40.0, lon=-120.0, time=T, satellite="NOAA-20"):
    return Detection(lat, lon, frp, "nominal", time, satellite, True)


@pytest.mark.parametrize(
    ("place", "state"),
    [
        ((34.05, -118.24), "CA"),
        ((36.2, -115.1), "NV"),
        ((44.05, -121.31), "OR"),
        ((61.2, -149.9), "AK"),
        ((19.6, -155.5), "HI"),
        ((25.76, -80.19), "FL"),
        ((38.9, -77.0), "DC"),
        ((41.6, -71.5), "RI"),
        ((51.0, -114.0), None),
        ((19.4, -99.1), None),
        ((0.0, 0.0), None),
    ],
)
def test_the_state_of_a_point(place, state):
    assert state_of(*place) == state


def test_every_state_has_a_box_that_is_one():
    assert len({box.state for box in BOXES}) == len(BOXES) == 51
    for box in BOXES:
        assert -90 < box.south < box.north < 90
        assert -180 < box.west < box.east < -60


def test_what_two_satellites_saw_counts_once_and_the_stronger_wins():
    weak, strong = fire(10), fire(20, lat=40.005, time=T - 2 * HOUR, satellite="NOAA-21")
    assert distinct([weak, strong]) == [strong]


@pytest.mark.parametrize(
    "other",
    [
        {"lat": 40.0095, "satellite": "NOAA-21"},
        {"lon": -119.988, "satellite": "NOAA-21"},
        {"time": T - 3.1 * HOUR, "satellite": "NOAA-21"},
        {"satellite": "NOAA-20", "lat": 40.001},
    ],
)
def test_fires_apart_in_place_or_time_or_of_one_satellite_are_two(other):
    assert len(distinct([fire(10), fire(20, **other)])) == 2


fires = st.builds(
    fire,
    frp=st.floats(0, 500),
    lat=st.floats(60, 60.05),
    lon=st.floats(-150.1, -150),
    time=st.integers(0, 12).map(lambda hours: T - hours * HOUR),
    satellite=st.sampled_from(["NOAA-20", "NOAA-21", "Suomi NPP"]),
)


@given(st.lists(fires, max_size=40))
def test_of_fires_that_are_one_exactly_the_strongest_is_kept(found):
    def one(a, b):
        near = distance_km(a.lat, a.lon, b.lat, b.lon) <= SAME_KM
        return near and a.satellite != b.satellite and abs(a.time - b.time) <= SAME_TIME

    kept = distinct(found)
    assert [f.frp_mw for f in kept] == sorted((f.frp_mw for f in kept), reverse=True)
    assert not any(one(a, b) for i, a in enumerate(kept) for b in kept[i + 1 :])
    for left_out in [f for f in found if f not in kept]:
        assert any(one(left_out, k) and k.frp_mw >= left_out.frp_mw for k in kept)


def test_only_the_past_24_hours_count():
    found = [fire(1, time=T - 24 * HOUR), fire(2, time=T - 24.1 * HOUR)]
    assert recent(found, T) == found[:1]


async def test_the_strongest_fires_are_those_of_the_world(compose):
    for hours in (0, 13, 31):
        world = World(1, NOW + 3600 * hours)
        made = await compose(wildfires, world=world)
        expected = ROUTES.expectations["wildfires"](world, {})
        shown = [{name: f[name] for name in expected["top"][0]} for f in made.json["top"]]
        assert shown == expected["top"]
        assert sum(made.json["by_satellite"].values()) == made.json["total_detections"] > 1500
        assert set(made.json["by_satellite"]) == {"NOAA-20", "NOAA-21", "Suomi NPP"}
        assert len(made.json["incidents"]) == 10
        assert {f["approx_state"] for f in made.json["top"]} - {None}
        assert made.notes.warnings == []


async def test_a_new_fire_comes_first_with_its_state(compose):
    event = {"kind": "fire", "at": NOW - 300, "lat": 44.05, "lon": -121.31, "frp": 5000.0, "name": "New", "acres": 1e6}
    made = await compose(wildfires, world=World(1, NOW, Edits(events=[event])))
    first = made.json["top"][0]
    assert (first["frp_mw"], first["approx_state"], first["detected_at"]) == (5000, "OR", "2027-01-15T07:55:00Z")
    assert made.json["incidents"][0]["name"] == "New"


async def test_with_a_key_the_area_query_answers_filtered_to_a_day(compose):
    made = await compose(wildfires, keys=KEYS)
    assert list(made.json["by_satellite"]) == ["NOAA-20"]
    assert min(f["detected_at"] for f in made.json["top"]) >= "2027-01-14T08:00:00Z"
    assert FILES not in {name for name, _ in made.desk.asked}


async def test_a_key_that_is_refused_leaves_the_regional_files(compose):
    made = await compose(wildfires, keys={"FIRMS_MAP_KEY": "stolen"})
    assert len(made.json["by_satellite"]) == 3
    assert [warning.code for warning in made.notes.warnings] == ["fallback_used"]


class OneMissing(SimDesk):
    """A desk without one satellite's file of the mainland."""

    async def fresh(self, source, query, *, sla_s):
        if query == FireFile("NOAA-21", "USA_contiguous_and_Hawaii"):
            raise SourceDown("arranged", word="http_503")
        if query == FireFile("NOAA-21", "Alaska"):
            raise SourceDown("arranged", word="timeout")
        return await super().fresh(source, query, sla_s=sla_s)


async def test_a_satellite_whose_files_are_missing_is_left_out_and_named(compose, monkeypatch):
    monkeypatch.setattr("tests.tools.desk.SimDesk", OneMissing)
    made = await compose(wildfires)
    assert set(made.json["by_satellite"]) == {"NOAA-20", "Suomi NPP"}
    assert [(w.section, w.code, w.message) for w in made.notes.warnings] == [
        (
            "data.by_satellite",
            "partial",
            "The file of NOAA-21 for USA contiguous and Hawaii could not be read (http_503).",
        ),
        ("data.by_satellite", "partial", "The file of NOAA-21 for Alaska could not be read (timeout)."),
    ]


async def test_without_the_agencies_list_incidents_are_null_and_not_none(compose):
    made = await compose(wildfires, down={"NIFC.wildfire_incidents"})
    assert made.json["incidents"] is None
    assert [warning.section for warning in made.notes.warnings] == ["data.incidents"]
    unproved = await compose(wildfires, forms={"NIFC.wildfire_incidents": "empty"})
    assert unproved.json["incidents"] is None
    assert [warning.code for warning in unproved.notes.warnings] == ["unproved_empty"]


@pytest.mark.parametrize("forms", [{}, {FILES: "error200"}, {FILES: "empty"}])
async def test_without_any_file_nothing_is_invented(compose, forms):
    with pytest.raises(SourceError):
        await compose(wildfires, down=set() if forms else {FILES}, forms=forms)
