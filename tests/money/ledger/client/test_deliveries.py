"""A charged answer is delivered when it was sent; the journal forgets its call with the next commit, and not before."""

import pytest

from tests.calls.parts import START
from toolserver.clock import ManualClock
from toolserver.money.ledger.client.journal_store import Journal
from toolserver.money.ledger.client.ledger import Deliveries
from toolserver.sql.errors import StorageFailed
from toolserver.sql.sqlite import durable


class FailingJournal(Journal):
    """A journal that forgets no call while the disk is `full`."""

    full = False

    async def delivered(self, call_ids):
        if self.full:
            raise StorageFailed("disk full")
        await super().delivered(call_ids)


@pytest.fixture
async def journal(tmp_path):
    async with durable(tmp_path / "ledger.sqlite3") as file:
        yield FailingJournal(file, ManualClock(START))


@pytest.fixture
def deliveries(journal):
    return Deliveries(journal)


async def test_calls_of_answers_that_were_sent_leave_the_journal_and_others_stay(deliveries, journal):
    for call_id in ("c1", "c2", "c3"):
        await journal.note(call_id, "committed")
        if call_id != "c3":
            deliveries.begin(call_id)
    for call_id in ("c1", "c3", "unknown"):
        deliveries.finish(call_id)
    assert deliveries.under_way == {"c2"}
    assert await journal.recover() == ["c2", "c3"]


async def test_an_answer_that_is_released_instead_is_not_struck_when_it_is_sent_all_the_same(deliveries, journal):
    await journal.note("c1", "committed")
    deliveries.begin("c1")
    deliveries.cancel("c1")
    deliveries.finish("c1")
    assert await journal.recover() == ["c1"]


async def test_at_an_orderly_end_all_are_delivered_but_those_to_be_released(deliveries, journal):
    for call_id in ("c1", "c2", "c3"):
        await journal.note(call_id, "committed")
        deliveries.begin(call_id)
    await journal.release("c2", "cancelled")
    deliveries.cancel("c2")
    deliveries.cancel("c3")
    await deliveries.finish_all()
    assert deliveries.under_way == set()
    assert await journal.recover() == ["c3"]
    assert {release.call_id for release in await journal.due()} == {"c2", "c3"}


async def test_what_the_journal_cannot_forget_is_tried_again(deliveries, journal, caplog):
    await journal.note("c1", "committed")
    deliveries.begin("c1")
    journal.full = True
    await deliveries.finish_all()
    assert deliveries.under_way == {"c1"}
    assert "could not be removed" in caplog.text
    journal.full = False
    await deliveries.finish_all()
    assert deliveries.under_way == set()
    assert await journal.recover() == []


async def test_where_nothing_is_under_way_a_journal_that_fails_is_not_asked(deliveries, journal, caplog):
    journal.full = True
    await deliveries.finish_all()
    assert caplog.text == ""
