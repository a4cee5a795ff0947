"""The table of booked calls refuses every change, and what is read of it is cheap while it grows."""

import json
import sqlite3
from contextlib import closing

import pytest

from tests.money.receipts.test_log_state import HOUR, MS, calls
from tests.money.receipts.test_sql_log import grow
from tests.quick_files import migrate_copied
from toolserver.money.receipts.log import NOT_YET, AppendHour, LogLease
from toolserver.money.receipts.sql_store import (
    append_hour,
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


@pytest.fixture
def db():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate_copied(db)
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


def test_a_day_shows_its_last_calls_the_newest_first_whether_their_hour_is_in_the_log_or_not(db):
    def at(late):
        return calls(1, hour=HOUR + late)[0]._replace(at=late)

    book_calls(db, [at(-9), at(0)._replace(at=1), at(0)._replace(at=2)])
    assert append_hour(db, AppendHour.of(HOUR, list_booked(db, HOUR), LogLease("a", MS, MS + 1)))
    book_calls(db, [at(3), at(15)._replace(at=15), at(16), at(3)._replace(at=4)])

    def shown(most):
        return [(call.seq, call.at) for call in read_day(db, "2027-01-15", most).calls]

    whole = [(None, 15), (None, 4), (None, 3), (0, 2), (0, 1)]
    assert shown(5) == whole
    assert shown(9)[:5] == whole
    assert [shown(most) for most in (0, 1, 3, 4)] == [whole[:most] for most in (0, 1, 3, 4)]


def test_the_sums_of_a_day_are_those_of_the_log_and_of_its_open_hours(db):
    grow(db, 3)
    more = [
        call._replace(credits=5, reason=reason) for call in calls(1, hour=HOUR + 1) for reason in ("5xx", "stale_data")
    ]
    book_calls(db, [*more, *calls(1, hour=HOUR + 16), *calls(1, hour=HOUR + 15)])
    sums, _, waiting = read_day(db, "2027-01-15", 5)
    assert sorted(sums) == [
        ("2027-01-15", "5xx", "/api/pro/0", 2 + 1 + 1, 6 + 5 + 3),
        ("2027-01-15", "5xx", "/api/pro/1", 1, 3),
        ("2027-01-15", "stale_data", "/api/pro/0", 1, 5),
    ]
    assert waiting == 4
    assert [(row.day, row.calls) for row in read_day(db, "2027-01-16", 5).sums] == [("2027-01-16", 1)]
    assert list_days(db, 1) == [("2027-01-16", 1)]
    assert list_days(db, 2) == [("2027-01-16", 1), ("2027-01-15", 6)]


def test_calls_with_a_leaf_of_their_own_are_shown_after_the_others(db):
    for seq, digest in ((0, None), (1, "ab" * 32)):
        leaf = {"reason": "5xx", "endpoint": "/old", "credits": 7, "receipt_sha256": digest}
        row = (seq, "2027-01-15", json.dumps(leaf).encode(), 10 + seq)
        db.execute("INSERT INTO no_charge(seq, day, entry, at) VALUES(?,?,?,?)", row)
    book_calls(db, calls(1))
    new = (None, MS, "5xx", "/api/pro/0", 3, None)
    old = [(1, 11, "5xx", "/old", 7, bytes.fromhex("ab" * 32)), (0, 10, "5xx", "/old", 7, None)]
    assert read_day(db, "2027-01-15", 3).calls == [new, *old]
    assert read_day(db, "2027-01-15", 2).calls == [new, old[0]]
    assert last_hour(db) == NOT_YET


def test_an_hour_before_the_first_that_is_there_has_neither_leaf_nor_receipts(db):
    assert first_hour(db) == 0
    db.execute("INSERT INTO closed_month VALUES ('2027-01', ?, 0, '', 0, 1)", ((HOUR + 1) * 3_600_000 - 1,))
    assert first_hour(db) == HOUR
    assert find_bucket(db, HOUR - 1, bytes(32)) == (None, None)
    assert find_bucket(db, HOUR, bytes(32)) == (None, [])
