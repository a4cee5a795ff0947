"""USGS and EMSC, and the earthquakes tool on them."""

import json
from datetime import UTC, datetime

import pytest

import tools.simulated.usgs  # noqa: F401  # fills the table of routes
from tests.tools.desk import NOW, ask
from tools.free.earthquake import earthquakes
from tools.sources.emsc import QUAKES_QUERY, EmscQuery
from tools.sources.usgs import QUAKES_DAY, QuakeQuery, parse, request
from toolserver.upstream.source import SourceEmpty, SourceError
from toolserver.world.model import ROUTES, World

DAY = QuakeQuery("2.5", "day")


def test_request_names_the_feed_by_magnitude_and_period():
    assert request(QuakeQuery("4.5", "week"), {}).url.endswith("/summary/4.5_week.geojson")


def test_a_recorded_feed_parses_to_its_values(sample):
    listed = parse(json.loads(sample("usgs-earthquakes/2.5_day-2026-07.json")), DAY)

    raw = json.loads(sample("usgs-earthquakes/2.5_day-2026-07.json"))["features"]
    assert [q.id for q in listed.quakes] == [f["id"] for f in raw]
    assert listed.quakes[0].magnitude == raw[0]["properties"]["mag"]
    assert listed.quakes[0].time == datetime.fromtimestamp(raw[0]["properties"]["time"] / 1000, UTC)


def test_a_feed_with_fewer_than_five_events_of_the_day_is_empty_not_quiet():
    body = {"type": "FeatureCollection", "metadata": {"generated": NOW * 1000}, "features": []}
    with pytest.raises(SourceEmpty):
        parse(body, DAY)
    assert parse(body, QuakeQuery("significant", "hour")).quakes == ()


def test_the_twin_of_the_catalogue_answers_what_the_world_holds():
    query = EmscQuery(2.5, 24, datetime.fromtimestamp(NOW, UTC))
    listed = ask(QUAKES_QUERY, query)
    assert len(listed.quakes) > 20
    assert all(q.depth_km is None or q.depth_km >= -2 for q in listed.quakes)


async def test_earthquakes_come_newest_first_and_equal_the_world(compose):
    made = await compose(earthquakes)

    expected = ROUTES.expectations["earthquake"](World(1, NOW), {})
    assert made.json["count"] == expected["count"]
    shown = [{k: e[k] for k in ("id", "magnitude", "location", "lat", "lon")} for e in made.json["earthquakes"]]
    assert shown == expected["earthquakes"]
    times = [e["time"] for e in made.json["earthquakes"]]
    assert times == sorted(times, reverse=True)


async def test_when_usgs_is_down_emsc_answers_and_the_answer_says_so(compose):
    made = await compose(earthquakes, down={"USGS.earthquakes_feed"})

    assert made.json["count"] > 20
    by_name = {n.source.name: n for n in made.notes.sources}
    assert by_name["EMSC.earthquakes_query"].status == "fallback"
    assert by_name["EMSC.earthquakes_query"].replaces == "USGS.earthquakes_feed"
    assert by_name["USGS.earthquakes_feed"].status == "error"
    assert {w.code for w in made.notes.warnings} == {"fallback_used", "truncated"}


async def test_when_nobody_answers_nothing_is_invented(compose):
    with pytest.raises(SourceError):
        await compose(earthquakes, down={"*"})


def test_the_drifted_form_is_read_like_the_usual_one():
    assert len(ask(QUAKES_DAY, DAY, form="drift").quakes) == len(ask(QUAKES_DAY, DAY).quakes)
