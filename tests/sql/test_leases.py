"""A lease has one holder at a time, who may go on holding it; another one may take it when it has run out."""

import threading
import time

import anyio
import pytest

from tests.money.ledger.ledgers import opened_file
from tests.postgres import POSTGRES
from toolserver.sql.leases import LeaseLost, require_fence, take_lease


@pytest.fixture
async def file(tmp_path):
    async with opened_file("sqlite", tmp_path) as file:
        yield file


async def take(file, holder, now, name="log", lasts=60):
    return await file.alone(lambda db: take_lease(db, name, holder, now=now, until=now + lasts))


async def test_a_lease_has_one_holder_until_it_runs_out(file):
    assert await take(file, "a", 0) == 1
    assert await take(file, "b", 59) is None
    assert await take(file, "b", 60) == 2
    assert await take(file, "a", 61) is None


async def test_its_holder_goes_on_holding_it_under_the_same_number(file):
    assert await take(file, "a", 0) == 1
    assert await take(file, "a", 50) == 1
    assert await take(file, "b", 60) is None


async def test_each_name_is_a_lease_of_its_own(file):
    assert await take(file, "a", 0)
    assert await take(file, "b", 0, name="other")


@pytest.mark.parametrize("kind", ["sqlite", POSTGRES])
async def test_who_writes_under_an_older_number_is_refused(kind, tmp_path):
    async with opened_file(kind, tmp_path) as file:
        first = await take(file, "a", 0, lasts=0)
        await file.alone(lambda db: require_fence(db, "log", first))  # ran out, and nobody has taken it
        second = await take(file, "b", 0)
        assert second == first + 1
        await file.alone(lambda db: require_fence(db, "log", second))
        for name, fence in (("log", first), ("nobody's", 1)):
            with pytest.raises(LeaseLost):
                await file.alone(lambda db, name=name, fence=fence: require_fence(db, name, fence))


@pytest.mark.live
async def test_where_instances_share_a_database_its_clock_counts_and_not_theirs(tmp_path):
    async with opened_file("postgres", tmp_path) as file:
        assert await take(file, "a", 0, lasts=60_000)
        ahead = int(time.time() * 1000) + 3_600_000
        assert await take(file, "b", ahead, lasts=60_000) is None, "whose clock is an hour ahead"
        assert await take(file, "a", 0, lasts=0)
        assert await take(file, "b", 0, lasts=60_000)


@pytest.mark.live
async def test_nobody_takes_a_lease_before_what_is_written_under_it_is_committed(tmp_path):
    seen, arrived, go_on = [], threading.Event(), threading.Event()

    def write_slowly(db):
        require_fence(db, "log", 1)
        arrived.set()
        assert go_on.wait(20)
        seen.append("written")

    async with opened_file("postgres", tmp_path) as one, opened_file("postgres", tmp_path) as other:
        assert await take(one, "a", 0, lasts=0) == 1

        async def take_over():
            assert await take(other, "b", 0) == 2
            seen.append("taken over")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.alone, write_slowly)
            await anyio.to_thread.run_sync(arrived.wait)
            tasks.start_soon(take_over)
            await anyio.sleep(0.3)
            go_on.set()
    assert seen == ["written", "taken over"]
