"""A statement reads the rows of its own account, however many others there are."""

import sqlite3
from contextlib import closing

import pytest

from toolserver.ledger import sqlite_statements
from toolserver.ledger.statements import StatementQuery
from toolserver.storage.migrate import migrate

ASKED = {"account": 9, "before": 2**62, "since": 0, "until": 2**62, "limit": 11}


@pytest.mark.parametrize("name", ["_CALLS", "_REVERSALS", "_INCOME", "_TAKEN"])
def test_no_query_scans_a_table_or_sorts(name):
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db)
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {getattr(sqlite_statements, name)}", ASKED)]

    assert not [step for step in plan if step.startswith("SCAN") or "TEMP B-TREE" in step], plan


def test_removed_calls_are_one_entry_at_the_end_of_their_time():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db)
        db.execute("INSERT INTO account(id, kind, credits, debits) VALUES (4, 'token', 20, 5)")
        db.execute("INSERT INTO token(hash, account, ref, issued_at) VALUES (?, 4, 'acct_1', 0)", ("a" * 64,))
        db.execute("INSERT INTO transfer VALUES (1, 'posted', 1, 4, 20, NULL, 'bought', 10)")
        db.execute("INSERT INTO closed_month VALUES ('1970-01', 100, 0, '', 0, 1)")
        db.execute("INSERT INTO removed_calls VALUES (4, '', 6, 1, 3)")

        def ask(**wanted):
            page = sqlite_statements.read_statement(db, "acct_1", StatementQuery(**wanted), 0)
            return [(entry.seq, entry.at, entry.kind, entry.credits) for entry in page.entries], page.next_before

        bought, earlier = (1, 10, "credit", 20), (0, 99, "earlier_calls", -5)
        assert ask() == ([bought, earlier], None)
        assert ask(limit=1) == ([bought], 1)
        assert ask(limit=1, before=1) == ([earlier], None)
        assert ask(before=0) == ([], None)
        assert (ask(since=100), ask(since=99)[0], ask(until=99)[0]) == (([], None), [earlier], [bought])
