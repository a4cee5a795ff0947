"""The journal in SQLite is under the contract of `test_journal`; and its notes outlive the process."""

import pytest

from tests.calls.parts import START
from tests.money.ledger.client.journal_contract import *  # noqa: F403
from toolserver.clock import ManualClock
from toolserver.money.ledger.client.sqlite_journal import SqliteJournal
from toolserver.sql.errors import StorageFailed
from toolserver.sql.sqlite import durable


async def test_notes_outlive_the_process(tmp_path):
    clock = ManualClock(START)
    async with durable(tmp_path / "b.sqlite3") as file:
        journal = SqliteJournal(file, clock)
        await journal.note("c1", "committing")
        await journal.release("c2", "5xx", wait_s=3)
    async with durable(tmp_path / "b.sqlite3") as file:
        journal = SqliteJournal(file, clock)
        assert await journal.waiting() == (1, 3.0)
        assert await journal.note("c1", "committed") == "committing"
        assert len(await journal.recover()) == 1
        assert [(release.call_id, release.reason) for release in await journal.due()] == [("c1", "delivery_failed")]


async def test_a_journal_that_is_closed_says_so(tmp_path):
    async with durable(tmp_path / "b.sqlite3") as file:
        journal = SqliteJournal(file, ManualClock(START))
    with pytest.raises(StorageFailed):
        await journal.note("c1", "reserving")
    with pytest.raises(StorageFailed):
        await journal.waiting()


async def test_a_delivered_call_that_is_to_be_released_stays(tmp_path):
    async with durable(tmp_path / "b.sqlite3") as file:
        journal = SqliteJournal(file, ManualClock(START))
        await journal.note("c1", "committed")
        await journal.release("c2", "5xx")
        await journal.delivered(["c1", "c2"])
        assert [release.call_id for release in await journal.due()] == ["c2"]
        assert await journal.recover() == []


@pytest.fixture
def clock():
    return ManualClock(START)


@pytest.fixture
async def journal(tmp_path, clock):
    async with durable(tmp_path / "b.sqlite3") as file:
        yield SqliteJournal(file, clock)


async def test_a_release_that_failed_is_due_again_after_a_wait_that_doubles_up_to_five_minutes(journal, clock):
    await journal.release("c1", "5xx")
    for tries, wait_s in enumerate((1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300), 1):
        await journal.later("c1")
        assert (await journal.waiting(), await journal.due()) == ((1, wait_s), [])
        clock.advance(wait_s)
        assert await journal.due() == [("c1", "5xx", tries)]


async def test_what_a_dead_process_left_is_released_at_once_with_the_answers_that_were_kept_of_it(journal, clock):
    await journal.note("c1", "reserving")
    await journal.release("c2", "5xx", wait_s=60)
    row = "INSERT INTO idempotency(scope, key, request, call_id, expires_at) VALUES('s', ?, 'r', ?, 0)"
    await journal._file.alone(lambda db: db.executemany(row, [("k1", "c1"), ("k2", "c2")]) and None)
    assert await journal.recover() == ["c1"]
    assert (await journal.waiting(), await journal.due()) == ((2, 0.0), [("c1", "delivery_failed", 0)])
    left = await journal._file.read(lambda db: db.execute("SELECT call_id FROM idempotency").fetchall())
    assert left == [("c2",)]


async def test_a_call_is_struck_with_the_next_commit_if_it_was_charged(journal):
    for call_id, step in (("c1", "reserving"), ("c2", "committing"), ("c3", "committed")):
        await journal.note(call_id, step)
        journal.strike(call_id)
    await journal.note("c4", "reserving")
    assert await journal.recover() == ["c1", "c4"]
