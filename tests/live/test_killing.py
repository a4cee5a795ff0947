"""Killed under load, a service keeps no credit for an answer that did not arrive: `python -m tests.live.killing`.

Of several that share a database, one is killed by `python -m tests.live.killing_shared`.
"""

import pytest

from tests.live.killing import CALLERS, kill_again_and_again
from tests.live.killing_shared import MODES, kill_shared
from tests.requirements import proves
from tests.size import sized

KILLS = sized(6, fast=2, long=50)


@proves("charge.killed", "charge.killed-holds")
@pytest.mark.live
@pytest.mark.timeout(120 + 20 * KILLS)
@pytest.mark.parametrize("mode", ["embedded", "client"])
def test_no_call_without_its_whole_answer_stays_charged(tmp_path, mode):
    tally, wrong = kill_again_and_again(mode, KILLS, tmp_path)

    assert wrong == []
    assert len(tally.whole) > tally.kills
    assert tally.most_released_whole <= 2 * CALLERS  # at most what was sent since the last group commit


@proves("charge.killed", "charge.lease")
@pytest.mark.live
@pytest.mark.timeout(180 + 20 * KILLS)
@pytest.mark.parametrize("mode", MODES)
def test_what_a_dead_worker_or_instance_held_is_given_back_after_its_lease(tmp_path, mode):
    tally, wrong = kill_shared(mode, KILLS, tmp_path)

    assert wrong == []
    assert len(tally.whole) > tally.kills
    assert tally.released_whole <= 2 * CALLERS * tally.kills
