"""The ledger in SQLite: what it adds to the contract."""

import logging
import sqlite3
import threading
from contextlib import closing

import anyio
import pytest

from tests.calls.parts import START
from tests.money.ledger.ledgers import opened, token
from tests.requirements import proves
from toolserver.clock import ManualClock
from toolserver.errors import PaymentRequired
from toolserver.money.ledger.allowance import AllowanceTerms
from toolserver.money.ledger.operations import LedgerOperation, ReplaceToken
from toolserver.money.ledger.state import key_of
from toolserver.money.ledger.store import FILE, KNOWN, KNOWN_S, KNOWN_SHARED_S, open_ledger
from toolserver.sql.errors import OutcomeUnknown, StorageFailed

RICH, CHILD = token(1), token(1000)


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


async def test_a_valid_token_is_remembered_for_five_seconds(ledger, clock, tmp_path):
    assert (KNOWN, KNOWN_S, KNOWN_SHARED_S) == (10_000, 5.0, 0.5)
    assert await ledger.knows(RICH)
    async with open_ledger(tmp_path / FILE, clock) as other:
        await other.revoke(key_of(RICH), "leaked")
    clock.advance(4.9)
    assert await ledger.knows(RICH)
    clock.advance(0.1)
    assert not await ledger.knows(RICH)


async def test_a_revocation_here_is_known_at_once(ledger):
    made = await ledger.create_allowance(RICH, key_of(CHILD), AllowanceTerms("child", 5))
    assert await ledger.find_payer(CHILD) == await ledger.find_payer(RICH) == key_of(RICH)
    await ledger.revoke_allowance(RICH, made.id)
    assert await ledger.find_payer(CHILD) is None
    assert await ledger.find_payer(RICH) == key_of(RICH)
    await ledger.revoke(key_of(RICH), "leaked")
    assert await ledger.find_payer(RICH) is None


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


@pytest.mark.parametrize(("failure", "left"), [(OutcomeUnknown, 10), (StorageFailed, 7)])
async def test_a_charge_is_released_afterwards_if_nobody_knows_whether_it_was_written(
    ledger, monkeypatch, failure, left
):
    together = ledger.file.together

    async def unheard(run, operation):
        await together(run, operation)
        raise failure("lost at COMMIT")

    with monkeypatch.context() as patched:
        patched.setattr(ledger.file, "together", unheard)
        with pytest.raises(PaymentRequired):
            await ledger.charge("c1", RICH, 3, endpoint="/x")
    await ledger.file.alone(lambda db: None)  # after what nobody waits for
    assert await ledger.balance(RICH) == left


async def test_a_reservation_ends_when_its_time_is_over(ledger, clock):
    at, fingerprint = START.timestamp(), key_of(RICH)[:16]
    for call, ttl_s, left in (("c1", 60, 9), ("c2", 0.25, 8)):
        held = await ledger.reserve(call, RICH, 1, endpoint="/x", ttl_s=ttl_s, service="b")
        assert held == (call, 1, left, at + ttl_s, "open", False)
    first, second = await ledger.holds()
    assert first == ("c2", fingerprint, 1, "/x", "b", at + 0.25)
    assert second == ("c1", fingerprint, 1, "/x", "b", at + 60)
    clock.advance(0.25)
    assert (await ledger.sweep(), await ledger.sweep(), await ledger.balance(RICH)) == (1, 0, 9)
    clock.advance(60)
    assert await ledger.check() == []  # it sweeps first
    assert await ledger.holds() == []
    assert await ledger.totals() == (1, 10, 0, 0, 10, 5)


async def test_a_hundred_reservations_are_listed_unless_more_are_asked_for(ledger):
    await ledger.mint(RICH, 101, cause="more")
    async with anyio.create_task_group() as tasks:
        for number in range(101):
            tasks.start_soon(lambda call: ledger.reserve(call, RICH, 1, endpoint="/x", ttl_s=60), f"c{number}")
    assert [len(await ledger.holds(*limit)) for limit in ((), (101,), (3,))] == [100, 101, 3]


async def test_a_charge_whose_answer_is_on_its_way_stays_in_the_journal_until_it_was_sent(ledger):
    def kept(db):
        return db.execute("SELECT call_id FROM journal ORDER BY 1").fetchall()

    await ledger.charge("c1", RICH, 1, endpoint="/x", undelivered=True)
    await ledger.charge("c2", RICH, 1, endpoint="/x")
    await ledger.reserve("c3", RICH, 1, endpoint="/x", ttl_s=60)
    await ledger.settle("c3", no_charge=None, undelivered=True)
    assert await ledger.file.read(kept) == [("c1",), ("c3",)]
    ledger.delivered("c1")
    await ledger.file.alone(lambda db: None)
    assert await ledger.file.read(kept) == [("c3",)]


async def test_an_account_is_found_by_each_of_its_tokens_and_by_no_allowance(ledger):
    await ledger.create_allowance(RICH, key_of(CHILD), AllowanceTerms("child", 5))
    await ledger.file.together(ledger.apply_group, ReplaceToken(key_of(RICH), key_of(token(2))))
    found = [await ledger.find_account(each) for each in (RICH, token(2), CHILD, token(9))]
    assert found == [key_of(RICH), key_of(RICH), None, None]
    assert (await ledger.standing_of_fingerprint(key_of(token(2))[:16])).payer == key_of(token(2))
    assert (await ledger.standing_of_fingerprint(key_of(CHILD))).allowance is not None


async def test_a_cause_is_found_by_its_beginning(ledger):
    await ledger.mint(RICH, 1, cause="grant:1:thanks")
    found = [await ledger.find_cause(start) for start in ("grant:1:", "grant:1:thanks", "grant:11:", "rich", "a")]
    assert found == ["grant:1:thanks", "grant:1:thanks", None, "rich", None]


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
