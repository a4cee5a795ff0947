"""Operations on the ledger's tables: loaded, decided and stored within the caller's transaction."""

import sqlite3
from contextlib import closing

import pytest

from tests.money.ledger.ledgers import token
from tests.quick_files import migrate_copied
from tests.requirements import proves
from toolserver.errors import PaymentRequired
from toolserver.money.ledger import sql_tables
from toolserver.money.ledger.allowance import AllowanceTerms, draft_allowance
from toolserver.money.ledger.operations import (
    Charge,
    CreateAllowance,
    Mint,
    ReplaceToken,
    Reserve,
    Revoke,
    RevokeAllowance,
    Settle,
    outcome_of,
)
from toolserver.money.ledger.sql_invariants import find_breaches
from toolserver.money.ledger.sql_tables import (
    LEASE_MS,
    SWEPT,
    apply_operation,
    apply_operations,
    end_leases,
    find_cause,
    forget_undelivered,
    has_due_calls,
    hash_of,
    list_allowances,
    load_state,
    note_undelivered,
    open_holds,
    read_account,
    read_standing,
    release_undelivered,
    renew_leases,
    store_state,
    void_expired,
)
from toolserver.money.ledger.state import key_of
from toolserver.sql.errors import TransactionLost

NOW = 1_000_000
RICH, POOR = key_of(token(1)), key_of(token(2))


def spendable(db, key):
    return read_account(db, key, NOW).valid(key)[1].spendable


@pytest.fixture
def db():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute("PRAGMA foreign_keys=ON")
        migrate_copied(db)
        apply_operation(db, Mint(RICH, 1000, "rich", "acct_1"), NOW)
        yield db
        assert find_breaches(db, 0) == []


def test_a_group_is_decided_in_its_order_with_a_refusal_among_the_outcomes(db):
    outcomes = apply_operations(
        db,
        [Charge("c1", RICH, 999, "/x"), Charge("c2", RICH, 2, "/x"), Settle("c1", "5xx"), Charge("c3", RICH, 2, "/x")],
        NOW,
    )
    assert [getattr(each, "charged", each.__class__.__name__) for each in outcomes] == [
        999,
        "InsufficientCredits",
        0,
        2,
    ]
    assert spendable(db, RICH) == 998


def test_one_operation_returns_its_result_or_raises_its_refusal(db):
    assert apply_operation(db, Charge("c1", RICH, 4, "/x"), NOW).remaining == 996
    with pytest.raises(PaymentRequired):
        apply_operation(db, Charge("c2", POOR, 4, "/x"), NOW)


def test_what_the_caller_takes_back_was_never_there(db):
    db.execute("BEGIN")
    apply_operation(db, Charge("c1", RICH, 4, "/x"), NOW)
    assert spendable(db, RICH) == 996
    db.execute("ROLLBACK")
    assert spendable(db, RICH) == 1000
    assert db.execute("SELECT count(*) FROM reservation").fetchone() == (0,)


def test_a_group_larger_than_any_statement_is_stored_whole(db):
    outcomes = apply_operations(db, [Reserve(f"c{n}", RICH, 1, "/x", expires_at=NOW + n) for n in range(150)], NOW)
    assert [each.remaining for each in outcomes] == list(range(999, 849, -1))
    assert [hold.call_id for hold, _ in open_holds(db, 200)] == [f"c{n}" for n in range(150)]
    settled = apply_operations(db, [Settle(f"c{n}", None) for n in range(150)], NOW)
    assert {each.charged for each in settled} == {1}
    assert open_holds(db, 200) == []


@pytest.mark.parametrize("number", [0, 500], ids=["the same transfer", "the same call"])
def test_who_decided_on_what_another_instance_has_changed_since_loses_its_transaction(db, number):
    charge = Charge("c1", RICH, 4, "/x")
    books = load_state(db, [charge], NOW)
    books.next_seq += number
    assert outcome_of(charge, books).charged == 4
    apply_operation(db, Charge("c1", RICH, 4, "/x"), NOW)
    db.execute("BEGIN")
    with pytest.raises(TransactionLost):
        store_state(db, books)
    db.execute("ROLLBACK")
    assert spendable(db, RICH) == 996


