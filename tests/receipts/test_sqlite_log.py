"""The log's tables: they refuse every change, read only the nodes that are asked for, and notice what is missing."""

import sqlite3

import pytest

from tests.receipts.test_log_state import HOUR, MS, SIGN, calls
from toolserver.receipts.log_state import AppendHour, LogForked, LogLease
from toolserver.receipts.sqlite_booked import book_calls, list_booked, read_day
from toolserver.receipts.sqlite_log import append_hour, last_checkpoint, log_size, sign_checkpoint
from toolserver.storage.migrate import migrate


def grow(db, count, hour=HOUR):
    """Book calls and append their hour."""
    book_calls(db, calls(count, hour=hour))
    assert append_hour(db, AppendHour.of(hour, list_booked(db, hour), LogLease("a", MS, MS + 1)))


@pytest.fixture
def db():
    with sqlite3.connect(":memory:", isolation_level=None) as db:
        migrate(db)
        grow(db, 3)
        yield db
    db.close()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE no_charge SET day=''",
        "DELETE FROM no_charge",
        "UPDATE log_node SET level=9",
        "DELETE FROM log_node",
    ],
)
def test_the_database_itself_refuses_to_change_the_log(db, change):
    with pytest.raises(sqlite3.IntegrityError, match="the log is never changed"):
        db.execute(change)


def test_an_hour_is_appended_at_the_end_and_its_sums_added(db):
    grow(db, 1, HOUR + 1)
    assert log_size(db) == 4
    sums = read_day(db, "2027-01-15", 2).sums
    assert {(row.endpoint, row.calls, row.credits) for row in sums} == {("/api/pro/0", 3, 9), ("/api/pro/1", 1, 3)}


def test_a_bucket_has_one_leaf_at_most(db):
    with pytest.raises(sqlite3.IntegrityError, match="no_charge"):
        db.execute("INSERT INTO no_charge SELECT seq + 9, day, entry, at, hour, key FROM no_charge")


def test_an_hour_that_is_in_the_log_is_not_appended_again(db):
    again = AppendHour.of(HOUR, list_booked(db, HOUR), LogLease("a", MS, MS + 1))
    assert not append_hour(db, again)
    assert log_size(db) == 3


@pytest.mark.parametrize(
    "damage",
    [
        ("no_charge_is_never_deleted", "DELETE FROM no_charge WHERE seq=2"),
        ("log_node_is_never_deleted", "DELETE FROM log_node WHERE level=0 AND idx=2"),
        ("log_node_is_never_changed", "UPDATE log_node SET hash=zeroblob(32) WHERE level=0 AND idx=2"),
    ],
)
def test_a_log_that_was_damaged_past_its_guards_is_not_signed_and_keeps_its_checkpoint(db, damage):
    signed = sign_checkpoint(db, SIGN)
    guard, change = damage
    db.execute(f"DROP TRIGGER {guard}")
    db.execute(change)
    with pytest.raises(LogForked):
        sign_checkpoint(db, SIGN)
    assert last_checkpoint(db) == signed


def test_a_log_that_has_grown_is_signed_again(db):
    sign_checkpoint(db, SIGN)
    grow(db, 2, HOUR + 1)
    signed = sign_checkpoint(db, SIGN)
    assert signed.size == 5
    assert last_checkpoint(db) == signed
