"""The ledger in SQLite: what it adds to the contract."""

import logging
import sqlite3
import threading
from contextlib import closing

import anyio
import pytest

from tests.calls.parts import START
from tests.ledger.ledgers import opened, token
from tests.requirements import proves
from toolserver.clock import ManualClock
from toolserver.errors import PaymentRequired
from toolserver.ledger.operations import LedgerOperation
from toolserver.ledger.sqlite import FILE, open_ledger
from toolserver.storage.errors import OutcomeUnknown, StorageFailed

RICH = token(1)


@pytest.fixture
def clock():
    return ManualClock(START)


@pytest.fixture
async def ledger(tmp_path, clock):
    async with open_ledger(tmp_path / FILE, clock) as ledger:
        await ledger.mint(RICH, 10, cause="rich")
        yield ledger


class Blocked:
    """The writer, held up in its thread until told to go on."""

    def __init__(self, ledger, tasks):
        self.begun, self.go = threading.Event(), threading.Event()
        tasks.start_soon(ledger.file.alone, self.job)

    def job(self, db):
        self.begun.set()
        self.go.wait(5)


async def test_the_books_outlive_the_process(tmp_path, clock):
    async with open_ledger(tmp_path / FILE, clock) as ledger:
        await ledger.mint(RICH, 10, cause="rich")
        await ledger.charge("c1", RICH, 3, endpoint="/x")
    async with open_ledger(tmp_path / FILE) as ledger:
        assert await ledger.balance(RICH) == 7
        assert (await ledger.settle("c1", no_charge="cancelled")).remaining == 10


@proves("tokens.hashed")
async def test_a_token_is_nowhere_in_the_file(ledger):
    await ledger.charge("c1", RICH, 3, endpoint="/x")
    dump = await ledger.file.apart(lambda db: "\n".join(str(row) for row in db.iterdump()))
    assert "svc_live" not in dump
    assert RICH.removeprefix("svc_live_") not in dump


@pytest.mark.parametrize(
    "ask",
    [
        lambda ledger: ledger.charge("c1", RICH, 3, endpoint="/x"),
        lambda ledger: ledger.reserve("c1", RICH, 3, endpoint="/x", ttl_s=60),
    ],
)
async def test_who_hangs_up_before_it_is_their_turn_pays_nothing(ledger, ask):
    async with anyio.create_task_group() as tasks:
        blocked = Blocked(ledger, tasks)
        await anyio.to_thread.run_sync(blocked.begun.wait)
        async with anyio.create_task_group() as caller:
            caller.start_soon(ask, ledger)
            await anyio.wait_all_tasks_blocked()
            caller.cancel_scope.cancel()
        blocked.go.set()
    assert await ledger.balance(RICH) == 10
    assert await ledger.holds() == []


async def test_a_charge_nobody_waited_for_is_undone(ledger):
    begun, go, apply_group = threading.Event(), threading.Event(), ledger.apply_group

    def slow(db, operations):
        begun.set()
        go.wait(5)
        return apply_group(db, operations)

    ledger.apply_group = slow
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: ledger.charge("c1", RICH, 3, endpoint="/x"))
        await anyio.to_thread.run_sync(begun.wait)
        tasks.cancel_scope.cancel()
    go.set()
    settled = await ledger.settle("c1", no_charge="5xx")
    assert (settled.charged, settled.remaining, settled.reason, settled.state) == (0, 10, "cancelled", "reversed")


@pytest.mark.parametrize(("no_charge", "kept"), [(None, "cancelled"), ("stale_data", "stale_data")])
async def test_a_settlement_nobody_waited_for_is_a_release(ledger, no_charge, kept):
    await ledger.reserve("c1", RICH, 3, endpoint="/x", ttl_s=60)
    async with anyio.create_task_group() as tasks:
        blocked = Blocked(ledger, tasks)
        await anyio.to_thread.run_sync(blocked.begun.wait)
        async with anyio.create_task_group() as caller:
            caller.start_soon(lambda: ledger.settle("c1", no_charge=no_charge))
            await anyio.wait_all_tasks_blocked()
            caller.cancel_scope.cancel()
        blocked.go.set()
    settled = await ledger.settle("c1", no_charge=None)
    assert (settled.charged, settled.remaining, settled.reason) == (0, 10, kept)


async def test_a_revocation_by_another_process_counts_at_once_for_spending_and_soon_for_the_rest(
    ledger, tmp_path, clock
):
    assert await ledger.knows(RICH)
    async with open_ledger(tmp_path / FILE, clock) as other:
        await other.revoke((await other.standing(RICH)).fingerprint, "leaked")
    with pytest.raises(PaymentRequired) as caught:
        await ledger.charge("c1", RICH, 1, endpoint="/x")
    assert caught.value.code == "expired"
    assert await ledger.knows(RICH)
    clock.advance(6)
    assert not await ledger.knows(RICH)


@pytest.mark.live
async def test_where_instances_share_the_books_a_revocation_by_another_one_counts_within_a_second(tmp_path, clock):
    async with opened("postgres", tmp_path, clock) as one, opened("postgres", tmp_path, clock) as other:
        await one.mint(RICH, 10, cause="rich")
        assert await one.knows(RICH)
        await other.revoke((await other.standing(RICH)).fingerprint, "leaked")
        clock.advance(0.6)
        assert not await one.knows(RICH)


