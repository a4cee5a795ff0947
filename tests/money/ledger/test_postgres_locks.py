"""Instances that share a ledger: an account is changed by one at a time, and nothing that came in between is missed."""

import threading

import anyio
import pytest

from tests.calls.parts import START
from tests.money.ledger.ledgers import faults, token
from tests.postgres import terms_of
from tests.sql.test_group_commit import all_at_once
from toolserver.clock import ManualClock
from toolserver.errors import PaymentRequired
from toolserver.money.ledger import sql_tables
from toolserver.money.ledger.operations import Charge, Mint
from toolserver.money.ledger.protocol import CallReused
from toolserver.money.ledger.state import key_of, new_ref
from toolserver.money.ledger.store import SqlLedger
from toolserver.sql.errors import OutcomeUnknown
from toolserver.sql.postgres_group_commit import open_postgres

pytestmark = pytest.mark.live
RICH, OTHER = token(1), token(2)


@pytest.fixture
async def instances(tmp_path):
    """Two instances over one database; the books are checked when the test is over."""
    terms, clock = terms_of(tmp_path), ManualClock(START)
    async with open_postgres(terms) as one, open_postgres(terms) as two:
        ledgers = [SqlLedger(store, clock) for store in (one, two)]
        await ledgers[0].mint(RICH, 100, cause="rich")
        await ledgers[0].mint(OTHER, 100, cause="other")
        yield ledgers
        assert await faults(ledgers[0]) == []


async def charged(ledger, call_id, who=RICH, credits=1):
    return await ledger.charge(call_id, who, credits, endpoint="/api/pro/x")


async def test_a_token_that_is_spent_at_every_instance_ends_at_exactly_zero(instances):
    calls = [charged(ledger, f"c{n}-{at}") for n in range(80) for at, ledger in enumerate(instances)]
    outcomes = await all_at_once(*calls)
    refused = [outcome for outcome in outcomes if isinstance(outcome, PaymentRequired)]
    assert (len(outcomes) - len(refused), len(refused)) == (100, 60)
    assert {outcome.code for outcome in refused} == {"insufficient_credits"}
    assert await instances[1].balance(RICH) == 0


async def test_groups_that_name_the_same_accounts_in_opposite_orders_do_not_stop_each_other(instances):
    def both(ledger, turn, order):
        return [charged(ledger, f"{turn}-{id(ledger)}-{who}", who) for who in order]

    for turn in range(10):
        one, two = instances
        outcomes = await all_at_once(*both(one, turn, (RICH, OTHER)), *both(two, turn, (OTHER, RICH)))
        assert [getattr(outcome, "charged", outcome) for outcome in outcomes] == [1] * 4


async def test_one_call_that_arrives_at_two_instances_is_charged_once(instances):
    for turn in range(20):
        outcomes = await all_at_once(*(charged(ledger, f"c{turn}") for ledger in instances))
        assert sorted(outcome.replayed for outcome in outcomes) == [False, True]
    assert await instances[0].balance(RICH) == 80


async def test_one_call_id_for_two_tokens_at_two_instances_charges_one_of_them(instances):
    for turn in range(20):
        outcomes = await all_at_once(charged(instances[0], f"c{turn}", RICH), charged(instances[1], f"c{turn}", OTHER))
        assert sorted(type(outcome).__name__ for outcome in outcomes) == [CallReused.__name__, "Settlement"]
    assert await instances[0].balance(RICH) + await instances[0].balance(OTHER) == 180


async def test_one_cause_is_credited_once_and_a_new_token_has_one_account_wherever_it_comes_from(instances):
    for turn in range(10):
        new = token(100 + turn)
        minted = await all_at_once(*(ledger.mint(new, 5, cause=f"paid {turn}") for ledger in instances))
        assert sorted(outcome.replayed for outcome in minted) == [False, True]
        more = await all_at_once(*(ledger.mint(new, 1, cause=f"{turn}-{id(ledger)}") for ledger in instances))
        assert [outcome.credits for outcome in more] == [1, 1]
        assert await instances[0].balance(new) == 7


async def test_transfers_of_an_account_are_numbered_in_their_order_whichever_instance_writes_them(instances):
    for turn in range(6):
        await charged(instances[turn % 2], f"c{turn}")
    sql = "SELECT call_id FROM reservation ORDER BY transfer"
    found = await instances[0].file.read(lambda db: db.execute(sql).fetchall())
    assert found == [(f"c{turn}",) for turn in range(6)]


