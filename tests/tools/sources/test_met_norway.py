"""MET Norway's forecast."""

from datetime import UTC, datetime

import pytest

import tools.simulated.met_norway  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask, fetch
from tools.parsing.places import Place
from tools.simulated.sky import sky
from tools.sources.met_norway import LOCATION_FORECAST, Step, parse, request
from toolserver.upstream.decode import parse_body
from toolserver.upstream.source import SourceChanged, SourceDown, SourceEmpty, SourceError
from toolserver.world import answers
from toolserver.world.model import World

LA = Place(34.05, -118.24)
DETAILS = {"air_temperature": 5.7, "relative_humidity": 95.2, "wind_speed": 0.4, "wind_from_direction": 37.4}


def body(details, **ahead):
    item = {"time": "2027-01-15T08:00:00Z", "data": {"instant": {"details": details}} | ahead}
    return {"properties": {"timeseries": [item]}}


def test_the_request_names_the_point_with_four_decimals():
    asked = request(LA, {})
    assert asked.url == "https://api.met.no/weatherapi/locationforecast/2.0/compact"
    assert asked.params == {"lat": "34.0500", "lon": "-118.2400"}
    assert LOCATION_FORECAST.conditional


def test_a_step_is_read_with_the_symbol_and_the_rain_of_the_hour_after_it():
    hour = {"summary": {"symbol_code": "lightrain"}, "details": {"precipitation_amount": 0.4}}
    (step,) = parse(body(DETAILS, next_1_hours=hour, next_6_hours={"summary": {"symbol_code": "snow"}}), LA)
    assert step == Step(datetime(2027, 1, 15, 8, tzinfo=UTC), 5.7, 0.4, 95.2, 37.4, "lightrain", 0.4)


def test_a_step_of_six_hours_has_no_symbol_of_the_hour():
    (step,) = parse(body({"air_temperature": -3, "wind_speed": 2}, next_6_hours={}), LA)
    assert (step.symbol, step.precipitation_mm, step.humidity_percent, step.wind_direction_deg) == (None,) * 4


@pytest.mark.parametrize(
    "change",
    [
        {"air_temperature": None},
        {"air_temperature": 99},
        {"wind_speed": "fast"},
        {"wind_speed": -1},
        {"relative_humidity": 0},
    ],
)
def test_a_step_that_cannot_be_is_a_changed_format(change):
    with pytest.raises(ValueError, match=r"number|outside|convert"):
        parse(body(DETAILS | change), LA)


def test_the_twin_tells_the_weather_of_the_world():
    world = World(1, NOW)
    steps = ask(LOCATION_FORECAST, LA)
    assert [step.time.timestamp() for step in steps[:48]] == [NOW + 3600 * i for i in range(48)]
    for step in steps:
        seen = sky(world, *LA, step.time.timestamp())
        assert (step.temperature_c, step.wind_speed_ms) == (seen.temperature_c, seen.wind_ms)
        assert step.humidity_percent == seen.humidity
    assert all(step.symbol for step in steps[:60])
    assert not any(step.symbol for step in steps[60:])


def test_an_answer_of_a_version_to_be_retired_is_an_answer():
    assert ask(LOCATION_FORECAST, LA, form="status:203") == ask(LOCATION_FORECAST, LA)


def test_what_is_not_the_document_is_refused():
    asked = request(LA, {})
    reply = fetch(World(1, NOW), asked)
    told = parse_body(LOCATION_FORECAST, asked, LA, reply.body)

    zeros = answers.zeros(reply, NOW).body
    for wrong in (b"", b"<html></html>", reply.body[:500], b"[]", b"{}", zeros):
        with pytest.raises(SourceError):
            parse_body(LOCATION_FORECAST, asked, LA, wrong)
    with pytest.raises(SourceEmpty):
        parse_body(LOCATION_FORECAST, asked, LA, fetch(World(1, NOW), asked, form="empty").body)
    with pytest.raises(SourceChanged):
        parse_body(LOCATION_FORECAST, asked, LA, answers.drift(reply, "renamed").body)
    for form in ("extra", "strings", "bom"):
        assert parse_body(LOCATION_FORECAST, asked, LA, answers.drift(reply, form).body) == told


def test_a_client_without_a_contact_is_refused():
    with pytest.raises(SourceDown):
        ask(LOCATION_FORECAST, LA, form="geo")
