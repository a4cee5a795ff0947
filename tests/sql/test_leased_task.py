"""A task is done by one instance; by another one when that one is gone, and then no longer by the first."""

import pytest

from tests.calls.parts import START
from tests.money.ledger.ledgers import opened_file
from toolserver.clock import ManualClock
from toolserver.sql.leases import LeasedTask, LeaseLost, is_our_turn


def written(db):
    return db.execute("INSERT INTO oauth_client VALUES(?, 'n', '[]', 1, 'none', NULL, NULL, '')", ("c",)).rowcount


async def test_with_a_file_it_is_always_its_turn_and_nothing_is_written(tmp_path):
    async with opened_file("sqlite", tmp_path) as file:
        for _ in range(2):
            task = LeasedTask(file, "watch", ManualClock(START))
            assert await task.take()
            assert await is_our_turn(task)
        assert await file.alone(task.guard(written)) == 1
        assert await file.read(lambda db: db.execute("SELECT count(*) FROM lease").fetchone()) == (0,)


async def test_a_task_without_turns_is_always_ours():
    assert await is_our_turn(None)


@pytest.mark.live
async def test_of_two_instances_one_has_its_turn_and_only_that_one_may_write(tmp_path):
    async with opened_file("postgres", tmp_path) as file, opened_file("postgres", tmp_path) as other:
        ours = LeasedTask(file, "watch", ManualClock(START), lease_s=0)
        theirs = LeasedTask(other, "watch", ManualClock(START))
        with pytest.raises(LeaseLost):
            await file.alone(ours.guard(written))
        assert await ours.take()
        assert await theirs.take(), "the first lease lasted no time"
        assert not await ours.take()
        with pytest.raises(LeaseLost):
            await file.alone(ours.guard(written))
        assert await other.alone(theirs.guard(written)) == 1


@pytest.mark.live
async def test_one_that_was_held_up_is_refused_when_it_goes_on(tmp_path):
    async with opened_file("postgres", tmp_path) as file, opened_file("postgres", tmp_path) as other:
        ours = LeasedTask(file, "watch", ManualClock(START), lease_s=0)
        theirs = LeasedTask(other, "watch", ManualClock(START))
        assert await ours.take()
        seen = ours.guard(written)  # and then it sleeps
        assert await theirs.take()
        with pytest.raises(LeaseLost, match="watch"):
            await file.alone(seen)
        assert await file.read(lambda db: db.execute("SELECT count(*) FROM oauth_client").fetchone()) == (0,)
