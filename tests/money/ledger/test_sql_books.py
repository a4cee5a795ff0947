"""The books of credits, summed from transfers: each kind of movement in its own figure."""

import sqlite3
from contextlib import closing

import pytest

from tests.quick_files import migrate_copied
from toolserver.money.ledger.sql_books import (
    EVER,
    CreditBooks,
    RowsRemoved,
    read_balances,
    read_credit_books,
    read_token_books,
    read_tool_books,
    read_transfers,
)

CAUSES = ["eip155:8453:0x1:0", "x402:eip155:8453:0x1:0x2", "x402:replaces:abc", "grant:1", "demo"]


@pytest.fixture
def db():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate_copied(db)
        db.execute("INSERT INTO account(id, kind, credits, debits, pending) VALUES (4, 'token', 62, 14, 3)")
        db.execute("INSERT INTO token(hash, account, ref, issued_at) VALUES (?, 4, 'acct_1', 0)", ("a" * 64,))
        rows = [(n, "posted", 1, 4, 10 + n, None, cause, 100) for n, cause in enumerate(CAUSES, 1)]
        rows += [(6, "posted", 4, 1, 4, None, None, 100), (7, "posted", 4, 1, 3, None, "refund:1", 100)]
        rows += [(8, "posted", 4, 2, 7, None, None, 150), (9, "reverse", 2, 4, 7, 8, None, 200)]
        rows += [(10, "pending", 4, 2, 3, None, None, 200), (11, "pending", 4, 2, 2, None, None, 200)]
        rows += [(12, "void", 4, 2, 2, 11, None, 200)]
        db.executemany("INSERT INTO transfer VALUES (?,?,?,?,?,?,?,?)", rows)
        holds = [("c8", 7, "reversed", 8), ("c10", 3, "open", 10), ("c11", 2, "voided", 11)]
        for call, credits, state, transfer in holds:
            ended = (None, None) if state == "open" else ("5xx", 200)
            db.execute(
                "INSERT INTO reservation VALUES (?, 4, ?, ?, ?, '/x', '', ?, 0, ?, NULL, NULL)",
                (call, credits, state, ended[0], transfer, ended[1]),
            )
        yield db


def test_each_movement_is_in_one_figure(db):
    found = read_credit_books(db, 0, 300)

    assert (found.sold_by_transfer, found.sold_by_x402, found.granted, found.other) == (11, 12, 14, 13 + 15)
    assert (found.taken_back, found.refunded, found.used, found.given_back) == (4, 3, 7, 7)
    assert (found.calls_charged, found.calls_given_back, found.calls_released) == (1, 1, 1)
    assert (found.owed_before, found.owed) == (0, 65 - 7)


def test_a_span_is_half_open_and_begins_with_what_was_owed(db):
    found = read_credit_books(db, 150, 200)

    assert (found.owed_before, found.used, found.given_back, found.owed) == (58, 7, 0, 51)
    assert read_credit_books(db, 0, 100).owed == 0


def test_tools_and_tokens_have_what_they_took_part_in(db):
    assert [tuple(row) for row in read_tool_books(db, 0, 300)] == [("/x", 1, 7, 1, 7, 1)]
    assert [tuple(row) for row in read_token_books(db, 0, 300)] == [("a" * 16, 65, 7, 0, 0, 48)]


def test_the_accounts_are_asked_apart(db):
    assert read_balances(db) == (48, 3)


def test_removed_calls_count_as_used_and_their_time_is_asked_of_their_archive(db):
    db.execute("INSERT INTO closed_month VALUES ('1970-01', 201, 0, '', 0, 1)")
    for sql in ("reservation WHERE transfer = 8", "transfer WHERE seq = 9", "transfer WHERE seq = 8"):
        db.execute(f"DELETE FROM {sql}")
    db.execute("INSERT INTO removed_calls VALUES (4, '', 7, 7, 2)")

    assert read_credit_books(db, 0, EVER).owed_now == read_credit_books(db, 201, 300).owed == 58
    for ask in (read_credit_books, read_tool_books, read_token_books, read_transfers):
        with pytest.raises(RowsRemoved, match="before 1970-01-01 were archived"):
            ask(db, 200, 300)
        ask(db, 201, 300)
    with pytest.raises(RowsRemoved):
        read_credit_books(db, 0, 300)


def test_credits_that_removed_calls_used_are_not_owed(db):
    db.execute("UPDATE account SET debits = debits + 5 WHERE id = 4")
    db.execute("INSERT INTO removed_calls VALUES (4, '', 6, 1, 3)")
    assert read_credit_books(db, 100, 300).owed == 58 - 5
    assert (read_credit_books(db, 0, EVER).owed_now, read_credit_books(db, 0, EVER).used) == (53, 12)


def test_every_transfer_of_a_span_is_exported_in_order_with_its_token_and_its_call(db):
    found = [tuple(row) for row in read_transfers(db, 100, 200)]
    token = "a" * 16
    assert found[0] == (1, 100, "posted", token, 11, CAUSES[0], None, None, None)
    assert [row[0] for row in found] == list(range(1, 9))
    assert found[5:] == [
        (6, 100, "posted", token, -4, None, None, None, None),
        (7, 100, "posted", token, -3, "refund:1", None, None, None),
        (8, 150, "posted", token, -7, None, "c8", "/x", "5xx"),
    ]
    assert [tuple(row)[2:8] for row in read_transfers(db, 200, 201)] == [
        ("reverse", token, 7, None, "c8", "/x"),
        ("pending", token, -3, None, "c10", "/x"),
        ("pending", token, -2, None, "c11", "/x"),
        ("void", token, -2, None, "c11", "/x"),
    ]


def test_what_is_owed_now_is_the_same_for_every_span(db):
    for since, until in ((0, EVER), (0, 100), (150, 200), (300, 400), (1, EVER), (0, EVER - 1)):
        assert read_credit_books(db, since, until).owed_now == 58
    assert read_credit_books(db, 300, 400)._replace(owed_now=0) == CreditBooks(owed_before=58, owed=58)
