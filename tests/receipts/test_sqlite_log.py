"""The log's tables: they refuse every change, read only the nodes that are asked for, and notice what is missing."""

import sqlite3

import pytest

from tests.receipts.test_log_state import NOW, SIGN, events
from toolserver.receipts.log_state import LogForked, UnchargedCall
from toolserver.receipts.sqlite_log import append_leaves, last_checkpoint, log_size, read_day, sign_checkpoint
from toolserver.storage.migrate import migrate


@pytest.fixture
def db():
    with sqlite3.connect(":memory:", isolation_level=None) as db:
        migrate(db)
        append_leaves(db, events(3), 0)
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


def test_leaves_are_appended_at_the_end_and_their_sums_added(db):
    append_leaves(db, [UnchargedCall(NOW, "5xx", "/api/pro/1", 4)], 3)
    assert log_size(db) == 4
    sums, entries = read_day(db, "2027-01-15", 2)
    assert {(row.endpoint, row.calls, row.credits) for row in sums} == {("/api/pro/0", 2, 6), ("/api/pro/1", 2, 7)}
    assert len(entries) == 2


def test_a_leaf_is_never_written_over(db):
    with pytest.raises(sqlite3.IntegrityError):
        append_leaves(db, events(1), 2)


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
    append_leaves(db, events(2), 3)
    signed = sign_checkpoint(db, SIGN)
    assert signed.size == 5
    assert last_checkpoint(db) == signed
