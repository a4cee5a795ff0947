"""A list of earthquakes is believed when it is as long as any day's, and of now."""

from datetime import timedelta

import pytest

from tests.tools.desk import NOW
from tools.parsing.earthquakes import Quake, QuakeList
from tools.shared.quakes import LEAST_A_DAY, living_day, whole_day
from toolserver.upstream.source import SourceUnproved
from toolserver.world.model import World

AT = World(1, NOW).time


def listed(count, youngest):
    quakes = (
        Quake(f"q{n}", 3.0, "Here", AT - youngest - n * timedelta(minutes=1), 10.0, 0.0, 0.0, "earthquake", None)
        for n in range(count)
    )
    return QuakeList(tuple(quakes), AT)


def test_a_day_has_as_many_earthquakes_as_any_day_has():
    whole = listed(LEAST_A_DAY, timedelta(hours=5))
    assert whole_day(whole, AT) is whole
    with pytest.raises(SourceUnproved, match="4 earthquakes in a day"):
        whole_day(listed(LEAST_A_DAY - 1, timedelta(0)), AT)
    with pytest.raises(SourceUnproved):
        whole_day(listed(50, timedelta(hours=26)), AT)  # none of them is of the day


def test_a_list_without_a_stamp_needs_an_event_of_the_past_minutes():
    assert living_day(listed(20, timedelta(minutes=90)), AT)
    with pytest.raises(SourceUnproved):
        living_day(listed(20, timedelta(minutes=91)), AT)
