"""The correlation of two dated series, against scipy."""

import datetime as dt
import math
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.tools.scipys import pearsonr
from tools.parsing.series import series
from tools.shared.correlation import (
    align,
    difference,
    direction,
    pearson,
    relationship,
    simple_return,
    since,
    steps,
)

FIRST = dt.date(2027, 1, 1)
values = st.floats(0.5, 200).map(lambda value: round(value, 2))


def dated(numbers, start=0, step=1):
    return series((FIRST + dt.timedelta(days=start + step * i), n) for i, n in enumerate(numbers))


@given(st.dictionaries(st.integers(0, 70), st.tuples(values, values), min_size=11, max_size=71))
def test_r_is_scipys_on_the_same_dates(days):
    one = series((FIRST + dt.timedelta(days=d), pair[0]) for d, pair in days.items())
    other = series((FIRST + dt.timedelta(days=d), pair[1]) for d, pair in days.items())
    newest = sorted(days)[-31:]
    x, y = ([days[b][i] / days[a][i] - 1 for a, b in pairwise(newest)] for i in (0, 1))
    assume(min(max(x) - min(x), max(y) - min(y)) > 1e-6)

    assert pearson(steps(align(one, other))) == pytest.approx(pearsonr(x, y).statistic, abs=1e-4)


def test_a_day_that_one_series_lacks_is_used_for_neither_and_the_return_spans_it():
    one = dated([1, 2, 4, 8])
    other = series((day, value) for day, value in dated([10, 99, 40, 20]) if day.day != 2)

    found = steps(align(one, other))

    assert found.dates == (dt.date(2027, 1, 3), dt.date(2027, 1, 4))
    assert found.first == (3.0, 1.0)
    assert found.second == (3.0, -0.5)


def test_calendars_that_do_not_match_are_not_laid_over_each_other_by_position():
    weekdays, odd = dated(range(1, 50)), dated(range(1, 50), start=1, step=2)

    assert set(align(weekdays, odd).dates) == {d for d, _ in weekdays} & {d for d, _ in odd}


def test_the_newest_31_common_days_make_30_returns():
    found = steps(align(dated(range(1, 60)), dated(range(2, 61))))

    assert len(found.dates) == 30
    assert found.dates[-1] == FIRST + dt.timedelta(days=58)


def test_a_step_from_zero_is_left_out_for_both():
    found = steps(align(dated([1, 0, 2, 4]), dated([1, 1, 1, 2])))

    assert found.first == (-1.0, 1.0)
    assert found.second == (0.0, 1.0)


@pytest.mark.parametrize("step", [simple_return, difference])
def test_a_step_from_zero_in_the_second_series_is_left_out_for_both(step):
    found = steps(align(dated([1, 1, 1, 2]), dated([1, 0, 2, 4])), second=step)

    assert found.first == (0.0, 1.0)
    assert found.second == ((-1.0, 1.0) if step is simple_return else (-1.0, 2.0))


def test_yields_may_be_taken_by_their_difference():
    pair = align(dated([4.0, 4.1, 4.05]), dated([100, 110, 121]))

    found = steps(pair, difference, simple_return)

    assert found.first == pytest.approx((0.1, -0.05))
    assert found.second == pytest.approx((0.1, 0.1))


@pytest.mark.parametrize("count", [0, 1, 10])
def test_fewer_than_ten_returns_are_too_few(count):
    wild = [1 + (i * 7 % 5) for i in range(count)]
    assert pearson(steps(align(dated(wild), dated(wild)))) is None


@pytest.mark.parametrize("still", [[3.0] * 20, [1.1**i for i in range(20)]])
def test_a_series_whose_returns_never_vary_has_no_correlation(still):
    assert pearson(steps(align(dated(still), dated(range(1, 21))))) is None


@given(st.lists(values, min_size=12, max_size=40))
def test_r_with_itself_is_1_and_swapping_changes_nothing(numbers):
    one, other = dated(numbers), dated([n + 1 for n in reversed(numbers)])
    r = pearson(steps(align(one, one)))
    assert r in (None, 1.0)
    assert pearson(steps(align(one, other))) == pearson(steps(align(other, one)))


@given(st.lists(st.tuples(values, values), min_size=0, max_size=60))
def test_r_is_a_finite_number_between_minus_1_and_1_or_none(pairs):
    r = pearson(steps(align(dated([a for a, _ in pairs]), dated([b for _, b in pairs]))))
    assert r is None or (math.isfinite(r) and -1 <= r <= 1)


def test_only_observations_since_a_day_count():
    found = since(dated([1, 2, 3]), dt.date(2027, 1, 2))
    assert [value for _, value in found] == [2, 3]


@pytest.mark.parametrize(
    ("r", "strength", "sign"),
    [
        (0.0, "negligible", "none"),
        (0.0499, "negligible", "none"),
        (-0.0499, "negligible", "none"),
        (0.05, "negligible", "positive"),
        (-0.05, "negligible", "negative"),
        (0.1999, "negligible", "positive"),
        (0.2, "weak", "positive"),
        (-0.3999, "weak", "negative"),
        (0.4, "moderate", "positive"),
        (-0.6999, "moderate", "negative"),
        (0.7, "strong", "positive"),
        (-1.0, "strong", "negative"),
    ],
)
def test_words_for_r(r, strength, sign):
    assert (relationship(r), direction(r)) == (strength, sign)
