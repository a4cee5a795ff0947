"""Many rows in few statements, in their order."""

import sqlite3
from contextlib import closing

import pytest

from toolserver.sql.connection import insert


@pytest.fixture
def db():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute("CREATE TABLE note(number INTEGER PRIMARY KEY, word TEXT)")
        yield db


@pytest.mark.parametrize(("count", "statements"), [(0, 0), (1, 1), (7, 3), (64, 1), (131, 4)])
def test_every_row_is_written_in_few_statements(db, count, statements):
    seen = []
    db.set_trace_callback(seen.append)
    rows = [(number, f"w{number}") for number in range(count)]
    insert(db, "INSERT INTO note VALUES", rows)
    db.set_trace_callback(None)
    assert db.execute("SELECT * FROM note ORDER BY number").fetchall() == rows
    assert len(seen) == statements


def test_a_conflict_is_handled_as_told(db):
    insert(db, "INSERT INTO note VALUES", [(1, "a"), (2, "b")])
    insert(db, "INSERT INTO note VALUES", [(2, "c"), (3, "d")], "ON CONFLICT DO UPDATE SET word=excluded.word")
    assert [word for _, word in db.execute("SELECT * FROM note ORDER BY number")] == ["a", "c", "d"]
