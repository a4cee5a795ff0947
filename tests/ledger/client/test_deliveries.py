"""A charged answer counts as delivered a second after it was sent; only then does the journal forget the call."""

import math

import anyio
import pytest

from tests.calls.parts import START
from toolserver.clock import ManualClock
from toolserver.ledger.client import deliveries as module
from toolserver.ledger.client.deliveries import LINGER_S, Deliveries
from toolserver.ledger.client.memory_journal import MemoryJournal
from toolserver.storage.errors import StorageFailed


@pytest.fixture
def clock():
    return ManualClock(START)


@pytest.fixture
def journal(clock):
    return MemoryJournal(clock)


@pytest.fixture
def deliveries(journal, clock):
    return Deliveries(journal, clock)


async def left(journal):
    """The calls that would be released after a crash now."""
    return len(await journal.recover())


async def test_an_answer_that_was_sent_has_a_second_and_any_other_is_not_delivered(deliveries, clock):
    for call_id in ("c1", "c2"):
        deliveries.begin(call_id)
    deliveries.finish("c1")
    deliveries.finish("unknown")
    now = clock.monotonic()
    assert deliveries.until == {"c1": now + LINGER_S, "c2": math.inf}


async def test_delivered_calls_leave_the_journal_and_others_stay(deliveries, journal, clock, monkeypatch):
    monkeypatch.setattr(module, "LINGER_S", 0.0)
    for call_id in ("c1", "c2"):
        await journal.note(call_id, "committed")
        deliveries.begin(call_id)
    deliveries.finish("c1")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(deliveries.run)
        with anyio.fail_after(5):
            while "c1" in deliveries.until:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert list(deliveries.until) == ["c2"]
    assert await left(journal) == 1


async def test_at_an_orderly_end_all_are_delivered_but_those_to_be_released(deliveries, journal):
    for call_id in ("c1", "c2", "c3"):
        await journal.note(call_id, "committed")
        deliveries.begin(call_id)
    await journal.release("c2", "cancelled")
    deliveries.cancel("c2")
    deliveries.cancel("c3")
    await deliveries.finish_all()
    assert deliveries.until == {}
    assert await left(journal) == 1
    assert {release.call_id for release in await journal.due()} == {"c2", "c3"}


async def test_what_the_journal_cannot_forget_is_tried_again(deliveries, journal, monkeypatch, caplog):
    async def fail(call_ids):
        raise StorageFailed("disk full")

    await journal.note("c1", "committed")
    deliveries.begin("c1")
    with monkeypatch.context() as broken:
        broken.setattr(journal, "delivered", fail)
        await deliveries.finish_all()
    assert list(deliveries.until) == ["c1"]
    assert "could not be removed" in caplog.text
    await deliveries.finish_all()
    assert deliveries.until == {}
    assert await left(journal) == 0
