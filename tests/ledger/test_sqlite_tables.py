"""Operations on the ledger's tables: loaded, decided and stored within the caller's transaction."""

import sqlite3
from contextlib import closing

import pytest

from tests.ledger.ledgers import token
from toolserver.errors import PaymentRequired
from toolserver.ledger import sqlite_tables
from toolserver.ledger.operations import Charge, Mint, Reserve, Revoke, Settle, outcome_of
from toolserver.ledger.sqlite_invariants import find_breaches
from toolserver.ledger.sqlite_tables import (
    SWEPT,
    apply_operation,
    apply_operations,
    hash_of,
    load_state,
    open_holds,
    read_account,
    read_standing,
    store_state,
    void_expired,
)
from toolserver.ledger.state import key_of
from toolserver.storage.errors import TransactionLost
from toolserver.storage.migrate import migrate

NOW = 1_000_000
RICH, POOR = key_of(token(1)), key_of(token(2))


def spendable(db, key):
    return read_account(db, key, NOW).valid(key)[1].spendable


@pytest.fixture
def db():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute("PRAGMA foreign_keys=ON")
        migrate(db)
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
    monkeypatch.setattr(sqlite_tables, "lock_accounts", lambda db, needs: set())
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
