"""The short form of `python -m tests.hostile.operator_kills`: commands that are killed pay nothing twice."""

import pytest

from tests.hostile.operator_kills import kill_operators
from tests.size import sized

ROUNDS = sized(1, fast=1, long=10)


@pytest.mark.live
@pytest.mark.timeout(180 + 180 * ROUNDS)
async def test_refunds_reissues_and_sweeps_that_are_killed_end_once(tmp_path):
    report = await kill_operators(ROUNDS, tmp_path)
    print(report.kills)
    assert report.kills.total() >= 2 * ROUNDS
    assert report.wrong == []
