"""The journal in SQLite is under the contract of `test_journal`; and its notes outlive the process."""

import pytest

from tests.calls.parts import START
from toolserver.clock import ManualClock
from toolserver.ledger.client.sqlite_journal import SqliteJournal
from toolserver.storage.errors import StorageFailed
from toolserver.storage.group_commit import durable


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
