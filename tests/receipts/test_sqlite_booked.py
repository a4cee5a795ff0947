"""The table of booked calls refuses every change, and what is read of it is cheap while it grows."""

import sqlite3
from contextlib import closing

import pytest

from tests.receipts.test_log_state import HOUR, calls
from tests.receipts.test_sqlite_log import grow
from toolserver.receipts.log_buckets import NOT_YET
from toolserver.receipts.sqlite_booked import (
    book_calls,
    count_booked,
    find_bucket,
    first_hour,
    last_hour,
    list_booked,
    list_days,
    list_hours,
    read_day,
)
from toolserver.storage.migrate import migrate


@pytest.fixture
def db():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db)
        yield db


@pytest.mark.parametrize("change", ["UPDATE uncharged_call SET credits=0", "DELETE FROM uncharged_call"])
def test_the_database_itself_refuses_to_change_what_was_booked(db, change):
    book_calls(db, calls(3))
    with pytest.raises(sqlite3.IntegrityError, match="an uncharged call is never"):
        db.execute(change)


def test_what_was_booked_is_read_as_it_was_given(db):
    given = [*calls(2), calls(1)[0]._replace(receipt=bytes(32), hour=HOUR + 1)]
    book_calls(db, given)
    assert list_booked(db, HOUR) + list_booked(db, HOUR + 1) == given
    assert [count_booked(db, hour) for hour in (HOUR - 1, HOUR, HOUR + 1)] == [0, 2, 1]
    assert find_bucket(db, HOUR + 1, given[2].key) == (None, [bytes(32)])


def test_hours_wait_until_they_are_in_the_log(db):
    assert (last_hour(db), list_hours(db, HOUR + 9)) == (NOT_YET, [])
    book_calls(db, calls(1, hour=HOUR + 1))
    grow(db, 2)
    assert (last_hour(db), list_hours(db, HOUR + 9), list_hours(db, HOUR + 1)) == (HOUR, [HOUR + 1], [])


def test_the_days_of_open_hours_count_with_those_in_the_log(db):
    grow(db, 2)
    book_calls(db, calls(1, hour=HOUR + 1))
    book_calls(db, calls(3, hour=HOUR + 24))
    assert list_days(db, 5) == [("2027-01-16", 3), ("2027-01-15", 3)]
    assert read_day(db, "2027-01-16", 5).waiting == 4


@pytest.mark.parametrize(
    ("sql", "needs"),
    [
        ("SELECT max(hour) FROM no_charge WHERE hour IS NOT NULL", "no_charge_by_bucket"),
        ("SELECT DISTINCT hour FROM uncharged_call WHERE hour > 1 ORDER BY hour", "uncharged_call_by_bucket"),
        ("SELECT receipt FROM uncharged_call WHERE hour=1 AND key=x'00'", "uncharged_call_by_bucket"),
    ],
)  # fmt: skip
def test_what_every_call_and_pass_asks_is_answered_from_an_index(db, sql, needs):
    plan = " ".join(row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}"))
    assert needs in plan
    assert not plan.startswith("SCAN uncharged_call ")


def test_what_was_removed_is_not_known_and_its_leaf_is(db):
    grow(db, 2)
    key = calls(1)[0].key
    db.execute("INSERT INTO closed_month VALUES ('2027-01', ?, 0, '', 0, 1)", ((HOUR + 1) * 3_600_000,))

    assert first_hour(db) == HOUR + 1
    assert find_bucket(db, HOUR, key).receipts is None
    assert find_bucket(db, HOUR, list_booked(db, HOUR)[0].key).seq is not None
    assert find_bucket(db, HOUR + 1, key) == (None, [])