async def test_two_processes_share_the_file_and_the_balance(ledger, tmp_path, clock):
    async with open_ledger(tmp_path / FILE, clock) as other:
        for number in range(5):
            await (ledger, other)[number % 2].charge(f"c{number}", RICH, 2, endpoint="/x")
        with pytest.raises(PaymentRequired):
            await other.charge("c9", RICH, 1, endpoint="/x")
    assert await ledger.check() == []


async def test_a_ledger_that_cannot_be_used_says_so_and_charges_nothing(ledger, caplog):
    await ledger.file.alone(lambda db: db.execute("ALTER TABLE token RENAME TO lost") and None)
    asked = [
        ledger.charge("c1", RICH, 1, endpoint="/x"),
        ledger.balance(RICH),
        ledger.knows(RICH),
    ]
    with caplog.at_level(logging.CRITICAL):
        for awaitable in asked:
            with pytest.raises(PaymentRequired) as caught:
                await awaitable
            assert caught.value.code == "billing_unavailable"
            assert caught.value.headers["Retry-After"] == "5"
    await ledger.file.alone(lambda db: db.execute("ALTER TABLE lost RENAME TO token") and None)
    assert await ledger.balance(RICH) == 10


@pytest.mark.parametrize("failure", [StorageFailed, OutcomeUnknown])
@pytest.mark.parametrize(
    ("settled", "left", "pending"),
    [
        ({"no_charge": None, "undelivered": True}, 10, 0),  # nobody hears of the charge
        ({"no_charge": "5xx"}, 10, 0),
        ({"no_charge": None}, 6, 4),  # as of a webhook: it is settled again until that is done
    ],
)
async def test_what_cannot_be_settled_is_released_unless_its_caller_settles_it_again(
    ledger, monkeypatch, failure, settled, left, pending
):
    async def fails(run, operation):
        raise failure("the server is away")

    await ledger.reserve("c1", RICH, 4, endpoint="/x", ttl_s=300)
    with monkeypatch.context() as patched:
        patched.setattr(ledger.file, "together", fails)
        with pytest.raises(PaymentRequired) as caught:
            await ledger.settle("c1", **settled)
        assert caught.value.code == "billing_unavailable"
    await ledger.file.alone(lambda db: None)  # after what nobody waits for
    assert (await ledger.balance(RICH), (await ledger.totals()).held) == (left, pending)
    if pending:
        assert (await ledger.settle("c1", **settled)).charged == 4


async def test_after_closing_billing_is_unavailable(tmp_path):
    async with open_ledger(tmp_path / FILE) as ledger:
        await ledger.mint(RICH, 10, cause="rich")
    with pytest.raises(PaymentRequired) as caught:
        await ledger.charge("c1", RICH, 1, endpoint="/x")
    assert caught.value.code == "billing_unavailable"


class Careless(LedgerOperation[int]):
    """An operation with a mistake in it."""

    def needs(self):
        raise ZeroDivisionError


async def test_a_mistake_in_one_operation_is_nobody_elses(ledger, caplog):
    outcomes = []

    async def one(awaitable):
        try:
            outcomes.append(type(await awaitable).__name__)
        except ZeroDivisionError:
            outcomes.append("mistake")

    async with anyio.create_task_group() as tasks:
        with caplog.at_level(logging.CRITICAL):
            tasks.start_soon(one, ledger.charge("c1", RICH, 1, endpoint="/x"))
            tasks.start_soon(one, ledger._write(Careless()))
            tasks.start_soon(one, ledger.charge("c2", RICH, 1, endpoint="/x"))
    assert sorted(outcomes) == ["Settlement", "Settlement", "mistake"]
    assert await ledger.balance(RICH) == 8


async def test_an_operation_says_itself_what_it_needs_and_does():
    with pytest.raises(NotImplementedError):
        LedgerOperation().needs()
    with pytest.raises(NotImplementedError):
        LedgerOperation().on(None)


@pytest.mark.parametrize(
    "forgery",
    [
        "UPDATE transfer SET amount=1",
        "DELETE FROM transfer",
        "DELETE FROM reservation",
        "UPDATE reservation SET state='open', settled_at=NULL",
        "UPDATE reservation SET credits=1",
        "UPDATE account SET debits=99 WHERE kind='token'",
        "UPDATE account SET pending=-1 WHERE kind='token'",
        "INSERT INTO transfer VALUES(99, 'posted', 1, 4, 10, NULL, 'rich', 0)",
        "INSERT INTO transfer VALUES(99, 'post', 4, 2, 0, 1, NULL, 0)",
    ],
)
async def test_the_file_itself_refuses_what_the_rules_would_never_write(ledger, tmp_path, forgery):
    await ledger.charge("c1", RICH, 3, endpoint="/x")
    with closing(sqlite3.connect(tmp_path / FILE, isolation_level=None)) as db, pytest.raises(sqlite3.IntegrityError):
        db.execute(forgery)
