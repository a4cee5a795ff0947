"""The short form of `python -m tests.hostile.log_kills`: an hour that is being appended stands once, or not yet."""

import pytest

from tests.hostile.log_kills import STEPS, kill_everywhere


@pytest.mark.live
async def test_hours_that_were_being_appended_when_the_process_died_stand_once(tmp_path):
    seen: list[str] = []
    assert await kill_everywhere(tmp_path, seen.append) == []
    assert len(seen) == len(STEPS) >= 5
