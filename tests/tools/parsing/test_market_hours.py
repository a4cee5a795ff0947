"""New York's clock and its trading hours."""

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.parsing.market_hours import from_new_york, in_session, new_york_offset, to_new_york
from tools.simulated import stocks


@pytest.mark.parametrize(
    ("day", "hours"),
    [((2027, 3, 13), -5), ((2027, 3, 14), -4), ((2027, 11, 6), -4), ((2027, 11, 7), -5), ((2026, 7, 1), -4)],
)
def test_summer_time_lasts_from_the_second_sunday_of_march_to_the_first_of_november(day, hours):
    assert new_york_offset(date(*day)) == timedelta(hours=hours)


@given(st.datetimes(datetime(2020, 1, 1, 4), datetime(2035, 1, 1)))
def test_there_and_back_is_the_same_instant_but_for_the_night_the_clocks_change(local):
    if local.weekday() == 6:
        return
    assert to_new_york(from_new_york(local)) == local


@given(st.dates(date(2020, 1, 1), date(2035, 1, 1)))
def test_the_simulated_exchange_keeps_the_same_hours(day):
    opens, closes = stocks.session(day)

    assert in_session(datetime.fromtimestamp(opens, UTC)) == (day.weekday() < 5)
    assert not in_session(datetime.fromtimestamp(opens - 1, UTC))
    assert not in_session(datetime.fromtimestamp(closes, UTC))
