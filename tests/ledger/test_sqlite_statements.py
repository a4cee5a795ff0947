"""A statement reads the rows of its own account, however many others there are."""

import sqlite3
from contextlib import closing

import pytest

from toolserver.ledger import sqlite_statements
from toolserver.storage.migrate import migrate

ASKED = {"account": 9, "before": 2**62, "since": 0, "until": 2**62, "limit": 11}


@pytest.mark.parametrize("name", ["_CALLS", "_REVERSALS", "_INCOME", "_TAKEN"])
def test_no_query_scans_a_table_or_sorts(name):
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db)
        plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {getattr(sqlite_statements, name)}", ASKED)]

    assert not [step for step in plan if step.startswith("SCAN") or "TEMP B-TREE" in step], plan
