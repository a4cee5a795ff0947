"""The weather tool, and how two forecasts become one."""

from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

import tools.simulated.met_norway
import tools.simulated.open_meteo  # noqa: F401 - registers its routes
from tests.requirements import proves
from tests.tools.desk import NOW
from tools.free.weather import weather
from tools.shared.weather import (
    celsius,
    fahrenheit,
    from_met_norway,
    from_open_meteo,
    local_time,
)
from tools.sources.met_norway import Step
from tools.sources.open_meteo import Conditions, Forecast, Hour
from toolserver.errors import InvalidArguments
from toolserver.registry.registry import operation_of
from toolserver.upstream.source import SourceChanged, SourceError, SourceFrozen
from toolserver.world.model import ROUTES, World

T = datetime.fromtimestamp(NOW, UTC)
HOUR = timedelta(hours=1)


def test_freezing_is_32_and_both_scales_meet_at_minus_40():
    assert (fahrenheit(0), fahrenheit(-40), fahrenheit(100)) == (32, -40, 212)


async def test_the_weather_is_that_of_the_world_here_and_now_and_for_24_hours(compose):
    for arguments in ({}, {"lat": 28.614, "lon": 77.209}, {"lat": -33.87, "lon": 151.21}):
        made = await compose(weather, arguments)
        asked = {name: f"{round(value, 2)}" for name, value in arguments.items()}
        expected = ROUTES.expectations["weather"](World(1, NOW), asked)
        current, hourly = expected.pop("current"), expected.pop("hourly")
        assert {name: made.json[name] for name in expected} == expected
        assert {name: made.json["current"][name] for name in current} == current
        assert [{name: hour[name] for name in hourly[0]} for hour in made.json["hourly"]] == hourly
        assert len(hourly) == 24
        assert [warning.code for warning in made.notes.warnings] == ([] if arguments else ["default_location"])


async def test_hours_begin_with_the_current_one_even_where_local_hours_begin_at_half_past(compose):
    made = await compose(weather, {"lat": 28.61, "lon": 77.21}, world=World(1, NOW + 1000))
    assert made.json["hourly"][0]["time"] == "2027-01-15T07:30:00Z"
    assert made.json["hourly"][-1]["time"] == "2027-01-16T06:30:00Z"


async def test_met_norway_tells_the_same_weather_with_fewer_members(compose):
    usual = (await compose(weather)).json
    made = await compose(weather, down={"OpenMeteo.forecast"})

    told = made.json
    assert (told["timezone"], told["current"]["apparent_temperature_f"]) == ("UTC", None)
    assert told["current"]["temperature_f"] == usual["current"]["temperature_f"]
    assert told["current"]["condition"] == usual["current"]["condition"]
    same = ("time", "temperature_f", "wind_speed_mph", "condition", "humidity_percent")
    assert [[hour[name] for name in same] for hour in told["hourly"]] == [
        [hour[name] for name in same] for hour in usual["hourly"]
    ]
    assert {hour["precipitation_probability_percent"] for hour in told["hourly"]} == {None}
    assert [warning.code for warning in made.notes.warnings] == ["default_location", "fallback_used"]


@proves("places.units")
@pytest.mark.parametrize("down", [set(), {"OpenMeteo.forecast"}])
async def test_metric_units_add_their_own_fields_and_change_no_other(compose, down):
    us, metric = [(await compose(weather, {"units": units}, down=down)).json for units in ("us", "metric")]
    added = {"temperature_c", "apparent_temperature_c", "wind_speed_kph", "precipitation_mm"}
    current, hours = metric["current"], metric["hourly"]

    assert current.keys() - us["current"].keys() == added
    assert {name: current[name] for name in us["current"]} == us["current"]
    assert current["temperature_c"] == pytest.approx((current["temperature_f"] - 32) / 1.8, abs=0.06)
    assert current["wind_speed_kph"] == pytest.approx(current["wind_speed_mph"] * 1.609, abs=0.1)
    assert (current["apparent_temperature_c"] is None) == (current["apparent_temperature_f"] is None)
    assert hours[5].keys() - us["hourly"][5].keys() == {"temperature_c", "wind_speed_kph"}
    assert hours[5]["temperature_c"] == pytest.approx((hours[5]["temperature_f"] - 32) / 1.8, abs=0.06)
    assert metric["units"] == us["units"] | {"temperature_c": "°C", "wind_speed_kph": "km/h", "precipitation_mm": "mm"}


