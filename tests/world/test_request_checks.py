"""Members of a control request: named, typed and bounded."""

import math

import pytest

from toolserver.world import request_checks as check
from toolserver.world.request_checks import ControlRefused


def test_an_unknown_member_is_refused_with_the_names_there_are():
    assert check.members({"a": 1}, {"a", "b"}, "A rule") == {"a": 1}
    with pytest.raises(ControlRefused, match="A rule has no member 'c'; it has a, b"):
        check.members({"a": 1, "c": 2}, {"b", "a"}, "A rule")


@pytest.mark.parametrize("body", [None, [], "x", 1])
def test_a_body_is_an_object(body):
    with pytest.raises(ControlRefused) as refused:
        check.an_object(body, "The body")

    assert refused.value.status == 400


@pytest.mark.parametrize("value", [True, "1", None, math.nan, math.inf])
def test_a_number_is_a_finite_number(value):
    with pytest.raises(ControlRefused, match="must be a number"):
        check.number(value, "x")


@pytest.mark.parametrize(("value", "taken"), [(0, True), (10, True), (-0.1, False), (10.1, False)])
def test_a_number_has_bounds_that_belong_to_it(value, taken):
    if taken:
        assert check.number(value, "x", 0, 10) == value
    else:
        with pytest.raises(ControlRefused, match="between 0 and 10"):
            check.number(value, "x", 0, 10)


def test_a_whole_number_may_be_written_with_a_point():
    assert check.whole(3.0, "n", 0, 5) == 3
    with pytest.raises(ControlRefused, match="whole number"):
        check.whole(3.5, "n", 0, 5)


@pytest.mark.parametrize("value", ["", "x" * 301, 5, None])
def test_a_text_has_a_length(value):
    with pytest.raises(ControlRefused):
        check.text(value, "name")


def test_a_flag_is_true_or_false_and_nothing_like_it():
    assert check.flag(False, "on") is False
    with pytest.raises(ControlRefused):
        check.flag(0, "on")


def test_a_choice_that_does_not_exist_is_refused_with_those_that_do():
    assert check.choice("a", "kind", {"a", "b"}) == "a"
    for value in ("c", ["a"]):
        with pytest.raises(ControlRefused, match="one of a, b"):
            check.choice(value, "kind", {"b", "a"})


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (1_800_000_000, 1_800_000_000),
        ("2027-01-15T08:00:00Z", 1_800_000_000),
        ("2027-01-15T08:00:00", 1_800_000_000),
        ("2027-01-15T10:00:00+02:00", 1_800_000_000),
    ],
)
def test_an_instant_is_epoch_seconds_or_iso_8601_and_utc_without_a_zone(value, seconds):
    assert check.instant(value, "at") == seconds


@pytest.mark.parametrize("value", ["soon", -1, "1950-01-01"])
def test_an_instant_before_the_epoch_or_of_another_form_is_refused(value):
    with pytest.raises(ControlRefused):
        check.instant(value, "at")
