"""The shipped gazetteer: its cities, states and countries by name."""

from importlib import resources

import pytest

from tools.shared.gazetteer import LONGER_NAME, OTHER_NAME, SAME_NAME, SAME_SPELLING, compare_names, open_gazetteer

MOST_BYTES = 1_200_000


@pytest.mark.parametrize(
    ("name", "first", "timezone"),
    [
        ("munchen", "Munich, Bavaria, Germany", "Europe/Berlin"),
        ("Bombay", "Mumbai, Maharashtra, India", "Asia/Kolkata"),
        ("大阪市", "Osaka, Osaka, Japan", "Asia/Tokyo"),
        ("Quebec City", "Québec, Quebec, Canada", "America/Toronto"),
        ("San José", "San José, San José, Costa Rica", "America/Costa_Rica"),
        ("San Jose", "San Jose, California, United States", "America/Los_Angeles"),
    ],
)
def test_a_city_is_known_by_its_names_and_accents_count_where_they_tell_cities_apart(name, first, timezone):
    city = open_gazetteer().find_cities(name)[0].located
    assert (city.full_name, city.timezone) == (first, timezone)


@pytest.mark.parametrize("name", ["", " ", "Xyzzyville", "|", "\n", "@XYZZY", "=cities", "munich|munchen"])
def test_what_is_no_name_finds_nothing(name):
    assert open_gazetteer().find_cities(name) == []
    assert open_gazetteer().find_areas(name) == []


@pytest.mark.parametrize(
    ("name", "area"),
    [
        ("UK", ("GB", None)),
        ("U.S.A.", ("US", None)),
        ("The Netherlands", ("NL", None)),
        ("Россия", ("RU", None)),
        ("日本", ("JP", None)),
        ("TX", ("US", "TX")),
        ("Bayern", ("DE", "02")),
        ("nsw", ("AU", "02")),
        ("神奈川県", ("JP", "19")),
    ],
)
def test_areas_are_known_by_code_and_by_name(name, area):
    assert area in [(each.country_code, each.region) for each in open_gazetteer().find_areas(name)]


def test_a_code_may_be_that_of_several_areas():
    names = {area.name for area in open_gazetteer().find_areas("CA")}
    assert names >= {"Canada", "California"}


def test_the_largest_cities_of_an_area_stand_by_weight():
    (texas,) = open_gazetteer().find_areas("Texas")
    largest = open_gazetteer().list_largest(texas, 3)
    assert [city.name for city in largest] == ["Houston", "San Antonio", "Dallas"]


@pytest.mark.parametrize(
    ("name", "main_name", "likeness"),
    [
        ("st louis", "St. Louis", SAME_SPELLING),
        ("St. Louis", "Saint-Louis", SAME_NAME),
        ("New York", "New York City", LONGER_NAME),
        ("Quebec City", "Québec", LONGER_NAME),
        ("Newt", "Newton", OTHER_NAME),
        ("Peking", "Beijing", OTHER_NAME),
    ],
)
def test_a_name_is_the_main_one_of_a_city_or_near_it_or_another(name, main_name, likeness):
    assert compare_names(name, main_name) == likeness


def test_the_copy_is_small():
    assert len((resources.files("tools.shared") / "data" / "gazetteer.txt.xz").read_bytes()) < MOST_BYTES
