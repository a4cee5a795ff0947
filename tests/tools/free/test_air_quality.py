"""The air quality tool."""

import pytest

import tools.simulated.airnow
import tools.simulated.open_meteo  # noqa: F401 - registers its routes
from tests.requirements import proves
from tests.tools.desk import NOW
from tools.free.air_quality import air_quality, aqi_band, nearest
from tools.parsing.places import Place
from tools.sources.airnow import Area
from toolserver.registry.registry import operation_of
from toolserver.upstream.source import SourceEmpty, SourceError
from toolserver.world.model import ROUTES, World

TYLER = Area("Tyler", "TX", 32.35, -95.3, 61, "OZONE", None)
HOUSTON = Area("Houston", "TX", 29.751, -95.351, 44, "PM2.5", None)
CONCENTRATIONS = ("pm2_5", "pm10", "ozone", "nitrogen_dioxide", "sulphur_dioxide", "carbon_monoxide")
LOS_ANGELES = (34.05, -118.24, True)


@pytest.mark.parametrize(
    ("aqi", "band"),
    [
        (0, "good"),
        (50, "good"),
        (51, "moderate"),
        (100, "moderate"),
        (150, "unhealthy_sensitive"),
        (200, "unhealthy"),
        (201, "very_unhealthy"),
        (300, "very_unhealthy"),
        (301, "hazardous"),
        (600, "hazardous"),
    ],
)
def test_the_band_of_an_index(aqi, band):
    assert aqi_band(aqi) == band


def test_the_nearest_area_counts_if_it_is_near():
    near = nearest([HOUSTON, TYLER], Place(32.1, -95.1), World(1, NOW).time)
    assert near.area == TYLER
    assert near.distance_km == pytest.approx(33.6, abs=0.5)
    with pytest.raises(SourceEmpty, match="within 60 km"):
        nearest([HOUSTON, TYLER], Place(31.0, -95.3), World(1, NOW).time)


async def test_the_air_is_that_of_the_world(compose):
    for arguments in ({}, {"lat": 52.52, "lon": "13.405"}):
        made = await compose(air_quality, arguments)
        asked = {name: f"{float(value):.2f}" for name, value in arguments.items()}
        expected = ROUTES.expectations["air-quality"](World(1, NOW), asked)
        assert {name: made.json[name] for name in expected} == expected
        assert (made.json["unit"], made.json["station"]) == ("µg/m³", None)
        assert made.json["us_aqi_band"] == aqi_band(made.json["us_aqi"])


async def test_airnow_gives_the_index_of_the_nearest_area_and_no_concentrations(compose):
    usual = (await compose(air_quality)).json
    made = await compose(air_quality, down={"OpenMeteo.air_quality"})
    told = made.json
    assert told["station"] == {"name": "Central LA CO", "distance_km": 2.2, "pollutant": "PM2.5"}
    assert (told["us_aqi"], told["time"]) == (usual["us_aqi"], "2027-01-15T08:00:00Z")
    assert [told[name] for name in ("european_aqi", *CONCENTRATIONS)] == [None] * 7
    assert [warning.code for warning in made.notes.warnings] == ["default_location", "fallback_used"]


async def test_far_from_every_area_nothing_is_invented(compose):
    with pytest.raises(SourceError):
        await compose(air_quality, {"lat": 52.52, "lon": 13.4}, down={"OpenMeteo.air_quality"})
    with pytest.raises(SourceError):
        await compose(air_quality, down={"*"})


@proves("air-quality.defaults")
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"lat": 48.1},
        {"lon": 11.6},
        {"lat": 91, "lon": 11.6},
        {"lat": 48.1, "lon": "-180.5"},
        {"lat": "north", "lon": 11.6},
        {"lat": "", "lon": ""},
        {"lat": "NaN", "lon": 11.6},
        {"lat": float("inf"), "lon": 11.6},
        {"lat": [48.1], "lon": {"east": 11.6}},
        {"lat": True, "lon": 10**400},
        {"lat": None, "lon": 11.6},
    ],
)
async def test_a_missing_or_invalid_coordinate_makes_it_los_angeles(compose, arguments):
    made = await compose(air_quality, arguments)
    assert (made.json["lat"], made.json["lon"], made.json["default_location"]) == LOS_ANGELES


async def test_the_default_place_given_by_hand_is_not_a_default(compose):
    made = await compose(air_quality, {"lat": "34.0511", "lon": -118.2449})
    assert (made.json["lat"], made.json["lon"], made.json["default_location"]) == (34.05, -118.24, False)


def test_the_schema_names_the_bounds_and_the_defaults():
    properties = operation_of(air_quality).input_schema["properties"]
    assert properties["lat"] == {
        "type": "number",
        "minimum": -90,
        "maximum": 90,
        "default": 34.05,
        "description": "Latitude",
    }
    assert properties["lon"]["default"] == -118.24
