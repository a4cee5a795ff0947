"""Open-Meteo's forecast and air quality."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tools.simulated.open_meteo  # noqa: F401 - registers its routes
from tests.tools.desk import NOW, ask, fetch
from tools.parsing.places import Place
from tools.simulated.sky import air, sky, zone
from tools.sources.open_meteo import (
    AIR_QUALITY,
    FORECAST,
    parse_air,
    parse_forecast,
    request_air,
    request_forecast,
)
from toolserver.upstream.decode import parse_body
from toolserver.upstream.source import SourceChanged, SourceDown, SourceEmpty, SourceError, SourceLimited
from toolserver.world import answers
from toolserver.world.model import World

LA, DELHI = Place(34.05, -118.24), Place(28.61, 77.21)
START = datetime(2027, 1, 15, tzinfo=UTC)


def forecast(hours=24, **current):
    times = [f"{START + timedelta(hours=i):%Y-%m-%dT%H:%M}" for i in range(hours)]
    seen = {"time": "2027-01-15T00:15", "temperature_2m": 50.1, "wind_speed_10m": 3, "relative_humidity_2m": 40}
    return {
        "utc_offset_seconds": -28800,
        "timezone": "America/Los_Angeles",
        "current": seen | current,
        "hourly": {
            "time": times,
            "temperature_2m": [40.0 + i for i in range(hours)],
            "wind_speed_10m": [5] * hours,
        },
    }


def test_a_recorded_forecast_parses_to_its_values(sample):
    body = json.loads(sample("open-meteo/forecast-fahrenheit-mph-2026-03.json"))
    body["current"]["relative_humidity_2m"] = 71  # was not asked for when it was recorded
    found = parse_forecast(body, Place(43.7, -79.4))

    assert found.timezone == "America/Toronto"
    assert found.current.time == datetime(2026, 3, 6, 2, 0, tzinfo=UTC)
    assert (found.current.temperature_f, found.current.apparent_temperature_f) == (32.6, 22.5)
    assert (found.current.weather_code, found.current.wind_speed_mph) == (3, 13.2)
    assert [hour.temperature_f for hour in found.hourly] == body["hourly"]["temperature_2m"]
    assert found.hourly[0].time == datetime(2026, 3, 4, 5, 0, tzinfo=UTC)


def test_recorded_air_quality_parses_to_its_values(sample):
    found = parse_air(json.loads(sample("open-meteo/air-quality-current-berlin-2024-02.json")), Place(52.52, 13.41))
    assert found.time == datetime(2024, 2, 21, 15, 0, tzinfo=UTC)
    assert (found.us_aqi, found.european_aqi, found.pm2_5, found.pm10) == (41, 22, 8.8, 9.7)
    assert (found.ozone, found.nitrogen_dioxide, found.sulphur_dioxide, found.carbon_monoxide) == (54, 17.7, 1.3, 220)


def test_a_recorded_answer_to_another_question_is_refused(sample):
    body = json.loads(sample("open-meteo/air-quality-hourly-lahore-2026-10.json"))
    with pytest.raises(KeyError):
        parse_air(body, Place(31.5, 74.4))


def test_the_recorded_refusal_counts_as_limited_whatever_its_status(sample):
    body = json.loads(sample("open-meteo/error-429-minutely.json"))
    with pytest.raises(SourceLimited, match="Minutely API request limit"):
        parse_forecast(body, LA)
    with pytest.raises(SourceChanged, match="must be in range"):
        parse_air({"error": True, "reason": "Latitude must be in range of -90 to 90°."}, LA)


def test_a_key_goes_to_the_customers_host_and_nowhere_else():
    keys = {"OPENMETEO_API_KEY": "sim-1"}
    free, paid = request_forecast(LA, {}), request_forecast(LA, keys)
    assert (free.url, paid.url) == (
        "https://api.open-meteo.com/v1/forecast",
        "https://customer-api.open-meteo.com/v1/forecast",
    )
    assert paid.params == {**free.params, "apikey": "sim-1"}
    assert (free.params["latitude"], free.params["longitude"]) == ("34.05", "-118.24")
    assert request_air(LA, keys).url == "https://customer-air-quality-api.open-meteo.com/v1/air-quality"
    assert ask(FORECAST, LA, keys=keys) == ask(FORECAST, LA)
    with pytest.raises(SourceDown):
        ask(FORECAST, LA, keys={"OPENMETEO_API_KEY": "stolen"})


def test_an_own_server_is_asked_instead_of_both_and_gets_no_key():
    keys = {"OPENMETEO_API_KEY": "sim-1", "OPENMETEO_URL": "https://open-meteo.example/"}
    weather, air = request_forecast(LA, keys), request_air(LA, keys)
    assert weather == replace(
        request_forecast(LA, {}), url="https://open-meteo.example/v1/forecast", under="OPENMETEO_URL"
    )
    assert air == replace(request_air(LA, {}), url="https://open-meteo.example/v1/air-quality", under="OPENMETEO_URL")
    assert ask(FORECAST, LA, keys=keys) == ask(FORECAST, LA)


@given(st.lists(st.one_of(st.none(), st.floats(-130, 140)), min_size=30, max_size=72))
def test_no_hour_is_invented_and_only_hours_without_temperature_are_dropped(temperatures):
    body = forecast(len(temperatures))
    body["hourly"]["temperature_2m"] = temperatures
    known = [t for t in temperatures if t is not None]
    if len(known) < 24:
        with pytest.raises(SourceEmpty):
            parse_forecast(body, LA)
    else:
        assert [hour.temperature_f for hour in parse_forecast(body, LA).hourly] == known


@pytest.mark.parametrize(
    "change",
    [
        {"temperature_2m": None},
        {"temperature_2m": 212},
        {"temperature_2m": "NaN"},
        {"relative_humidity_2m": 0},
        {"relative_humidity_2m": None},
        {"wind_speed_10m": -1},
        {"time": None},
    ],
)
def test_conditions_that_cannot_be_are_no_conditions(change):
    with pytest.raises((ValueError, TypeError, AttributeError)):
        parse_forecast(forecast(**change), LA)


def test_an_optional_value_that_cannot_be_is_left_out():
    found = parse_forecast(forecast(weather_code=None, wind_direction_10m=999, precipitation=-1), LA).current
    assert (found.weather_code, found.wind_direction_deg, found.precipitation_in) == (None, None, None)


def test_arrays_of_unequal_length_are_a_changed_format():
    body = forecast()
    body["hourly"]["wind_speed_10m"].pop()
    with pytest.raises(ValueError, match="zip"):
        parse_forecast(body, LA)


def test_air_needs_an_index_or_fine_dust_and_something_above_zero():
    body = {"utc_offset_seconds": 0, "current": {"time": "2027-01-15T08:00", "pm10": 4}}
    with pytest.raises(SourceEmpty):
        parse_air(body, LA)
    body["current"] |= {"pm2_5": 3.5}
    assert parse_air(body, LA).us_aqi is None
    body["current"] |= {"pm2_5": 0, "pm10": 0, "us_aqi": 0}
    with pytest.raises(SourceChanged, match="every value is 0"):
        parse_air(body, LA)


@pytest.mark.parametrize("place", [LA, DELHI])
def test_the_twin_tells_the_weather_of_the_world(place):
    world, found = World(1, NOW), ask(FORECAST, place)

    seen = sky(world, *place, NOW)
    assert found.current.time == datetime.fromtimestamp(NOW, UTC)
    assert found.current.temperature_f == round(seen.temperature_c * 9 / 5 + 32, 1)
    assert (found.current.humidity_percent, found.current.weather_code) == (seen.humidity, seen.code)
    assert len(found.hourly) == 72
    assert found.timezone == zone(*place).name
    for hour in found.hourly:
        at = hour.time.timestamp()
        assert hour.temperature_f == round(sky(world, *place, at).temperature_c * 9 / 5 + 32, 1)


def test_the_twin_tells_the_air_of_the_world():
    found = ask(AIR_QUALITY, DELHI)
    known = air(World(1, NOW), *DELHI, NOW)
    assert found._asdict() == {"time": datetime.fromtimestamp(NOW, UTC)} | known._asdict()


def test_the_simulated_sky_is_cold_in_winter_warm_by_day_and_the_air_stays_in_bounds():
    world = World(1, NOW)
    year = [NOW + 86400 * day for day in range(0, 365, 5)]
    january = sum(sky(world, 50, 0, NOW + 3600 * h).temperature_c for h in range(240))
    july = sum(sky(world, 50, 0, NOW + 180 * 86400 + 3600 * h).temperature_c for h in range(240))
    nights = sum(sky(world, 10, 0, at + 19 * 3600).temperature_c for at in year)
    days = sum(sky(world, 10, 0, at + 7 * 3600).temperature_c for at in year)
    assert july > january + 2400
    assert days > nights + 5 * len(year)
    for at in year:
        for lat in range(-90, 91, 30):
            assert -85 < sky(world, lat, 0, at).temperature_c < 50
            assert 10 <= air(world, lat, 0, at).us_aqi <= 180


@pytest.mark.parametrize("source", [FORECAST, AIR_QUALITY])
def test_every_fault_of_the_twin_is_an_error(source):
    with pytest.raises(SourceLimited):
        ask(source, LA, form="error200")
    with pytest.raises(SourceDown):
        ask(source, LA, form="limited")
    with pytest.raises((SourceError, KeyError, AttributeError)):
        ask(source, LA, form="empty")


@pytest.mark.parametrize("source", [FORECAST, AIR_QUALITY])
def test_what_is_not_the_document_is_refused_and_other_forms_of_it_are_read(source):
    request = source.plan(LA, {})
    reply = fetch(World(1, NOW), request)
    told = parse_body(source, request, LA, reply.body)

    pages = b"<!DOCTYPE html><html></html>"
    for body in (b"", pages, reply.body[:400], b"[]", b"{}", answers.zeros(reply, NOW).body):
        with pytest.raises(SourceError):
            parse_body(source, request, LA, body)
    for form in ("extra", "strings", "bom"):
        assert parse_body(source, request, LA, answers.drift(reply, form).body) == told
    with pytest.raises(SourceChanged):
        parse_body(source, request, LA, answers.drift(reply, "renamed").body)


def test_what_callers_ask_about_is_never_kept_on_disk():
    assert FORECAST.user_input
    assert AIR_QUALITY.user_input