def test_freezing_is_0_on_the_other_scale():
    assert (celsius(32), celsius(-40), celsius(212)) == (0, -40, 100)


@proves("places.local-time")
async def test_local_time_is_that_of_the_place_when_the_weather_was_so(compose):
    delhi = (await compose(weather, {"place": "Delhi"}, down={"OpenMeteo.forecast"})).json
    later = await compose(weather, {"place": "Delhi"}, down={"OpenMeteo.forecast"}, world=World(1, NOW + 900))

    assert (delhi["timezone"], delhi["current"]["time"]) == ("Asia/Kolkata", "2027-01-15T08:00:00Z")
    assert delhi["current"]["local_time"] == "2027-01-15T13:30:00+05:30"
    assert delhi["hourly"][1]["local_time"] == "2027-01-15T14:30:00+05:30"
    assert later.json["current"]["local_time"] == delhi["current"]["local_time"]
    for each in ((await compose(weather)).json["current"], *delhi["hourly"]):
        assert datetime.fromisoformat(each["local_time"]) == datetime.fromisoformat(each["time"])


def test_local_time_knows_when_clocks_change_and_invents_no_zone():
    before, after = (datetime(2027, 3, 14, hour, tzinfo=UTC) for hour in (9, 10))
    assert local_time(before, "America/Los_Angeles") == "2027-03-14T01:00:00-08:00"
    assert local_time(after, "America/Los_Angeles") == "2027-03-14T03:00:00-07:00"
    assert [local_time(before, zone) for zone in (None, "Moon/Base", "", "/etc/passwd", "../UTC")] == [None] * 5


async def test_when_nobody_answers_nothing_is_invented(compose):
    with pytest.raises(SourceError):
        await compose(weather, down={"*"})


@pytest.mark.parametrize("arguments", [{"lat": 34.05}, {"lon": -118.24}, {"lat": 0, "lon": None}])
async def test_one_coordinate_without_the_other_is_refused_before_anybody_is_asked(compose, arguments):
    with pytest.raises(InvalidArguments, match="both or neither"):
        await compose(weather, arguments, down={"*"})


@pytest.mark.parametrize(
    "arguments",
    [
        {"lat": 90.01, "lon": 0},
        {"lat": 0, "lon": -180.1},
        {"lat": "north", "lon": 0},
        {"lat": "", "lon": ""},
        {"lat": float("nan"), "lon": 0},
        {"lat": float("inf"), "lon": 0},
    ],
)
def test_a_coordinate_off_the_globe_is_refused(arguments):
    with pytest.raises(ValidationError):
        operation_of(weather).arguments.model_validate(arguments)


def test_neighbours_share_an_answer():
    model = operation_of(weather).arguments
    places = [{"lat": 40.7128, "lon": -0.001}, {"lat": "40.71", "lon": 0}, {"lat": 40.7149, "lon": 0.0049}]
    assert len({model.model_validate(place) for place in places}) == 1
    assert model.model_validate(places[0]).model_dump_json() == '{"lat":40.71,"lon":0.0,"place":null,"units":"us"}'


def forecast_of(current, hours):
    seen = Conditions(current, 50, 5, 40)
    return Forecast("UTC", seen, tuple(Hour(time, 50, 5) for time in hours))


def test_a_forecast_of_yesterday_is_frozen_and_one_kept_for_hours_is_not():
    hours = [T + HOUR * i for i in range(-30, 40)]
    assert from_open_meteo(forecast_of(T - 6 * HOUR, hours), T).hourly[0].time == T
    with pytest.raises(SourceFrozen):
        from_open_meteo(forecast_of(T - 24 * HOUR, hours), T)


def test_the_step_of_the_current_hour_stands_for_now():
    steps = tuple(Step(T + HOUR * i, i, 1, 50, symbol="fog") for i in range(-3, 30))
    now = from_met_norway(steps, T + HOUR / 2).current
    assert (now.time, now.temperature_f, now.weather_code) == (T, 32, 45)
    assert from_met_norway(steps[4:], T + HOUR / 2).current.time == T + HOUR
    for later in (5, 40):
        with pytest.raises(SourceFrozen):
            from_met_norway(steps, T + later * HOUR)
    with pytest.raises(SourceChanged):
        from_met_norway((Step(T, 1, 1),), T)
