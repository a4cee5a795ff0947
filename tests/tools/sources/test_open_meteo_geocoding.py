"""Open-Meteo's geocoder."""

import pytest

import tools.simulated.open_meteo_geocoding  # noqa: F401 - it serves
from tests.tools.desk import ask
from tools.sources.open_meteo_geocoding import GEOCODING, parse, request
from toolserver.upstream.source import SourceChanged

ROW = {"name": "Paris", "latitude": 48.85341, "longitude": 2.3488, "country": "France", "country_code": "FR"}


def test_a_search_is_in_english_and_with_a_key_on_the_customers_host():
    free, keyed = request("Paris", {}), request("Paris", {"OPENMETEO_API_KEY": "sim-1"})
    assert (free.url, free.params["name"]) == ("https://geocoding-api.open-meteo.com/v1/search", "Paris")
    assert free.params["language"] == "en"
    assert (keyed.url, keyed.params["apikey"]) == ("https://customer-geocoding-api.open-meteo.com/v1/search", "sim-1")


def test_places_are_read_with_what_is_known_of_them():
    (found,) = parse({"results": [ROW], "generationtime_ms": 0.5}, "Paris")
    assert (found.full_name, found.place, found.weight) == ("Paris, France", (48.85, 2.35), 0)


def test_no_result_is_an_answer_and_an_error_is_none():
    assert parse({"generationtime_ms": 0.5}, "x") == ()
    for body in ({"error": True, "reason": "no"}, {}):
        with pytest.raises(SourceChanged):
            parse(body, "x")


@pytest.mark.parametrize("change", [{"latitude": 91}, {"longitude": None}, {"name": 5}])
def test_a_place_that_is_none_is_refused(change):
    with pytest.raises((ValueError, TypeError, AttributeError)):
        parse({"results": [ROW | change]}, "Paris")


def test_the_twin_knows_cities_by_name():
    assert [place.country_code for place in ask(GEOCODING, "paris")] == ["FR", "US"]
    assert ask(GEOCODING, "nowhere at all") == ()
