"""The USGS catalogue query, the feeds by period, and the climate_earthquakes tool."""

import json
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

import tools.simulated.usgs  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask
from tools.free.climate_earthquakes import check_window, climate_earthquakes
from tools.parsing.token_count import estimate_tokens
from tools.sources.usgs import QUAKES, QuakeQuery, defined, parse
from toolserver.registry.registry import operation_of
from toolserver.upstream.source import SourceChanged, SourceError
from toolserver.world.model import Edits, World

TIME = datetime.fromtimestamp(NOW, UTC)
USGS, EMSC = "USGS.earthquakes_feed", "EMSC.earthquakes_query"
OPERATION = operation_of(climate_earthquakes)


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


# The tool


@pytest.mark.parametrize("magnitude", ["significant", "4.5", "2.5", "1.0", "all"])
@pytest.mark.parametrize(
    "period",
    ["hour", "day", "week", pytest.param("month", marks=pytest.mark.slow("months of earthquakes, one by one"))],
)
async def test_every_feed_comes_whole_newest_first_with_what_was_asked(compose, magnitude, period):
    world = World(1, NOW + 30)
    made = await compose(climate_earthquakes, {"magnitude": magnitude, "period": period}, world=world)

    listed = ask(QUAKES[period], QuakeQuery(magnitude, period), world=world).quakes
    assert (made.json["count"], len(made.json["data"])) == (len(listed), min(60, len(listed)))
    assert made.json["filters"] == {"magnitude": magnitude, "period": period}
    assert [e["id"] for e in made.json["data"]] == [q.id for q in listed][:60]
    times = [e["time"] for e in made.json["data"]]
    assert times == sorted(times, reverse=True)
    assert [(w.code, w.total) for w in made.notes.warnings] == [("truncated", len(listed))] * (len(listed) > 60)
    assert made.json["next_cursor"] == (listed[59].id if len(listed) > 60 else None)


async def test_blasts_are_listed_and_called_so(compose):
    made = await compose(climate_earthquakes, {"magnitude": "2.5", "period": "month", "limit": 500})
    assert {e["type"] for e in made.json["data"]} == {"earthquake", "quarry blast"}
    first = made.json["data"][0]
    assert (first["tsunami"], first["magnitude_type"], first["status"]) == (False, "mb", "reviewed")


async def test_a_page_of_any_limit_fits_into_twenty_thousand_tokens_and_the_next_goes_on(compose):
    asked = {"magnitude": "all", "period": "week", "limit": 500}
    first = (await compose(climate_earthquakes, asked)).json
    second = (await compose(climate_earthquakes, asked | {"cursor": first["next_cursor"]})).json

    for page in (first, second):
        assert 100 < len(page["data"]) < 500
        assert 17_000 < estimate_tokens(json.dumps(page, separators=(",", ":"))) < 20_000
    assert first["data"][-1]["id"] == first["next_cursor"]
    assert second["data"][0]["time"] <= first["data"][-1]["time"]
    assert not {e["id"] for e in first["data"]} & {e["id"] for e in second["data"]}


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


@pytest.mark.parametrize("arguments", [{"magnitude": "3.0"}, {"magnitude": ""}, {"period": "year"}])
def test_other_values_are_refused(arguments):
    with pytest.raises(ValidationError):
        OPERATION.arguments.model_validate(arguments)


async def test_when_usgs_is_down_emsc_answers_for_the_same_window_and_knows_no_tsunami(compose):
    made = await compose(climate_earthquakes, {"magnitude": "4.5", "period": "week", "limit": 500}, down={USGS})

    query = made.desk.asked[-1][1]
    assert (query.magnitude, query.hours, query.limit) == (4.5, 168, 1000)
    assert made.json["count"] > 100
    assert {e["tsunami"] for e in made.json["data"]} == {None}
    assert [w.code for w in made.notes.warnings] == ["fallback_used", "truncated"]


async def test_emsc_stands_in_for_the_significant_with_magnitude_six_and_says_so(compose):
    made = await compose(climate_earthquakes, {"magnitude": "significant", "period": "week"}, down={USGS})
    assert min(e["magnitude"] for e in made.json["data"]) >= 6
    assert [w.code for w in made.notes.warnings] == ["fallback_used", "degraded_fallback"]


@pytest.mark.slow("a month of the simulated world")
async def test_a_month_of_emsc_is_cut_and_says_so(compose):
    made = await compose(climate_earthquakes, {"magnitude": "all", "period": "month"}, down={USGS})
    assert made.json["count"] == 1000
    assert [(w.code, w.total) for w in made.notes.warnings] == [
        ("fallback_used", None),
        ("truncated", None),
        ("truncated", 1000),
    ]


async def test_an_hour_without_events_is_cut_from_the_day_and_an_empty_day_is_no_answer(compose):
    quiet = World(1, NOW, Edits(pins={"quakes.quiet": [(0, 1e12, 1.0)]}))
    arguments = {"magnitude": "4.5", "period": "hour"}
    made = await compose(climate_earthquakes, arguments, world=quiet)
    assert (made.json["data"], made.json["count"]) == ([], 0)
    assert made.desk.asked == [(USGS, QuakeQuery("2.5", "day"))]
    for wrong in ({"forms": {USGS: "empty"}, "down": {EMSC}}, {"down": {"*"}}):
        with pytest.raises(SourceError):
            await compose(climate_earthquakes, arguments, **wrong)


def test_events_of_another_time_are_no_answer():
    query = QuakeQuery("2.5", "month")
    listed = ask(QUAKES["month"], query)
    assert check_window(listed, query, TIME) == listed.quakes
    old = listed.quakes[0]._replace(time=datetime(1970, 1, 1, tzinfo=UTC))
    with pytest.raises(ValueError, match="older than requested"):
        check_window(listed._replace(quakes=(old, *listed.quakes)), query, TIME)


@pytest.mark.parametrize(("magnitude", "fits"), [(4.45, True), (None, True), (4.3, False), (0.45, False)])
def test_a_magnitude_that_rounds_up_to_the_floor_and_one_not_yet_known_are_of_the_feed(magnitude, fits):
    quake = ask(QUAKES["day"], QuakeQuery("4.5", "day")).quakes[0]._replace(magnitude=magnitude)
    if fits:
        assert defined(quake, 4.5) == quake
    else:
        with pytest.raises(SourceChanged):
            defined(quake, 4.5)
