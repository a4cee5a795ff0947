"""Names of places as people write them."""

import pytest

from tools.parsing.place_names import PlaceQuery, fold, read_place


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("São PAULO", "sao paulo"),
        ("İstanbul", "istanbul"),
        ("Łódź", "lodz"),
        ("St. John's", "Saint Johns"),
        ("D.C.", "DC"),
        ("Xi’an", "Xi'an"),
        ("Saint-Étienne", "st etienne"),
        ("القَاهِرَة", "القاهره"),
        ("Αθήνα", "ΑΘΗΝΑ"),
        ("ﾄｳｷｮｳ", "トウキョウ"),
    ],
)
def test_spellings_of_one_name_are_the_same(one, other):
    assert fold(one) == fold(other)


@pytest.mark.parametrize(("one", "other"), [("दिल्ली", "दल्ली"), ("バス", "ハス"), ("St. Paul", "Sao Paulo")])
def test_different_names_stay_different(one, other):
    assert fold(one) != fold(other)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("San Francisco, CA", PlaceQuery("San Francisco", ("CA",))),
        ("Austin, TX 78701, USA", PlaceQuery("Austin", ("TX", "USA"))),
        ("Austin, 78701", PlaceQuery("Austin")),
        ("Paris (France)", PlaceQuery("Paris", ("France",))),
        ("القاهرة، مصر", PlaceQuery("القاهرة", ("مصر",))),
        ("東京、日本", PlaceQuery("東京", ("日本",))),
        (", ,", PlaceQuery("")),
    ],
)
def test_what_follows_a_separator_is_an_area_and_a_postal_code_is_none(text, first):
    assert next(read_place(text)) == first


def test_without_a_comma_the_last_words_may_be_an_area_and_with_one_the_first():
    assert list(read_place("Santa Fe New Mexico"))[1:] == [
        PlaceQuery("Santa Fe New", ("Mexico",)),
        PlaceQuery("Santa Fe", ("New Mexico",)),
        PlaceQuery("Santa", ("Fe New Mexico",)),
    ]
    assert list(read_place("日本、東京"))[-1] == PlaceQuery("東京", ("日本",))
