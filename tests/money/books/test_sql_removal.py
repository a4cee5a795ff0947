"""One group of rows that leaves: whole calls, what they came to, and nothing that is younger than the horizon."""

import sqlite3
from contextlib import closing

import pytest

from toolserver.money.books.sql_months import DAY_MS, remove_calls, remove_receipts, remove_uncharged
from toolserver.sql.migrate import migrate

END = 100 * DAY_MS


@pytest.fixture
def db():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db)
        db.execute("INSERT INTO account(id, kind, credits) VALUES (4, 'token', 100)")
        db.execute("INSERT INTO transfer VALUES (1, 'posted', 1, 4, 100, NULL, 'bought', 0)")
        db.execute("INSERT INTO closed_month VALUES ('1970-04', ?, 0, '', 0, 1)", (END,))
        yield db


def call(db, name, state, *moves):
    """A call of 3 credits with its transfers, each a kind and its time."""
    first = db.execute("SELECT max(seq) + 1 FROM transfer").fetchone()[0]
    for number, (kind, at) in enumerate(moves):
        debit, credit = (2, 4) if kind == "reverse" else (4, 2)
        row = (first + number, kind, debit, credit, 3, first if number else None, None, at)
        db.execute("INSERT INTO transfer VALUES (?,?,?,?,?,?,?,?)", row)
    reason, settled = (None if state in ("open", "posted") else "5xx"), (None if state == "open" else moves[-1][1])
    values = (name, state, reason, first, settled)
    db.execute("INSERT INTO reservation VALUES (?, 4, 3, ?, ?, '/x', '', ?, 0, ?, NULL, NULL)", values)


def left(db):
    return [name for (name,) in db.execute("SELECT call_id FROM reservation ORDER BY transfer")]


def test_calls_leave_whole_with_what_they_came_to(db):
    call(db, "charged", "posted", ("posted", 1))
    call(db, "settled", "posted", ("pending", 1), ("post", 2))
    call(db, "released", "voided", ("pending", 1), ("void", 2))
    call(db, "back", "reversed", ("pending", 1), ("post", 2), ("reverse", 3))
    call(db, "at once back", "reversed", ("posted", 1), ("reverse", END - 1))
    call(db, "last", "posted", ("posted", END - 1))

    step = remove_calls(db, 0, END, 10)

    assert left(db) == ["last"]
    assert db.execute("SELECT seq FROM transfer ORDER BY seq").fetchall() == [(1,), (12,)]
    assert db.execute("SELECT * FROM removed_calls").fetchall() == [(4, "", 12, 6, 10)]
    assert step == (12, 5 + 10)
    assert remove_calls(db, 12, END, 10) == (None, 0)


@pytest.mark.parametrize(
    ("state", "moves"),
    [
        ("open", [("pending", 1)]),
        ("posted", [("pending", 1), ("post", END)]),
        ("reversed", [("posted", 1), ("reverse", END)]),
        ("posted", [("posted", END)]),
        ("posted", [("pending", END), ("post", 2)]),
    ],
)
def test_a_call_that_went_on_behind_the_horizon_stays(db, state, moves):
    call(db, "it", state, *moves)
    call(db, "last", "posted", ("posted", END + 1))
    assert remove_calls(db, 0, END, 10).removed == 0
    assert left(db) == ["it", "last"]


def test_groups_go_on_behind_each_other_and_end_a_day_behind_the_horizon(db):
    for number in range(5):
        call(db, f"c{number}", "posted", ("posted", number))
    call(db, "young", "posted", ("posted", END + DAY_MS))
    steps, after = [], 0
    while after is not None:
        after, removed = remove_calls(db, after, END, 2)
        steps.append((after, removed))
    assert steps == [(3, 4), (5, 4), (7, 2), (None, 0)]
    assert left(db) == ["young"]


def test_receipts_leave_by_their_time(db):
    for number, at in enumerate((1, END - 1, END, END + DAY_MS)):
        row = (f"rcpt_{number}", "a" * 64, b"{}", "key", b"", at)
        db.execute("INSERT INTO receipt(id, owner, core, key, signature, at) VALUES (?,?,?,?,?,?)", row)
    assert remove_receipts(db, 0, END, 2) == (2, 2)
    assert remove_receipts(db, 2, END, 2) == (4, 0)
    assert remove_receipts(db, 3, END, 2) == (None, 0)


def test_uncharged_calls_leave_by_their_hour(db):
    for hour in (1, 2, END // 3_600_000):
        row = (hour, bytes(32), "5xx", "/x", 1, None, 0)
        columns = "hour, key, reason, endpoint, credits, receipt, at"
        db.execute(f"INSERT INTO uncharged_call({columns}) VALUES (?,?,?,?,?,?,?)", row)
    assert remove_uncharged(db, 0, END, 1) == (0, 1)
    assert remove_uncharged(db, 0, END, 10) == (0, 1)
    assert remove_uncharged(db, 0, END, 10) == (None, 0)
    assert db.execute("SELECT count(*) FROM uncharged_call").fetchone() == (1,)
