"""The short form of `python -m tests.hostile.upgrade_kills`: a killed upgrade is finished by the next start."""

import pytest

from tests.hostile.upgrade_kills import ORIGINS, kill_upgrades
from tests.size import sized

KILLS = sized(25, fast=6, long=200)


@pytest.mark.live
@pytest.mark.timeout(60 + 5 * KILLS)
async def test_upgrades_that_are_killed_before_the_seal_are_finished_by_the_next_start(tmp_path):
    report = await kill_upgrades(tmp_path, KILLS)
    assert report.kills == KILLS * len(ORIGINS)
    assert report.refused == []
    assert report.wrong == []
