"""Correlations of calendars that do not match, with random gaps: SciPy's, whatever is missing where."""

import datetime as dt
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.requirements import proves
from tests.size import sized
from tests.tools.scipys import pearsonr
from tools.parsing.series import Observation
from tools.premium.correlation_matrix import ASSETS, compared, matrix
from toolserver.context.context import ToolContext

DAY = dt.timedelta(days=1)
FIRST = dt.date(2026, 11, 2)
VALUES = st.floats(1, 200).map(lambda value: round(value, 2))


@st.composite
def calendars(draw):
    """Four series of 75 days, each with weekends or without, with its own holidays and its own end."""
    found = {}
    for name in ASSETS:
        weekends, end = draw(st.booleans()), draw(st.integers(20, 75))
        days = [FIRST + n * DAY for n in range(end) if weekends or (FIRST + n * DAY).weekday() < 5]
        gaps = draw(st.sets(st.sampled_from(days), max_size=len(days) // 2))
        kept = [day for day in days if day not in gaps]
        values = draw(st.lists(VALUES, min_size=len(kept), max_size=len(kept)))
        found[name] = tuple(Observation(day, value) for day, value in zip(kept, values, strict=True))
    return found


@proves("correlation.scipy", "correlation.matrix")
@settings(max_examples=sized(30, fast=20, long=1000))
@given(calendars())
def test_r_is_scipys_on_the_days_both_have_and_the_matrix_says_the_same(series):
    ctx = ToolContext(None, now=lambda: dt.datetime(2027, 1, 15, tzinfo=dt.UTC), sla_s=3600)
    pairs = compared(ctx, series)
    table = matrix(pairs)

    for pair in pairs:
        one, other = dict(series[pair.a]), dict(series[pair.b])
        days = sorted(one.keys() & other.keys())[-31:]
        returns = [[known[b] / known[a] - 1 for a, b in pairwise(days)] for known in (one, other)]
        assert pair.pearson_r == pytest.approx(pearsonr(*returns).statistic, abs=1e-4)
        assert pair.n_observations == len(days) - 1 >= 10
        assert (pair.first_date, pair.last_date) == (days[1], days[-1])
    sizes = [abs(pair.pearson_r) for pair in pairs]
    assert sizes == sorted(sizes, reverse=True)
    assert all(table[a][b] == table[b][a] for a in ASSETS for b in ASSETS)
    assert {table[a][a] for a in ASSETS} == {1.0}
    known = {frozenset((pair.a, pair.b)) for pair in pairs}
    assert all((table[a][b] is None) == (frozenset((a, b)) not in known) for a in ASSETS for b in ASSETS if a != b)
    assert len(ctx.notes.warnings) == 6 - len(pairs)