async def test_a_call_that_came_to_be_between_lock_and_load_is_found_all_the_same(instances, monkeypatch):
    one, two = instances
    really, seen = sql_tables.lock_accounts, []

    def lock_and_wait(db, needs):
        """The first time, let the other instance write the same call for another account after the lock."""
        locked = really(db, needs)
        if not seen and any(need.call_id == "raced" for need in needs):
            seen.append(threading.current_thread())
            arrived.set()
            assert written.wait(20)
        return locked

    arrived, written = threading.Event(), threading.Event()
    monkeypatch.setattr(sql_tables, "lock_accounts", lock_and_wait)
    outcomes = []
    async with anyio.create_task_group() as tasks:

        async def first():
            outcomes.append((await all_at_once(charged(one, "raced", RICH)))[0])

        tasks.start_soon(first)
        await anyio.to_thread.run_sync(arrived.wait)
        assert (await charged(two, "raced", OTHER)).charged == 1
        written.set()
    assert isinstance(outcomes[0], CallReused)


async def test_a_group_that_waited_for_one_of_its_accounts_has_locked_all_of_them(instances, monkeypatch):
    one, two = instances
    arrived, go_on = threading.Event(), threading.Event()
    locked, lock = [], sql_tables.lock_accounts

    def lock_and_tell(db, needs):
        locked.append(lock(db, needs))
        return locked[-1]

    def charge_slowly(db, operations):
        outcomes = one.apply_group(db, operations)
        arrived.set()
        assert go_on.wait(20)
        return outcomes

    monkeypatch.setattr(sql_tables, "lock_accounts", lock_and_tell)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.file.together, charge_slowly, Charge("slow", key_of(RICH), 7, "/api/pro/x"))
        await anyio.to_thread.run_sync(arrived.wait)
        tasks.start_soon(charged, two, "a", RICH)
        tasks.start_soon(charged, two, "b", OTHER)
        await anyio.sleep(0.2)  # it waits for the first account now, and has the second one
        go_on.set()
    assert [len(found) for found in locked] == [1, 2], "nothing had to be run again"
    assert [await one.balance(who) for who in (RICH, OTHER)] == [92, 99]


async def test_a_charge_whose_commit_nobody_confirmed_is_given_back(instances, monkeypatch):
    """The server has the charge, its caller was told that billing is out of order: no answer, so no charge either."""
    one = instances[0]
    really = one.file.together

    async def unheard(run, operation):
        await really(run, operation)
        raise OutcomeUnknown("lost at COMMIT")

    monkeypatch.setattr(one.file, "together", unheard)
    with pytest.raises(PaymentRequired) as caught:
        await charged(one, "c1")
    assert caught.value.code == "billing_unavailable"
    await one.file.alone(lambda db: None)  # after what was owed
    assert await instances[1].balance(RICH) == 100


async def test_the_release_of_such_a_charge_waits_for_a_commit_that_is_still_under_way(instances):
    """It names the account: without that it would find no such call, and the charge would stay for good."""
    one, two = instances
    arrived, go_on = threading.Event(), threading.Event()

    def charge_slowly(db, operations):
        outcomes = one.apply_group(db, operations)
        arrived.set()
        assert go_on.wait(20)
        return outcomes

    async with anyio.create_task_group() as tasks:
        operation = Charge("slow", key_of(RICH), 7, "/api/pro/x")
        tasks.start_soon(one.file.together, charge_slowly, operation)
        await anyio.to_thread.run_sync(arrived.wait)

        async def release():
            settle = sql_tables.Settle("slow", "cancelled", key=operation.key)
            settled = await two.file.together(two.apply_group, settle)
            assert settled.state == "reversed"

        tasks.start_soon(release)
        await anyio.sleep(0.2)
        go_on.set()
    assert await two.balance(RICH) == 100


async def test_operations_of_all_kinds_in_one_group_lock_what_they_need(instances):
    one = instances[0]
    new = Mint(key_of(token(9)), 3, "nine", new_ref())
    await one.file.together(one.apply_group, new)
    outcomes = await all_at_once(
        charged(one, "a"),
        one.settle("a", no_charge="5xx"),
        one.mint(token(9), 1, cause="ten"),
        charged(one, "b", OTHER),
    )
    assert [type(outcome).__name__ for outcome in outcomes] == ["Settlement", "Settlement", "Minted", "Settlement"]
