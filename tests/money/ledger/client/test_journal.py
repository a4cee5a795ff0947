"""The follower's journal: a crash forgets no release, and a release is sent until it is acknowledged."""

import pytest

from tests.calls.parts import START
from toolserver.clock import ManualClock
from toolserver.money.ledger.client.journal import wait_ms
from toolserver.money.ledger.client.memory_journal import MemoryJournal
from toolserver.money.ledger.client.sqlite_journal import SqliteJournal
from toolserver.sql.sqlite import durable


@pytest.fixture
def clock():
    return ManualClock(START)


@pytest.fixture(params=["memory", "sqlite"])
async def journal(request, tmp_path, clock):
    if request.param == "memory":
        yield MemoryJournal(clock)
        return
    async with durable(tmp_path / "ledger.sqlite3") as file:
        yield SqliteJournal(file, clock)


async def test_a_call_that_was_sent_is_forgotten(journal):
    for step in ("reserving", "committing", "committed"):
        await journal.note("c1", step)
    await journal.done("c1")
    assert await journal.recover() == []
    assert await journal.due() == []


async def test_what_was_on_the_way_when_the_process_died_is_released(journal):
    await journal.note("c1", "reserving")
    await journal.note("c2", "reserving")
    await journal.note("c2", "committed")
    await journal.release("c3", "5xx")
    assert sorted(await journal.recover()) == ["c1", "c2"]
    assert {(r.call_id, r.reason) for r in await journal.due()} == {
        ("c1", "delivery_failed"),
        ("c2", "delivery_failed"),
        ("c3", "5xx"),
    }
    assert await journal.recover() == []


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


async def test_a_step_is_noted_over_the_one_before_and_the_one_before_is_returned(journal):
    assert await journal.note("c1", "reserving") is None
    assert await journal.note("c1", "committing") == "reserving"
    await journal.release("c1", "5xx")
    assert await journal.note("c1", "committed") == "releasing"
    assert await journal.note("c1", "committed") == "releasing"


async def test_delivered_calls_are_forgotten_unless_they_are_to_be_released_or_were_never_charged(journal):
    for number, step in enumerate(("reserving", "committing", "committed")):
        await journal.note(f"c{number}", step)
    await journal.release("c3", "5xx")
    await journal.delivered(["c0", "c1", "c2", "c3", "unknown"])
    assert len(await journal.recover()) == 1
    assert {release.call_id for release in await journal.due()} == {"c0", "c3"}


async def test_a_call_is_struck_with_the_next_commit_unless_it_is_to_be_released(journal):
    for call_id in ("c1", "c2"):
        await journal.note(call_id, "committed")
    await journal.release("c2", "5xx")
    for call_id in ("c1", "c2", "unknown"):
        journal.strike(call_id)
    await journal.note("c3", "reserving")
    assert await journal.recover() == ["c3"]
    assert {release.call_id for release in await journal.due()} == {"c2", "c3"}


async def test_the_journal_says_how_many_releases_wait_and_until_when(journal, clock):
    assert await journal.waiting() == (0, None)
    await journal.note("c0", "reserving")
    await journal.release("c1", "5xx", wait_s=5)
    await journal.release("c2", "5xx", wait_s=8)
    assert await journal.waiting() == (2, 5.0)
    assert await journal.due() == []
    clock.advance(7)
    assert await journal.waiting() == (2, 0.0)
    assert [release.call_id for release in await journal.due()] == ["c1"]


async def test_what_was_never_noted_is_neither_postponed_nor_done(journal):
    await journal.later("c1")
    await journal.done("c1")
    assert await journal.waiting() == (0, None)


def test_the_wait_doubles_up_to_five_minutes():
    assert [wait_ms(tries) for tries in (0, 1, 8, 9, 1000)] == [1000, 2000, 256_000, 300_000, 300_000]
