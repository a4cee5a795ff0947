"""The USGS catalogue query, the feeds by period, and the climate_earthquakes tool."""

import json
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

import tools.simulated.usgs  # noqa: F401 - registers its routes
from tests.desk import NOW, ask
from tools.free.climate_earthquakes import _plausible, climate_earthquakes
from tools.simulated.quakes import quakes
from tools.sources.usgs import (
    CATALOGUE_QUAKES,
    QUAKES,
    CatalogueQuery,
    QuakeQuery,
    parse,
    parse_catalogue,
    request_catalogue,
)
from toolserver.errors import SourceChanged, SourceError
from toolserver.registry import operation_of
from toolserver.world.model import World

TIME = datetime.fromtimestamp(NOW, UTC)
USGS, EMSC = "USGS.earthquakes_feed", "EMSC.earthquakes_query"
OPERATION = operation_of(climate_earthquakes)


# The catalogue query


def test_the_query_names_the_window_by_its_beginning():
    sent = request_catalogue(CatalogueQuery(4.0, 2, TIME), {})
    assert sent.url == "https://earthquake.usgs.gov/fdsnws/event/1/query"
    assert sent.params == {
        "format": "geojson",
        "minmagnitude": "4",
        "starttime": "2027-01-15T06:00:00",
        "orderby": "time",
        "limit": "200",
    }


def test_the_clock_is_no_part_of_the_cache_key():
    first, later = (CatalogueQuery(4.0, 2, datetime(2027, 1, 15, hour, tzinfo=UTC)) for hour in (8, 9))
    assert CATALOGUE_QUAKES.key(first) == CATALOGUE_QUAKES.key(later)
    assert CATALOGUE_QUAKES.key(first) != CATALOGUE_QUAKES.key(first._replace(hours=3))


def test_a_recorded_list_parses_without_the_members_a_query_may_lack(sample):
    body = json.loads(sample("usgs-earthquakes/all_hour-2026-07.json"))
    del body["metadata"]
    listed = parse_catalogue(body, CatalogueQuery(0, 1, TIME))
    assert [q.id for q in listed.quakes] == [f["id"] for f in body["features"]]
    assert listed.quakes[0].depth_km == body["features"][0]["geometry"]["coordinates"][2]
    assert listed.generated is None


def test_no_content_is_no_event_and_anything_else_is_refused():
    query = CatalogueQuery(4.0, 2, TIME)
    assert parse_catalogue(None, query).quakes == ()
    assert parse_catalogue({"type": "FeatureCollection", "features": []}, query).quakes == ()
    with pytest.raises(SourceChanged):
        parse_catalogue({"type": "Feature", "features": []}, query)
    with pytest.raises(KeyError):
        parse_catalogue({"error": "x"}, query)


def test_the_twin_of_the_query_holds_what_the_world_does():
    world = World(1, NOW)
    listed = ask(CATALOGUE_QUAKES, CatalogueQuery(4.0, 6, TIME), world=world)
    facts = [q for q in quakes(world, NOW - 6 * 3600) if q.magnitude >= 4]
    assert [(q.id, q.magnitude) for q in listed.quakes] == [(f"ussim{f.name}", f.magnitude) for f in facts]


def test_a_script_is_no_json(sample):
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(sample("usgs-earthquakes/2.5_day-2017-07-JSONP-callback.txt"))


@pytest.mark.parametrize(
    ("name", "query"),
    [("significant_month-2022-04", ("significant", "month")), ("significant_week-2017-12", ("significant", "week"))],
)
def test_recorded_feeds_of_other_periods_parse(sample, name, query):
    body = json.loads(sample(f"usgs-earthquakes/{name}.json"))
    listed = parse(body, QuakeQuery(*query))
    assert [q.magnitude for q in listed.quakes] == [f["properties"]["mag"] for f in body["features"]]
    assert listed.generated is None


# The tool


