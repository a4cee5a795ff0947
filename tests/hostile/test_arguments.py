"""The short form of `python -m tests.hostile.arguments`."""

import asyncio

import pytest

from tests.hostile.arguments import CHOSEN, SETTINGS, read_budgets, run
from tests.live.processes import started
from tests.requirements import proves

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]


@proves("limits.chosen-share")
def test_strangers_with_many_arguments_leave_all_default_answers_fresh_and_half_of_each_budget(tmp_path):
    with started("demo", folder=tmp_path, **SETTINGS) as program:
        before, during = asyncio.run(run(program, 60, 60))
        budgets = read_budgets(program)
    assert not before.not_fresh
    assert during.asked > 30
    assert not during.not_fresh
    assert during.statuses[200] > 10 * len(CHOSEN)
    assert max(during.statuses) < 500
    assert budgets["noaa", "api.weather.gov"][0] >= 30
    assert budgets["internetdb", ""][0] >= 300
    assert budgets["openmeteo", ""][0] >= 1000
