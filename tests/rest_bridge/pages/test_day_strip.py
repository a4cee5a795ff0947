"""Strips of 24 hours: every known quarter is drawn at its place, and nothing else."""

import re

from hypothesis import given
from hypothesis import strategies as st

from rest_bridge.pages.day_strip import HEIGHTS, describe_day, draw_strip, write_share


def columns(drawn):
    """The columns of a strip by their place, with the height of each."""
    heights = {}
    for left, height, width in re.findall(r"M(\d+) \d+h\d+v(\d+)h-(\d+)z", str(drawn)):
        heights |= {int(left) + step: int(height) for step in range(int(width))}
    return heights


@given(st.text("gpf.", min_size=1, max_size=96))
def test_each_known_quarter_is_a_column_of_its_states_height_and_unknown_ones_are_none(day):
    assert columns(draw_strip(day)) == {place: HEIGHTS[letter] for place, letter in enumerate(day) if letter != "."}


def test_the_strip_says_in_words_what_it_shows():
    assert describe_day("..ggpf") == "The past 24 hours in quarters of an hour: 2 good, 1 partly, 1 failed, 2 not asked"
    assert 'role="img"' in draw_strip("..gg")
    assert describe_day("..gg") in draw_strip("..gg")


def test_a_share_is_never_rounded_to_all_or_nothing():
    shares = (None, 0, 0.00001, 0.5, 0.99999, 1)
    assert [write_share(share) for share in shares] == ["–", "0%", "0.1%", "50.0%", "99.9%", "100%"]


def test_a_column_stands_on_the_ground_and_runs_of_one_state_are_drawn_as_one():
    assert draw_strip("gg.fpf") == (
        '<svg class="strip" viewBox="0 0 6 12" preserveAspectRatio="none" role="img" aria-label="'
        'The past 24 hours in quarters of an hour: 2 good, 1 partly, 2 failed, 1 not asked">'
        '<path class="good" d="M0 0h2v12h-2z"/><path class="bad" d="M3 8h1v4h-1zM5 8h1v4h-1z"/>'
        '<path class="warn" d="M4 4h1v8h-1z"/></svg>'
    )


def test_a_state_that_did_not_occur_is_not_named():
    assert describe_day("gg") == "The past 24 hours in quarters of an hour: 2 good"
