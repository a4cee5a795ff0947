"""Headlines and pictures: paths into a payload."""

import pytest

from toolserver.registry.display import CardValue, read_path

PAYLOAD = {"count": 2, "quakes": [{"m": 5.1, "place": "here"}, {"m": 0}], "by": {"a": {"s": [1]}, "b": {"s": None}}}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("", PAYLOAD),
        ("count", 2),
        ("quakes.0.m", 5.1),
        ("quakes.1.m", 0),
        ("quakes.length", 2),
        ("quakes.2.m", None),
        ("quakes.x", None),
        ("count.m", None),
        ("none.m", None),
    ],
)
def test_a_path_leads_to_a_value_or_to_nothing(path, found):
    assert read_path(PAYLOAD, path) == found


def test_a_headline_reads_its_value_and_a_note_of_words_and_values():
    line = CardValue("count", "", "newest M {quakes.0.m}, {quakes.0.place}")
    assert line.read(PAYLOAD) == (2, ["newest M ", 5.1, ", ", "here"])
    assert line.read(None) == (None, ["newest M ", None, ", ", None])
    assert line.paths == ["count", "quakes.0.m", "quakes.0.place"]


def test_of_alternatives_in_a_note_the_first_without_a_missing_value_is_shown():
    card = CardValue("x", note="rain at {place|lat, lon}")
    assert card.paths == ["x", "place", "lat", "lon"]
    assert card.read({"place": "Oslo", "lat": 1, "lon": 2})[1] == ["rain at ", "Oslo"]
    assert card.read({"place": None, "lat": 1, "lon": 2})[1] == ["rain at ", 1, ", ", 2]
    assert card.read({"lat": 1})[1] == ["rain at ", None]