def test_what_came_to_be_after_the_accounts_were_locked_is_not_decided_upon(db, monkeypatch):
    monkeypatch.setattr(sql_tables, "lock_accounts", lambda db, needs: set())
    with pytest.raises(TransactionLost):
        load_state(db, [Charge("c1", RICH, 4, "/x")], NOW)


def test_expired_reservations_are_voided_so_many_at_a_time(db):
    apply_operations(db, [Reserve(f"c{n}", RICH, 1, "/x", expires_at=NOW + n % 2) for n in range(2 * SWEPT + 10)], NOW)
    assert [void_expired(db, NOW) for _ in range(3)] == [SWEPT, 5, 0]
    assert read_standing(db, RICH, NOW).held == SWEPT + 5


def test_a_revoked_token_stands_but_is_not_valid(db):
    assert apply_operation(db, Revoke(RICH, "leaked"), NOW)
    assert read_standing(db, RICH, NOW).revoked == "leaked"
    with pytest.raises(PaymentRequired) as caught:
        spendable(db, RICH)
    assert caught.value.code == "expired"


def test_a_token_is_found_by_a_fingerprint_of_its_own_only(db):
    assert hash_of(db, RICH[:16]) == RICH
    same = RICH[:16] + "0" * 48
    apply_operation(db, Mint(same, 1, "same", "acct_2"), NOW)
    for fingerprint in (RICH[:16], POOR[:16]):
        with pytest.raises(PaymentRequired):
            hash_of(db, fingerprint)
    assert hash_of(db, same) == same


def journal(db):
    return db.execute("SELECT call_id, state, next_at FROM journal ORDER BY call_id").fetchall()


def charge_undelivered(db, *calls):
    operations = [Charge(call, RICH, 4, "/x", undelivered=True) for call in calls]
    note_undelivered(db, operations, apply_operations(db, operations, NOW), NOW)


def test_charges_whose_answers_are_on_their_way_are_noted_until_they_were_sent_or_released(db):
    operations = [
        Charge("c1", RICH, 4, "/x", undelivered=True),
        Charge("c2", RICH, 4, "/x"),
        Charge("c3", RICH, 2000, "/x", undelivered=True),  # refused
        Reserve("c4", RICH, 4, "/x"),
        Settle("c4", None, undelivered=True),
        Settle("c2", "5xx", undelivered=True),
        Reserve("c5", RICH, 4, "/x", undelivered=True),
        Reserve("c6", RICH, 4, "/x", undelivered=True),
        Settle("c6", "cancelled"),
        Reserve("c7", RICH, 4, "/x", expires_at=NOW),  # of a sister, or a webhook's, which goes on after a crash
    ]
    noted = note_undelivered(db, operations, apply_operations(db, operations, NOW), NOW)
    assert noted == (["c1", "c4", "c5"], ["c2", "c6"])
    until = NOW + LEASE_MS
    assert journal(db) == [("c1", "committed", until), ("c4", "committed", until), ("c5", "reserving", until)]
    later = [Settle("c5", None, undelivered=True), Reserve("c6", RICH, 4, "/x", undelivered=True)]  # voided already
    note_undelivered(db, later, apply_operations(db, later, NOW + 5), NOW + 5)
    assert journal(db)[2:] == [("c5", "committed", until + 5)]
    assert forget_undelivered(db, ["c4", "c5", "c9"]) == [None, None, None]
    assert journal(db) == [("c1", "committed", until)]
    release = [Settle("c1", "5xx")]
    note_undelivered(db, release, apply_operations(db, release, NOW), NOW)
    assert journal(db) == []


