"""From a name to a place: one that everybody means, one that is narrowed down, or a list to choose from."""

import pytest

import tools.simulated.open_meteo
import tools.simulated.open_meteo_geocoding  # noqa: F401 - they serve
from tools.free.air_quality import air_quality
from tools.free.weather import weather
from tools.shared import geocoding
from tools.shared.geocoding import fold
from toolserver.errors import InvalidArguments
from toolserver.upstream.source import SourceError, SourceUnproved


def codes(made):
    return [warning.code for warning in made.notes.warnings]


@pytest.mark.parametrize(
    ("given", "lat", "lon", "name"),
    [
        ("Paris", 48.85, 2.35, "Paris, Île-de-France, France"),
        ("  paris ", 48.85, 2.35, "Paris, Île-de-France, France"),
        ("Paris, Texas", 33.66, -95.56, "Paris, Texas, United States"),
        ("Springfield, Illinois", 39.8, -89.64, "Springfield, Illinois, United States"),
        ("London, CA", 42.98, -81.23, "London, Ontario, Canada"),
        ("Sao Paulo", -23.55, -46.64, "São Paulo, São Paulo, Brazil"),
        ("Singapore", 1.29, 103.85, "Singapore, Singapore"),
    ],
)
async def test_a_name_is_the_place_that_is_meant(compose, given, lat, lon, name):
    for tool in (weather, air_quality):
        made = await compose(tool, {"place": given})
        assert (made.json["lat"], made.json["lon"], made.json["place"]) == (lat, lon, name)
        assert made.json["default_location"] is False
        assert codes(made) == []
        same = await compose(tool, {"lat": lat, "lon": lon})
        assert {**same.json, "place": name} == made.json


@pytest.mark.parametrize(
    ("given", "listed"),
    [
        ("Springfield", ["Springfield, Missouri, United States", "Springfield, Massachusetts, United States"]),
        ("San Jose", ["San Jose, California, United States", "San José, San José, Costa Rica"]),
    ],
)
async def test_a_name_that_several_places_have_is_refused_with_the_candidates(compose, given, listed):
    with pytest.raises(InvalidArguments, match="several places have this name") as refused:
        await compose(weather, {"place": given})
    assert refused.value.extra["did_you_mean"][:2] == listed
    assert all(candidate["place"] in refused.value.detail for candidate in refused.value.extra["candidates"])
    chosen = await compose(weather, {"place": refused.value.extra["did_you_mean"][0]})
    assert chosen.json["place"] == listed[0]


async def test_a_name_that_no_place_has_is_refused_and_no_weather_is_told(compose):
    with pytest.raises(InvalidArguments, match="no place named 'Xyzzyville' is known"):
        await compose(weather, {"place": "Xyzzyville"})


async def test_a_geocoder_that_knows_no_place_at_all_proves_nothing_about_a_name(compose, monkeypatch):
    monkeypatch.setattr(geocoding, "KNOWN", "Nowhereville")
    with pytest.raises(SourceUnproved, match="not even Nowhereville"):
        await compose(weather, {"place": "Xyzzyville"})


async def test_a_name_and_coordinates_together_are_refused(compose):
    for tool in (weather, air_quality):
        with pytest.raises(InvalidArguments, match="not both"):
            await compose(tool, {"place": "Paris", "lat": 1, "lon": 2})


async def test_without_the_geocoder_no_other_place_is_answered_for(compose):
    with pytest.raises(SourceError):
        await compose(weather, {"place": "Paris"}, down={"OpenMeteo.geocoding"})


async def test_the_default_place_is_told_in_a_warning_and_only_then(compose):
    for tool in (weather, air_quality):
        default = await compose(tool)
        given = await compose(tool, {"lat": 34.05, "lon": -118.24})
        assert (codes(default), codes(given)) == (["default_location"], [])
        assert (default.json["default_location"], given.json["default_location"]) == (True, False)


def test_names_are_compared_without_case_and_accents():
    assert fold("São PAULO") == fold("sao paulo")
