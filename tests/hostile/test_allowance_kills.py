"""The short form of `python -m tests.hostile.allowance_kills`: kills under load cross no cap and lose no credit."""

import pytest

from tests.hostile.allowance_kills import REVOKED, run_rounds
from tests.requirements import proves
from tests.size import sized

ROUNDS = sized(4, fast=3, long=50)


@proves("allowance.caps")
@pytest.mark.live
@pytest.mark.timeout(180 + 20 * ROUNDS)
def test_no_kill_lets_an_allowance_cross_its_cap_or_takes_a_credit_from_its_token(tmp_path):
    report = run_rounds(ROUNDS, tmp_path)
    print(report.answers, report.revoked_s)
    assert (report.rounds, report.wrong) == (ROUNDS, [])
    assert report.kills == ROUNDS - ROUNDS // 3
    assert report.answers["200"] > ROUNDS
    assert len(report.revoked_s) == len(REVOKED)
    assert report.late == 0, "nothing is bought by a call that is begun when a revocation has been answered"