@pytest.mark.parametrize("magnitude", ["significant", "4.5", "2.5", "1.0", "all"])
@pytest.mark.parametrize("period", ["hour", "day", "week", "month"])
async def test_every_feed_comes_whole_newest_first_with_what_was_asked(compose, magnitude, period):
    world = World(1, NOW + 30)
    made = await compose(climate_earthquakes, {"magnitude": magnitude, "period": period}, world=world)

    listed = ask(QUAKES[period], QuakeQuery(magnitude, period), world=world).quakes
    assert made.json["count"] == len(made.json["data"]) == len(listed)
    assert made.json["filters"] == {"magnitude": magnitude, "period": period}
    assert [e["id"] for e in made.json["data"]] == [q.id for q in listed]
    times = [e["time"] for e in made.json["data"]]
    assert times == sorted(times, reverse=True)
    assert made.notes.warnings == []


async def test_blasts_are_listed_and_called_so(compose):
    made = await compose(climate_earthquakes, {"magnitude": "2.5", "period": "month"})
    assert {e["type"] for e in made.json["data"]} == {"earthquake", "quarry blast"}
    first = made.json["data"][0]
    assert (first["tsunami"], first["magnitude_type"], first["status"]) == (False, "mb", "reviewed")


async def test_without_arguments_it_is_the_day_from_magnitude_two_and_a_half(compose):
    made = await compose(climate_earthquakes)
    assert made.json["filters"] == {"magnitude": "2.5", "period": "day"}
    assert made.desk.asked == [(USGS, QuakeQuery("2.5", "day"))]


@pytest.mark.parametrize(
    ("arguments", "ttl"),
    [({"period": "hour"}, 60), ({}, 120), ({"period": "week"}, 300), ({"period": "month"}, 900)],
)
def test_an_answer_stays_as_long_as_its_period_allows(arguments, ttl):
    assert OPERATION.ttl(OPERATION.arguments.model_validate(arguments)) == ttl


@pytest.mark.parametrize("arguments", [{"magnitude": "3.0"}, {"magnitude": ""}, {"period": "year"}, {"period": "DAY"}])
def test_other_values_are_refused(arguments):
    with pytest.raises(ValidationError):
        OPERATION.arguments.model_validate(arguments)


async def test_when_usgs_is_down_emsc_answers_for_the_same_window_and_knows_no_tsunami(compose):
    made = await compose(climate_earthquakes, {"magnitude": "4.5", "period": "week"}, down={USGS})

    query = made.desk.asked[-1][1]
    assert (query.magnitude, query.hours, query.limit) == (4.5, 168, 1000)
    assert made.json["count"] > 100
    assert {e["tsunami"] for e in made.json["data"]} == {None}
    assert [w.code for w in made.notes.warnings] == ["fallback_used"]


async def test_emsc_stands_in_for_the_significant_with_magnitude_six_and_says_so(compose):
    made = await compose(climate_earthquakes, {"magnitude": "significant", "period": "week"}, down={USGS})
    assert min(e["magnitude"] for e in made.json["data"]) >= 6
    assert [w.code for w in made.notes.warnings] == ["fallback_used", "degraded_fallback"]


async def test_a_month_of_emsc_is_cut_and_says_so(compose):
    made = await compose(climate_earthquakes, {"magnitude": "all", "period": "month"}, down={USGS})
    assert made.json["count"] == 1000
    assert [w.code for w in made.notes.warnings] == ["fallback_used", "truncated"]


async def test_an_hour_without_events_is_an_answer_but_silence_is_not(compose):
    arguments = {"magnitude": "4.5", "period": "hour"}
    made = await compose(climate_earthquakes, arguments, forms={USGS: "empty"})
    assert (made.json["data"], made.json["count"]) == ([], 0)
    with pytest.raises(SourceError):
        await compose(climate_earthquakes, arguments, down={"*"})


@pytest.mark.parametrize("lost", [{"time": datetime(1970, 1, 1, tzinfo=UTC)}, {"magnitude": 0.0}])
def test_events_that_were_not_asked_for_are_no_answer(lost):
    query = QuakeQuery("2.5", "month")
    listed = ask(QUAKES["month"], query).quakes
    assert _plausible(listed, query, TIME) == listed
    with pytest.raises(ValueError, match="not asked for"):
        _plausible((listed[0]._replace(**lost), *listed[1:]), query, TIME)


def test_a_magnitude_that_rounds_up_to_the_floor_and_one_not_yet_known_are_fine():
    query = QuakeQuery("4.5", "day")
    first = ask(QUAKES["day"], query).quakes[0]
    fine = (first._replace(magnitude=4.45), first._replace(magnitude=None))
    assert _plausible(fine, query, TIME) == fine
