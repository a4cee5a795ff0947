"""The journal in memory is under the contract of `test_journal`; here is what is its own."""

from tests.calls.parts import START
from toolserver.clock import ManualClock
from toolserver.ledger.client.memory_journal import MemoryJournal


async def test_each_journal_has_entries_of_its_own():
    clock = ManualClock(START)
    one, other = MemoryJournal(clock), MemoryJournal(clock)
    await one.release("c1", "5xx")
    assert (await one.waiting()).size == 1
    assert (await other.waiting()).size == 0
