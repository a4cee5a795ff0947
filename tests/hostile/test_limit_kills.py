"""The short form of `python -m tests.hostile.limit_kills`: no death of a process crosses the limits of an owner."""

import pytest

from tests.hostile.limit_kills import KINDS, kill_at_writes, plan_lives
from tests.postgres import POSTGRES
from tests.requirements import proves
from tests.size import sized

LIVES = plan_lives(sized(4, fast=1, long=52))


@proves("tokens.cap")
@proves("tokens.freeze")
@pytest.mark.live
@pytest.mark.timeout(120 + 20 * len(LIVES))
@pytest.mark.parametrize("kind", [POSTGRES if kind == "postgres" else kind for kind in KINDS])
async def test_a_process_that_dies_within_a_sale_leaves_the_count_of_the_day_and_the_freeze_as_they_were_answered(
    kind, tmp_path
):
    report = await kill_at_writes(kind, tmp_path, LIVES)
    print(report.kills, len(report.answered), report.freezes, report.spent)
    assert report.wrong == []
    assert report.kills >= len(LIVES), "each of them died at least once"
    assert report.spent > 0
