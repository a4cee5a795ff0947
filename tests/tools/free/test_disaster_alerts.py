"""The disaster alerts tool, and when two catalogues mean the same event."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.eonet
import tools.simulated.gdacs  # noqa: F401 - registers its routes
from tests.tools.desk import NOW
from tools.free.disaster_alerts import disaster_alerts, from_gdacs, matters, rank
from tools.parsing.places import distance_km
from tools.shared.disasters import kind_of, same_event
from tools.simulated.disasters import DAY, disasters, present_level
from tools.simulated.eonet import only_here
from tools.sources.eonet import NaturalEvent
from tools.sources.gdacs import Disaster
from toolserver.registry.registry import operation_of
from toolserver.upstream.source import SourceError
from toolserver.world.model import Edits, World

AT = datetime(2027, 1, 15, 8, tzinfo=UTC)
STORM = NaturalEvent("E1", "Storm", ("severeStorms",), ("JTWC",), AT, AT, 10, 20, 45, "kts", None)
CYCLONE = Disaster("TC", 1, "Cyclone", "red", None, None, AT, AT, True, 10, 20, None)


def grave(world):
    """What GDACS must tell of red and orange, in order."""
    recent = [d for d in disasters(world, world.now - 2 * DAY) if d.level != "Green"]
    return [f"gdacs:{d.kind}{d.number}" for d in sorted(recent, key=lambda d: (present_level(d) != "Red", -d.began))]


async def test_the_gravest_come_first_and_equal_the_world(compose):
    made = await compose(disaster_alerts)

    expected = grave(World(1, NOW))
    assert [i["id"] for i in made.json if i["alert_level"] in ("red", "orange")] == expected[:20]
    assert len(expected) >= 1
    order = ["red", "orange", None, "green"]
    assert [order.index(i["present_alert_level"]) for i in made.json] == sorted(
        order.index(i["present_alert_level"]) for i in made.json
    )
    assert made.notes.warnings == []


def test_a_red_disaster_that_has_calmed_comes_after_one_that_is_orange_now_and_newer():
    calm, orange = CYCLONE._replace(present="green"), CYCLONE._replace(id=2, level="orange", present="orange")
    items = [from_gdacs(calm), from_gdacs(orange)]
    assert [(i.alert_level, i.present_alert_level) for i in sorted(items, key=rank)] == [
        ("orange", "orange"),
        ("red", "green"),
    ]


async def test_what_only_eonet_lists_is_added_without_a_colour(compose):
    made = await compose(disaster_alerts)

    added = {i["id"]: i for i in made.json if i["source"] == "NASA EONET"}
    told = only_here(World(1, NOW))
    large = [
        e for e in told if (e["geometry"][0]["magnitudeUnit"] != "acres") or e["geometry"][0]["magnitudeValue"] >= 1000
    ]
    assert set(added) <= {f"eonet:{e['id']}" for e in large}
    assert added["eonet:EONET_1"]["type"] == "storm"
    assert added["eonet:EONET_1"]["alert_level"] is None


async def test_when_the_list_is_down_the_feed_answers_and_says_so(compose):
    made = await compose(disaster_alerts, down={"GDACS.event_list"})

    assert [w.code for w in made.notes.warnings] == ["fallback_used"]
    assert [i["id"] for i in made.json if i["alert_level"] in ("red", "orange")] == grave(World(1, NOW))[:20]


async def test_without_gdacs_only_eonet_is_shown_and_that_is_said(compose):
    made = await compose(disaster_alerts, down={"GDACS.event_list", "GDACS.rss"})

    assert {i["source"] for i in made.json} == {"NASA EONET"}
    assert [w.code for w in made.notes.warnings] == ["section_unavailable", "partial"]


async def test_without_eonet_gdacs_is_shown(compose):
    made = await compose(disaster_alerts, down={"NASA.eonet_events"})

    assert {i["source"] for i in made.json} == {"GDACS"}
    assert [(w.section, w.code) for w in made.notes.warnings] == [("data.eonet", "section_unavailable")]


async def test_when_nobody_answers_the_world_is_not_called_calm(compose):
    with pytest.raises(SourceError):
        await compose(disaster_alerts, down={"*"})


async def test_an_empty_list_counts_as_a_failure_and_the_feed_is_used(compose):
    made = await compose(disaster_alerts, forms={"GDACS.event_list": "empty"})
    assert [w.code for w in made.notes.warnings] == ["fallback_used"]


async def test_an_injected_red_alert_leads_the_list(compose):
    event = {"kind": "alert", "type": "TC", "level": "red", "country": "Philippines", "name": "TEST", "at": NOW - 60}
    made = await compose(disaster_alerts, world=World(1, NOW, Edits(events=[event])))
    assert made.json[0] | {"id": ""} == {
        "id": "",
        "type": "tropical_cyclone",
        "name": "Tropical Cyclone TEST",
        "alert_level": "red",
        "present_alert_level": "red",
        "country": "Philippines",
        "severity_text": "Tropical Cyclone of 200 km/h",
        "started_at": "2027-01-15T07:59:00Z",
        "ended_at": "2027-01-15T08:00:00Z",
        "current": True,
        "lat": 13.3,
        "lon": 123.7,
        "url": made.json[0]["url"],
        "source": "GDACS",
    }


@pytest.mark.parametrize(
    ("kind", "current", "hours_ago", "kept"),
    [
        ("VO", True, 999, True),
        ("DR", True, 999, True),
        ("TC", True, 49, False),
        ("EQ", True, 49, False),
        ("TC", True, 47, True),
        ("TC", False, 47, True),
        ("VO", False, 49, False),
        ("TC", None, 1, True),
    ],
)
def test_what_was_last_seen_two_days_ago_is_left_out_unless_it_is_of_a_kind_that_lasts(kind, current, hours_ago, kept):
    ended = AT - timedelta(hours=hours_ago)
    assert matters(CYCLONE._replace(kind=kind, current=current, started_at=ended, ended_at=ended), AT) is kept


def test_a_kind_without_a_word_is_left_out():
    assert from_gdacs(CYCLONE._replace(kind="XX")) is None


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({}, True),
        ({"lat": 11.7}, True),
        ({"lat": 11.9}, False),
        ({"categories": ("floods",)}, False),
        ({"started_at": AT - timedelta(days=9), "seen_at": AT - timedelta(days=4)}, False),
        ({"started_at": AT - timedelta(days=9), "seen_at": AT - timedelta(days=2)}, True),
        ({"started_at": AT + timedelta(days=2), "seen_at": AT + timedelta(days=9)}, True),
        ({"started_at": AT + timedelta(days=4), "seen_at": AT + timedelta(days=9)}, False),
    ],
)
def test_the_same_kind_near_in_space_and_time_is_the_same_event(changes, same):
    assert same_event(STORM._replace(**changes), CYCLONE) is same


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, "TC"),
        ({"categories": ("seaLakeIce",)}, None),
        ({"categories": ("wildfires",), "magnitude": 1000, "unit": "acres"}, "WF"),
        ({"categories": ("wildfires",), "magnitude": 999, "unit": "acres"}, None),
        ({"categories": ("wildfires",), "magnitude": None, "unit": None}, None),
        ({"categories": ("wildfires",), "magnitude": 2000, "unit": "acres", "title": "Prescribed Fire RX"}, None),
    ],
)
def test_only_disasters_of_some_size_are_taken_from_eonet(changes, kind):
    assert kind_of(STORM._replace(**changes)) == kind


LAT, LON = st.floats(-90, 90), st.floats(-180, 180)


@given(LAT, LON, LAT, LON)
def test_distance_is_symmetric_and_never_more_than_half_way_round(a, b, c, d):
    assert distance_km(a, b, c, d) == pytest.approx(distance_km(c, d, a, b), abs=1e-6)
    assert 0 <= distance_km(a, b, c, d) <= 20016


def test_a_degree_is_111_km_also_across_the_date_line():
    assert distance_km(0, 179.5, 0, -179.5) == pytest.approx(111.2, abs=0.1)


def test_the_tool_is_cached_for_five_minutes():
    assert (operation_of(disaster_alerts).toolset, operation_of(disaster_alerts).ttl_s) == ("all", 300)
