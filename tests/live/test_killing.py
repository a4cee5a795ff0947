"""Killed under load, a service keeps no credit for an answer that did not arrive: `python -m tests.live.killing`."""

import pytest

from tests.live.killing import CALLERS, kill_again_and_again
from tests.requirements import proves
from tests.size import sized

KILLS = sized(6, fast=2, long=50)


@proves("charge.killed")
@pytest.mark.live
@pytest.mark.timeout(120 + 20 * KILLS)
@pytest.mark.parametrize("mode", ["embedded", "client"])
def test_no_call_without_its_whole_answer_stays_charged(tmp_path, mode):
    tally, wrong = kill_again_and_again(mode, KILLS, tmp_path)

    assert wrong == []
    assert len(tally.whole) > tally.kills
    assert tally.most_released_whole <= 2 * CALLERS  # at most what was sent since the last group commit
