"""The follower's journal: a crash forgets no release, and a release is sent until it is acknowledged."""

import pytest

from tests.engine.parts import START
from toolserver.billing.journal import Journal
from toolserver.clock import ManualClock
from toolserver.storage.durable import durable


@pytest.fixture
def clock():
    return ManualClock(START)


@pytest.fixture
async def journal(tmp_path, clock):
    async with durable(tmp_path / "ledger.sqlite3") as file:
        yield Journal(file, clock)


async def test_a_call_that_was_sent_is_forgotten(journal):
    for step in ("reserving", "committing", "committed"):
        await journal.note("c1", step)
    await journal.done("c1")
    assert await journal.recover() == 0
    assert await journal.due() == []


async def test_what_was_on_the_way_when_the_process_died_is_released(journal):
    await journal.note("c1", "reserving")
    await journal.note("c2", "reserving")
    await journal.note("c2", "committed")
    await journal.release("c3", "5xx")
    assert await journal.recover() == 2
    assert {(r.call_id, r.reason) for r in await journal.due()} == {
        ("c1", "delivery_failed"),
        ("c2", "delivery_failed"),
        ("c3", "5xx"),
    }
    assert await journal.recover() == 0


async def test_a_release_stays_a_release_with_its_first_reason(journal):
    await journal.release("c1", "cancelled")
    await journal.note("c1", "committing")
    await journal.release("c1", "5xx")
    assert [(r.call_id, r.reason) for r in await journal.due()] == [("c1", "cancelled")]
    await journal.done("c1")
    assert await journal.due() == []


async def test_a_release_that_is_not_acknowledged_is_tried_less_and_less_often(journal, clock):
    await journal.release("c1", "cancelled")
    waits = []
    for _ in range(12):
        (release,) = await journal.due()
        await journal.later("c1")
        waited = 0
        while not await journal.due():
            clock.advance(1)
            waited += 1
        waits.append(waited)
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]
    assert release.tries == 11


async def test_the_longest_waiting_release_comes_first_and_only_so_many(journal, clock):
    for number in range(5):
        await journal.release(f"c{number}", "5xx")
        clock.advance(1)
    assert [r.call_id for r in await journal.due(limit=3)] == ["c0", "c1", "c2"]
