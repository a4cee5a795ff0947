"""The outbox sends each release until the owner acknowledges it, also an owner that knows of nothing."""

import anyio
import pytest

from tests.calls.parts import START
from toolserver.clock import ManualClock
from toolserver.core.circuit_breaker import CircuitBreaker
from toolserver.money.ledger.client.http import OwnerRefusal, Unanswered
from toolserver.money.ledger.client.journal_store import Journal
from toolserver.money.ledger.client.ledger import AGAIN_S, LONGEST_S, Deliveries, Outbox
from toolserver.money.ledger.client.messages import Committed
from toolserver.money.ledger.protocol import CallReused
from toolserver.sql.errors import StorageFailed
from toolserver.sql.sqlite import durable

DONE = Committed(ok=True, state="voided", credits_charged=0, balance_after=10)


class Owner:
    """Gives `answers` in turn, then acknowledges all; keeps what it is asked."""

    def __init__(self, clock):
        self.breaker, self.answers, self.asked = CircuitBreaker(clock), [], []

    async def ask(self, path, asked, kind):
        self.asked.append((asked.call_id, asked.outcome, asked.no_charge_reason))
        found = self.answers.pop(0) if self.answers else DONE
        if isinstance(found, Exception):
            raise found
        return found


@pytest.fixture
def clock():
    return ManualClock(START)


@pytest.fixture
def owner(clock):
    return Owner(clock)


@pytest.fixture
async def journal(clock, tmp_path):
    async with durable(tmp_path / "ledger.sqlite3") as file:
        yield Journal(file, clock)


async def test_an_acknowledged_release_is_forgotten(owner, journal):
    await journal.release("c1", "5xx")
    assert await Outbox(journal, owner, Deliveries(journal)).send("c1", "5xx") == DONE
    assert owner.asked == [("c1", "release", "5xx")]
    assert await journal.due() == []


@pytest.mark.parametrize(("reason", "logged"), [("reservation_not_found", False), ("reservation_mismatch", True)])
async def test_a_release_that_the_owner_knows_nothing_of_is_forgotten_too(owner, journal, caplog, reason, logged):
    await journal.release("c1", "5xx")
    owner.answers = [OwnerRefusal(reason)]
    assert await Outbox(journal, owner, Deliveries(journal)).send("c1", "5xx") is None
    assert await journal.due() == []
    assert ("a release was refused" in caplog.text) is logged


async def test_a_release_without_an_answer_stays_in_the_journal(owner, journal):
    await journal.release("c1", "5xx")
    owner.answers = [Unanswered("away", perhaps=True)]
    with pytest.raises(Unanswered):
        await Outbox(journal, owner, Deliveries(journal)).send("c1", "5xx")
    assert [release.call_id for release in await journal.due()] == ["c1"]


@pytest.mark.parametrize("failure", [Unanswered("away", perhaps=True), CallReused("another")])
async def test_a_round_sends_everything_due_and_postpones_what_fails(owner, journal, clock, failure):
    for number in range(3):
        await journal.release(f"c{number}", "5xx")
        clock.advance(0.1)
    owner.answers = [failure]
    outbox = Outbox(journal, owner, Deliveries(journal))
    wait_s = await outbox.send_due()
    assert [call_id for call_id, *_ in owner.asked] == ["c0", "c1", "c2"]
    assert (outbox.size, wait_s) == (1, 1.0)


async def test_an_answer_that_could_not_be_sent_is_released_in_the_next_round(owner, journal):
    deliveries = Deliveries(journal)
    for call_id in ("c1", "c2"):
        await journal.note(call_id, "committed")
        deliveries.begin(call_id)
    for call_id in ("c1", "unknown"):
        deliveries.lose(call_id)
    outbox = Outbox(journal, owner, deliveries)
    assert await outbox.send_due() == 60.0
    assert owner.asked == [("c1", "release", "delivery_failed")]
    assert (deliveries.under_way, deliveries.died) == ({"c2"}, ["c1"])
    deliveries.finish("c1")  # too late
    assert await journal.recover() == ["c2"]


async def test_while_the_circuit_is_open_nothing_is_sent(owner, journal):
    await journal.release("c1", "5xx")
    while owner.breaker.closed:
        owner.breaker.record(good=False)
    outbox = Outbox(journal, owner, Deliveries(journal))
    assert await outbox.send_due() == 60.0
    assert owner.asked == []
    assert outbox.size == 1


@pytest.mark.parametrize(("wait_s", "next_s"), [(None, 60.0), (5, 5.0), (60, 60.0), (90, 60.0)])
async def test_the_next_round_is_when_a_release_is_due_and_within_a_minute(owner, journal, wait_s, next_s):
    if wait_s is not None:
        await journal.release("c1", "5xx", wait_s=wait_s)
    outbox = Outbox(journal, owner, Deliveries(journal))
    assert await outbox.send_due() == next_s
    assert (outbox.size, owner.asked) == (0 if wait_s is None else 1, [])
    assert (LONGEST_S, AGAIN_S) == (60.0, 5.0)


async def test_a_circuit_that_opens_during_a_round_ends_it(owner, journal):
    for number in range(3):
        await journal.release(f"c{number}", "5xx")
    ask = owner.ask

    async def ask_once(*given):
        while owner.breaker.closed:
            owner.breaker.record(good=False)
        return await ask(*given)

    owner.ask = ask_once
    outbox = Outbox(journal, owner, Deliveries(journal))
    assert (await outbox.send_due(), outbox.size, len(owner.asked)) == (60.0, 2, 1)


async def test_a_new_release_wakes_the_outbox(owner, journal):
    outbox, sent = Outbox(journal, owner, Deliveries(journal)), anyio.Event()
    ask = owner.ask

    async def asked(*given):
        sent.set()
        return await ask(*given)

    owner.ask = asked
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(outbox.run)
        await anyio.wait_all_tasks_blocked()
        await journal.release("c1", "5xx")
        outbox.wake()
        with anyio.fail_after(5):
            await sent.wait()
        tasks.cancel_scope.cancel()


class UnreadableJournal(Journal):
    """A journal that cannot be read once. `emptied` is set when a release is done."""

    def __init__(self, file, clock):
        super().__init__(file, clock)
        self.unreadable, self.emptied = True, anyio.Event()

    async def done(self, call_id):
        await super().done(call_id)
        self.emptied.set()

    async def due(self, limit=100):
        if self.unreadable:
            self.unreadable = False
            raise StorageFailed("disk I/O error")
        return await super().due(limit)


async def test_an_outbox_that_cannot_be_read_is_tried_again(owner, clock, tmp_path, caplog):
    async with durable(tmp_path / "broken.sqlite3") as file, anyio.create_task_group() as tasks:
        journal = UnreadableJournal(file, clock)
        await journal.release("c1", "5xx")
        tasks.start_soon(Outbox(journal, owner, Deliveries(journal), again_s=0.01).run)
        with anyio.fail_after(10):
            await journal.emptied.wait()
        tasks.cancel_scope.cancel()
    assert owner.asked == [("c1", "release", "5xx")]
    assert "the outbox of releases cannot be read" in caplog.text
