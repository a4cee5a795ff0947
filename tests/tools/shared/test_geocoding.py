"""From a name to a place: the one that is meant, one that is narrowed down, or a list to choose from."""

import json
from pathlib import Path

import pytest

from tests.requirements import proves
from tools.free.air_quality import air_quality
from tools.free.weather import weather
from tools.parsing.places import distance_km
from tools.shared import geocoding
from tools.shared.gazetteer import open_gazetteer
from tools.shared.geocoding import find_city
from toolserver.errors import InvalidArguments
from toolserver.upstream.source import SourceError, SourceUnproved

AS_WRITTEN = json.loads((Path(__file__).parent / "place_names.json").read_text(encoding="utf-8"))
RIGHT_KM = 10


def codes(made):
    return [warning.code for warning in made.notes.warnings]


def names_of(made):
    return [note.source.name for note in made.notes.used if note.section == "data.place"]


@proves("places.named")
@pytest.mark.parametrize(
    ("given", "lat", "lon", "name"),
    [
        ("Paris", 48.85, 2.35, "Paris, Île-de-France, France"),
        ("  paris ", 48.85, 2.35, "Paris, Île-de-France, France"),
        ("Paris, Texas", 33.66, -95.56, "Paris, Texas, United States"),
        ("San Francisco, CA", 37.77, -122.42, "San Francisco, California, United States"),
        ("Springfield, Illinois", 39.8, -89.64, "Springfield, Illinois, United States"),
        ("London, CA", 42.98, -81.23, "London, Ontario, Canada"),
        ("Sao Paulo", -23.55, -46.64, "São Paulo, São Paulo, Brazil"),
        ("Singapore", 1.29, 103.85, "Singapore, Singapore"),
        ("東京", 35.69, 139.69, "Tokyo, Tokyo, Japan"),
    ],
)
async def test_a_name_is_the_place_that_is_meant_and_nobody_is_asked_for_it(compose, given, lat, lon, name):
    for tool in (weather, air_quality):
        made = await compose(tool, {"place": given})
        assert (made.json["lat"], made.json["lon"], made.json["place"]) == (lat, lon, name)
        assert made.json["default_location"] is False
        assert codes(made) == []
        assert names_of(made) == ["Bundled.geonames_cities"]
        assert "OpenMeteo.geocoding" not in {source for source, _ in made.desk.asked}
        same = await compose(tool, {"lat": lat, "lon": lon})
        assert {**same.json, "place": name} == made.json


def judge(row):
    """Whether a name leads to its place, is refused with the place among the candidates, or neither."""
    try:
        city = find_city(open_gazetteer(), row["written"])
    except InvalidArguments as refusal:
        points = [(each["lat"], each["lon"]) for each in refusal.extra["candidates"]]
        named = any(distance_km(row["lat"], row["lon"], *point) < RIGHT_KM for point in points)
        return "refused" if named else "lost"
    return "right" if city and distance_km(row["lat"], row["lon"], *city.place) < RIGHT_KM else "wrong"


@proves("places.as-written")
def test_of_names_as_people_write_them_95_in_100_are_right_and_the_rest_are_among_the_candidates():
    verdicts = {row["written"]: judge(row) for row in AS_WRITTEN}

    assert len(verdicts) >= 200
    assert len({row["country"] for row in AS_WRITTEN}) >= 20
    assert len({row["script"] for row in AS_WRITTEN}) >= 10
    assert sum(verdict == "right" for verdict in verdicts.values()) >= 0.95 * len(verdicts)
    assert {name: verdict for name, verdict in verdicts.items() if verdict not in ("right", "refused")} == {}


@proves("places.candidates")
@pytest.mark.parametrize(
    ("given", "listed"),
    [
        ("Springfield", "Springfield, Missouri, United States"),
        ("Valencia", "Valencia, Valencia, Spain"),
        ("Cambridge", "Cambridge, Massachusetts, United States"),
        ("Ontario", "Toronto, Ontario, Canada"),
        ("Victoria", "Melbourne, Victoria, Australia"),
        ("Texas", "Houston, Texas, United States"),
        ("Georgia", "Tbilisi, Tbilisi, Georgia"),
        ("Paris, Atlantis", "Paris, Île-de-France, France"),
    ],
)
async def test_a_name_that_may_mean_several_places_is_refused_and_each_candidate_can_be_sent_back(
    compose, given, listed
):
    with pytest.raises(InvalidArguments) as refused:
        await compose(weather, {"place": given})
    candidates = refused.value.extra["candidates"]

    assert listed in refused.value.extra["did_you_mean"]
    assert [each["place"] for each in candidates] == refused.value.extra["did_you_mean"]
    for candidate in candidates:
        assert candidate["place"] in refused.value.detail
        chosen = await compose(weather, {"place": candidate["place"]})
        assert (chosen.json["place"], chosen.json["lat"]) == (candidate["place"], candidate["lat"])


@pytest.mark.parametrize(
    ("given", "lat", "name"),
    [
        ("Hallstatt", 47.56, "Hallstatt, Upper Austria, Austria"),
        ("Hallstatt, Österreich", 47.56, "Hallstatt, Upper Austria, Austria"),
        ("Hallstatt Austria", 47.56, "Hallstatt, Upper Austria, Austria"),
        ("Cambridge, NY", 43.03, "Cambridge, New York, United States"),
        ("Rockport, TX", 28.02, "Rockport, Texas, United States"),
    ],
)
async def test_a_place_that_is_too_small_to_be_shipped_is_asked_for(compose, given, lat, name):
    made = await compose(weather, {"place": given})

    assert (made.json["lat"], made.json["place"]) == (lat, name)
    assert names_of(made) == ["OpenMeteo.geocoding"]


async def test_small_places_with_one_name_are_refused_with_the_candidates(compose):
    with pytest.raises(InvalidArguments, match="several places have this name") as refused:
        await compose(weather, {"place": "Rockport"})
    for candidate in refused.value.extra["did_you_mean"]:
        assert (await compose(weather, {"place": candidate})).json["place"] == candidate


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


async def test_without_the_geocoder_cities_are_answered_for_and_no_other_place_stands_for_a_small_one(compose):
    assert (await compose(weather, {"place": "Paris"}, down={"OpenMeteo.geocoding"})).json["lat"] == 48.85
    with pytest.raises(SourceError):
        await compose(weather, {"place": "Hallstatt"}, down={"OpenMeteo.geocoding"})


async def test_the_default_place_is_told_in_a_warning_and_only_then(compose):
    for tool in (weather, air_quality):
        default = await compose(tool)
        given = await compose(tool, {"lat": 34.05, "lon": -118.24})
        assert (codes(default), codes(given)) == (["default_location"], [])
        assert (default.json["default_location"], given.json["default_location"]) == (True, False)
