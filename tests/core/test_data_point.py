"""A number and its time."""

from datetime import UTC, datetime, timedelta

from toolserver.core.data_point import DataPoint

START = datetime(2027, 1, 15, 8, tzinfo=UTC)


def test_points_sort_by_their_time_before_their_value():
    early, late = DataPoint(START, 9.0), DataPoint(START + timedelta(seconds=1), 1.0)
    assert sorted([late, early]) == [early, late]