@proves("charge.delivered")
def test_charges_that_were_not_sent_before_the_process_ended_are_released_with_what_is_kept_of_them(db):
    charge_undelivered(db, "c1", "c2", "c3")
    apply_operation(db, Settle("c2", "5xx"), NOW)  # released, and noted by nobody
    row = "INSERT INTO idempotency(scope, key, request, call_id, expires_at) VALUES('s', ?, 'r', ?, 0)"
    db.executemany(row, [("k1", "c1"), ("k4", "c4")])
    found = release_undelivered(db, NOW + 1)
    assert [(hold.call_id, hold.state, hold.reason) for hold in found] == [
        ("c1", "reversed", "delivery_failed"),
        ("c3", "reversed", "delivery_failed"),
    ]
    assert (spendable(db, RICH), journal(db)) == (1000, [])
    assert db.execute("SELECT call_id FROM idempotency").fetchall() == [("c4",)]
    assert release_undelivered(db, NOW + 1) == []


@proves("charge.killed-holds")
def test_what_was_reserved_by_a_process_that_ended_is_released_and_what_goes_on_without_it_is_not(db):
    operations = [Reserve("c1", RICH, 4, "/x", undelivered=True), Reserve("c2", RICH, 4, "/x", expires_at=NOW)]
    note_undelivered(db, operations, apply_operations(db, operations, NOW), NOW)
    assert [(hold.call_id, hold.state, hold.reason) for hold in release_undelivered(db, NOW + 1)] == [
        ("c1", "voided", "delivery_failed")
    ]
    assert (spendable(db, RICH), journal(db)) == (996, [])


def test_only_calls_whose_lease_has_ended_are_due(db):
    charge_undelivered(db, "c1", "c2", "c3")
    end = NOW + LEASE_MS
    assert not has_due_calls(db, end - 1)
    assert renew_leases(db, ["c2", "c9"], end + 10) == ["c2"]
    assert end_leases(db, ["c3", "c8"]) == [None, None]
    assert has_due_calls(db, NOW)
    assert [hold.call_id for hold in release_undelivered(db, NOW, only_due=True)] == ["c3"]
    assert not has_due_calls(db, NOW)
    assert [hold.call_id for hold in release_undelivered(db, end, only_due=True)] == ["c1"]
    assert journal(db) == [("c2", "committed", end + 10)]


def test_a_cause_is_found_by_its_beginning(db):
    apply_operation(db, Mint(RICH, 1, "grant:1:a", "acct_1"), NOW)
    assert [find_cause(db, start) for start in ("grant:1:", "grant:", "rich", "grant:1:b", "")] == [
        "grant:1:a",
        "grant:1:a",
        "rich",
        None,
        "grant:1:a",
    ]


def allow(db, number, at, **terms):
    draft = draft_allowance(AllowanceTerms(f"robot {number}", 5, **terms), key_of(token(number)), at)
    return apply_operation(db, CreateAllowance(RICH, draft), at)


def test_allowances_are_listed_live_ones_oldest_first_then_the_last_hundred_ended_ones(db):
    for number in range(101):
        apply_operation(db, RevokeAllowance(RICH, allow(db, 1000 + number, number).id), NOW)
    allow(db, 10, 7, expires_at=NOW + 1)
    allow(db, 11, 5)
    names = [each.name for each in list_allowances(db, RICH, NOW)]
    assert names[:2] == ["robot 11", "robot 10"]
    assert names[2:] == [f"robot {1000 + number}" for number in range(100, 0, -1)]
    assert [each.name for each in list_allowances(db, RICH, NOW + 1)][:2] == ["robot 11", "robot 1100"]
    apply_operation(db, Mint(POOR, 1, "poor", "acct_2"), NOW)
    assert list_allowances(db, POOR, NOW) == []


def test_an_allowance_and_the_successor_of_a_token_have_fingerprints_of_their_own(db):
    made = allow(db, 10, NOW)
    assert hash_of(db, made.hash[:16]) == made.hash
    apply_operation(db, ReplaceToken(RICH, POOR), NOW)
    assert (hash_of(db, POOR[:16]), hash_of(db, RICH[:16])) == (POOR, RICH)


def test_an_allowance_is_loaded_by_its_hash_and_its_reference_with_the_token_that_pays(db):
    made = allow(db, 10, NOW)
    for key in (made.hash, made.ref):
        books = read_account(db, key, NOW)
        assert books.allowances[key] == made
        assert books.payer(key).hash == RICH
    assert read_account(db, POOR, NOW).tokens == {}
