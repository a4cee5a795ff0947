"""A statement reads the rows of its own account, however many others there are."""

import sqlite3
from contextlib import closing

import pytest

from tests.quick_files import migrate_copied
from toolserver.money.ledger import sql_statements
from toolserver.money.ledger.statements import StatementQuery

ASKED = {"account": 9, "before": 2**62, "since": 0, "until": 2**62, "limit": 11}


@pytest.mark.parametrize("name", ["_CALLS", "_REVERSALS", "_INCOME", "_TAKEN"])
def test_no_query_scans_a_table_or_sorts(name):
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate_copied(db)
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {getattr(sql_statements, name)}", ASKED)]

    assert not [step for step in plan if step.startswith("SCAN") or "TEMP B-TREE" in step], plan


def test_removed_calls_are_one_entry_at_the_end_of_their_time():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate_copied(db)
        db.execute("INSERT INTO account(id, kind, credits, debits) VALUES (4, 'token', 20, 5)")
        db.execute("INSERT INTO token(hash, account, ref, issued_at) VALUES (?, 4, 'acct_1', 0)", ("a" * 64,))
        db.execute("INSERT INTO transfer VALUES (1, 'posted', 1, 4, 20, NULL, 'bought', 10)")
        db.execute("INSERT INTO closed_month VALUES ('1970-01', 100, 0, '', 0, 1)")
        db.execute("INSERT INTO removed_calls VALUES (4, '', 6, 1, 3)")

        def ask(**wanted):
            page = sql_statements.read_statement(db, "acct_1", StatementQuery(**wanted), 0)
            return [(entry.seq, entry.at, entry.kind, entry.credits) for entry in page.entries], page.next_before

        bought, earlier = (1, 10, "credit", 20), (0, 99, "earlier_calls", -5)
        assert ask() == ([bought, earlier], None)
        assert ask(limit=1) == ([bought], 1)
        assert ask(limit=1, before=1) == ([earlier], None)
        assert ask(before=0) == ([], None)
        assert (ask(since=100), ask(since=99)[0], ask(until=99)[0]) == (([], None), [earlier], [bought])


ALLOWANCE = """INSERT INTO allowance(id, hash, ref, parent, name, credits, spent, day, spent_today, created_at)
  VALUES('alw_1', ?, 'acct_2', ?, 'child', 30, 4, 0, 0, 0)"""


@pytest.fixture
def db():
    """A token that bought 20 credits: a call of its own, one of its allowance, and one of that which was taken back."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate_copied(db)
        db.execute("INSERT INTO account(id, kind, credits, debits) VALUES (4, 'token', 25, 14)")
        db.execute("INSERT INTO token(hash, account, ref, issued_at) VALUES (?, 4, 'acct_1', 0)", ("a" * 64,))
        db.execute(ALLOWANCE, ("b" * 64, "a" * 64))
        db.execute("INSERT INTO transfer VALUES (1, 'posted', 1, 4, 20, NULL, 'bought', 10)")
        calls = ((2, "own", 3, "posted", None), (3, "its", 4, "posted", "alw_1"), (4, "back", 5, "reversed", "alw_1"))
        for seq, call, credits, state, allowance in calls:
            db.execute("INSERT INTO transfer VALUES (?, 'posted', 4, 2, ?, NULL, NULL, 20)", (seq, credits))
            reason, day = "5xx" if state == "reversed" else None, None if allowance is None else 0
            row = (call, 4, credits, state, reason, "/x", "", seq, 0, 20, allowance, day)
            db.execute("INSERT INTO reservation VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", row)
        db.execute("INSERT INTO transfer VALUES (5, 'reverse', 2, 4, 5, 4, NULL, 30)")
        db.execute("INSERT INTO transfer VALUES (6, 'posted', 4, 1, 2, NULL, 'refund:1', 40)")
        yield db


def entries(db, key, **wanted):
    page = sql_statements.read_statement(db, key, StatementQuery(**wanted), 0)
    return [(entry.seq, entry.kind, entry.credits, entry.allowance) for entry in page.entries], page.credits


def test_a_token_sees_every_movement_and_an_allowance_its_own_calls(db):
    its = [(5, "reversal", 5, "alw_1"), (4, "call", -5, "alw_1"), (3, "call", -4, "alw_1")]
    rest = [(2, "call", -3, None), (1, "credit", 20, None)]
    assert entries(db, "acct_1") == entries(db, "a" * 64) == ([(6, "refund", -2, None), *its, *rest], 11)
    assert entries(db, "acct_2") == entries(db, "b" * 64) == (its, 11)
    assert entries(db, "acct_2", since=30) == (its[:1], 11)
    assert entries(db, "acct_2", until=30, before=4) == (its[2:], 11)


def test_removed_calls_of_an_allowance_are_its_own_and_none_are_no_entry(db):
    db.execute("INSERT INTO closed_month VALUES ('1970-01', 1, 0, '', 0, 1)")
    assert "earlier_calls" not in [entry[1] for entry in entries(db, "acct_1")[0]]
    db.execute("INSERT INTO removed_calls VALUES (4, '', 6, 1, 3), (4, 'alw_1', 3, 0, 1)")
    assert entries(db, "acct_1")[0][-1] == (0, "earlier_calls", -8, None)
    assert entries(db, "acct_2")[0][-1] == (0, "earlier_calls", -3, "alw_1")
