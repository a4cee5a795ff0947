"""Dated series: order, gaps, changes, and CSV tables by header name."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.parsing.series import (
    Observation,
    calendar_date,
    newest,
    newest_at,
    nonzero,
    previous,
    series,
    spread,
    table,
    year_over_year_percent,
)
from toolserver.upstream.source import SourceChanged, SourceEmpty

days = st.dates(date(1950, 1, 1), date(2090, 1, 1))


@given(st.dictionaries(days, st.none() | st.floats(-1e6, 1e6), max_size=30))
def test_a_series_holds_every_published_value_once_and_oldest_first(pairs):
    made = series(pairs.items())

    assert dict(made) == {day: value for day, value in pairs.items() if value is not None}
    assert [day for day, _ in made] == sorted(day for day, value in pairs.items() if value is not None)


def test_the_newest_observation_is_the_youngest_published_one_and_previous_the_one_before_it():
    made = series([(date(2026, 3, 1), None), (date(2026, 2, 1), 5.0), (date(2025, 12, 1), 4.0)])

    assert newest(made) == Observation(date(2026, 2, 1), 5.0)
    assert previous(made) == Observation(date(2025, 12, 1), 4.0)
    assert newest_at(made, ()) == datetime(2026, 2, 1, tzinfo=UTC)


def test_an_empty_series_has_no_newest_observation():
    with pytest.raises(SourceEmpty):
        newest(())
    assert previous(()) is None
    assert newest_at(()) is None


def test_year_over_year_is_against_the_month_twelve_months_earlier():
    made = series([(date(2025, 6, 1), 300.0), (date(2025, 7, 1), 290.0), (date(2026, 6, 1), 309.0)])

    assert year_over_year_percent(made) == pytest.approx(3.0)


def test_year_over_year_is_unknown_when_that_month_was_never_published():
    made = series([(date(2025, 9, 1), 300.0), (date(2025, 10, 1), None), (date(2026, 10, 1), 309.0)])

    assert year_over_year_percent(made) is None


@given(st.dictionaries(days, st.floats(-9, 9), max_size=20), st.dictionaries(days, st.floats(-9, 9), max_size=20))
def test_a_spread_exists_exactly_on_the_days_both_have(one, other):
    made = spread(series(one.items()), series(other.items()))

    assert {day for day, _ in made} == one.keys() & other.keys()
    assert all(value == one[day] - other[day] for day, value in made)


def test_a_series_of_nothing_but_zeros_is_not_believed():
    with pytest.raises(SourceChanged):
        nonzero(series([(date(2026, 1, 1), 0.0), (date(2026, 1, 2), 0.0)]))
    assert nonzero(()) == ()


@pytest.mark.parametrize(
    ("text", "day"),
    [("01/04/2027", date(2027, 1, 4)), ("4/2/1971", date(1971, 4, 2)), (" 2026-07-23 ", date(2026, 7, 23))],
)
def test_dates_are_read_in_the_forms_that_upstreams_write(text, day):
    assert calendar_date(text) == day


@pytest.mark.parametrize("text", ["", "13/01/2026", "1/2", "2026", "07-23-2026"])
def test_what_is_no_date_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 - each form has its own wording
        calendar_date(text)


def test_a_table_is_read_by_header_name_whatever_the_order_and_the_byte_order_mark():
    assert table('\ufeffb,"2 Yr", a\n1,2,3\n\n4,5,6\n', "a", "2 Yr") == [
        {"b": "1", "2 Yr": "2", "a": "3"},
        {"b": "4", "2 Yr": "5", "a": "6"},
    ]


@pytest.mark.parametrize("text", ["", "<!DOCTYPE html>\n<html>", "a,c\n1,2\n", "a,b\n1,2\n3"])
def test_a_table_without_its_columns_or_with_a_cut_end_is_a_changed_source(text):
    with pytest.raises(SourceChanged):
        table(text, "a", "b")
