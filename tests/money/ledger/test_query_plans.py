"""What a paid call asks of the tables that grow with every call is found by an index, on both engines."""

import re
import sqlite3
from contextlib import closing

import pytest

from tests.postgres import POSTGRES, terms_of
from tests.quick_files import migrate_copied
from toolserver.money.ledger.operations import Charge, Mint, Reserve, Settle
from toolserver.money.ledger.sql_removed_names import find_months, keep_names
from toolserver.money.ledger.sql_statements import read_statement
from toolserver.money.ledger.sql_tables import apply_operations, note_undelivered
from toolserver.money.ledger.statements import StatementQuery
from toolserver.money.receipts.issue import StoredReceipt
from toolserver.money.receipts.sql_store import find_receipts, store_receipts
from toolserver.sql.connection import is_shared
from toolserver.sql.postgres import PostgresConnection
from toolserver.sql.postgres_migrate import migrate_server

GROWING = ("transfer", "reservation", "packed_receipt", "receipt", "removed_block", "removed_name", "journal")
BUYER, NOW = "b" * 64, 1_800_000_000_000


class Recorder:
    """A connection that explains each statement before it runs it."""

    def __init__(self, db):
        self.db, self.plans = db, {}
        self.shared = is_shared(db)

    in_transaction = True

    def execute(self, sql, parameters=()):
        if sql not in self.plans and sql.split()[0] in ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH"):
            how = "EXPLAIN" if self.shared else "EXPLAIN QUERY PLAN"
            self.plans[sql] = [str(row[-1]) for row in self.db.execute(f"{how} {sql}", parameters)]
        return self.db.execute(sql, parameters)

    def find_scans(self):
        """The statements that read a growing table otherwise than by the values that an index has."""
        find = find_scans_of_server if self.shared else find_scans_of_file
        return [(sql, found) for sql, steps in self.plans.items() if (found := find(steps))]


def find_scans_of_file(steps):
    return [step for step in steps if step.split()[0] == "SCAN" and step.split()[1] in GROWING]


def find_scans_of_server(steps):
    """A small table would be read whole, which our connections avoid: they go through the whole of an index then."""
    nodes = "\n".join(steps).split("->")
    scans = [node for node in nodes if re.search(rf"Scan.* on ({'|'.join(GROWING)})\b", node)]
    return [node for node in scans if "Index Cond" not in node and "Recheck Cond" not in node]


@pytest.fixture(params=["sqlite", POSTGRES])
def db(request, tmp_path):
    if request.param == "sqlite":
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
            migrate_copied(db)
            yield Recorder(db)
    else:
        with closing(PostgresConnection(terms_of(tmp_path))) as db:
            migrate_server(db)
            db.begin()
            yield Recorder(db)
            db.rollback()


def sell(db, *operations):
    outcomes = apply_operations(db, operations, NOW)
    assert not [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    note_undelivered(db, operations, outcomes, NOW)


def test_what_a_sale_asks_is_found_by_an_index(db):
    keep_names(db, {number.to_bytes(16): 202701 for number in range(600)}, are_receipts=True)
    sell(db, Mint(BUYER, 100, "bought", "acct_1"))
    named = [f"call_{NOW:012x}{number:020x}" for number in range(3)]
    old = f"call_{1:012x}{7:020x}"  # it could be in an archive
    sell(db, *(Charge(name, BUYER, 2, "/x", undelivered=True) for name in (*named[:2], old)))
    sell(db, Reserve(named[2], BUYER, 2, "/x", "", NOW + 60_000, undelivered=True))
    sell(db, Settle(named[2], None))
    store_receipts(db, [StoredReceipt(f"rcpt_{name[5:]}", "a" * 64, b"{}", "key", bytes(64), NOW) for name in named])
    assert set(find_receipts(db, [f"rcpt_{named[0][5:]}"])) == {f"rcpt_{named[0][5:]}"}
    assert len(find_months(db, [(7).to_bytes(16), (700).to_bytes(16)])) == 1
    assert len(read_statement(db, "acct_1", StatementQuery(), NOW).entries) == 5
    assert len(db.plans) > 15
    assert db.find_scans() == []


def test_a_scan_would_be_seen(db):
    db.execute("SELECT call_id FROM reservation WHERE endpoint=?", ("/x",)).fetchall()
    assert len(db.find_scans()) == 1, db.plans
