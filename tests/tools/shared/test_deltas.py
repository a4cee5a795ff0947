"""How much of the hour is known of the markets."""

import pytest

from tools.shared.deltas import Moves


@pytest.mark.parametrize(
    ("unknown", "traded", "is_incomplete"), [(0, 0, False), (1, 2, False), (2, 4, False), (2, 3, True), (3, 3, True)]
)
def test_an_hour_is_incomplete_when_more_than_half_of_the_markets_have_no_known_change(unknown, traded, is_incomplete):
    assert Moves([], unknown, traded).is_incomplete is is_incomplete
