"""Killed under load, a service keeps no credit for an answer that did not arrive: `python -m tests.live.killing`.

Of several that share a database, one is killed by `python -m tests.live.killing_shared`.
"""

import pytest

from tests.live.killing import CALLERS, kill_again_and_again
from tests.live.killing_shared import MODES, kill_shared
from tests.live.marking import Commit, Mark, Marks
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
    assert tally.released_missed == 0
    assert tally.most_released_whole <= 2 * CALLERS  # at most what was sent since the last group commit


@proves("charge.killed", "charge.lease")
@pytest.mark.live
@pytest.mark.timeout(180 + 20 * KILLS)
@pytest.mark.parametrize("mode", MODES)
def test_what_a_dead_worker_or_instance_held_is_given_back_after_its_lease(tmp_path, mode):
    tally, wrong = kill_shared(mode, KILLS, tmp_path)

    assert wrong == []
    assert len(tally.whole) > tally.kills
    assert tally.released_missed == 0
    assert tally.released_whole <= 2 * CALLERS * tally.kills


@pytest.mark.parametrize(
    ("carry", "has_missed"),
    [((), False), ((1,), False), ((0,), False), ((0, 1), False), ((0, 0), True), ((0, 0, 1), True), ((1, 0, 0), False)],
)
def test_a_mark_may_miss_the_commit_at_hand_and_no_other(carry, has_missed):
    calls = [frozenset({"a"}) if one else frozenset[str]() for one in carry]
    commits = [Commit("books", 1.0 + number, 1.5 + number, each) for number, each in enumerate(calls)]
    earlier, elsewhere = Commit("books", 0.1, 0.2, frozenset()), Commit("answers", 0.9, 1.0, frozenset())
    marks = Marks({"a": Mark("books", 0.5)}, [earlier, elsewhere, elsewhere, *commits])
    assert marks.has_missed("a") is has_missed
    assert not marks.has_missed("b")
