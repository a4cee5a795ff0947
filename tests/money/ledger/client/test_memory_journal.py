"""The journal in memory is under the contract of `test_journal`; here is what is its own."""

import pytest

from tests.calls.parts import START
from tests.money.ledger.client.journal_contract import *  # noqa: F403
from toolserver.clock import ManualClock
from toolserver.money.ledger.client.memory_journal import MemoryJournal


async def test_each_journal_has_entries_of_its_own():
    clock = ManualClock(START)
    one, other = MemoryJournal(clock), MemoryJournal(clock)
    await one.release("c1", "5xx")
    assert (await one.waiting()).size == 1
    assert (await other.waiting()).size == 0


@pytest.fixture
def clock():
    return ManualClock(START)


@pytest.fixture
def journal(clock):
    return MemoryJournal(clock)


async def test_a_release_that_failed_is_due_again_after_a_wait_that_doubles(journal, clock):
    await journal.release("c1", "5xx")
    for tries, wait_s in ((1, 1.0), (2, 2.0), (3, 4.0)):
        await journal.later("c1")
        assert (await journal.waiting(), await journal.due()) == ((1, wait_s), [])
        clock.advance(wait_s)
        assert await journal.due() == [("c1", "5xx", tries)]


async def test_what_a_dead_process_left_is_released_and_what_was_sent_is_forgotten(journal):
    for call_id, step in (("c1", "reserving"), ("c2", "committing"), ("c3", "committed"), ("c4", "committed")):
        await journal.note(call_id, step)
    await journal.release("c5", "5xx")
    await journal.delivered(["c1", "c2", "c3", "c5", "unknown"])
    assert await journal.recover() == ["c1", "c4"]
    assert sorted(await journal.due()) == [("c1", "delivery_failed", 0), ("c4", "delivery_failed", 0), ("c5", "5xx", 0)]
    assert await journal.recover() == []


async def test_a_hundred_releases_are_due_at_once_unless_more_are_asked_for(journal):
    for number in range(101):
        await journal.release(f"c{number}", "5xx")
    assert [len(await journal.due()), len(await journal.due(101))] == [100, 101]
