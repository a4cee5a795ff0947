"""The log's tables: they refuse every change, read only the nodes that are asked for, and notice what is missing."""

import sqlite3
from contextlib import closing

import pytest

from tests.money.receipts.test_log_state import HOUR, MS, SIGN, calls
from tests.money.receipts.test_merkle import consistent, mth, root_from_path, unbundled
from tests.quick_files import migrate_copied
from toolserver.money.receipts.log import AppendHour, LogForked, LogLease, LogMark
from toolserver.money.receipts.merkle import Tile
from toolserver.money.receipts.sql_store import (
    append_hour,
    book_calls,
    find_leaf,
    last_checkpoint,
    list_booked,
    log_size,
    log_state_of,
    prove_consistency,
    prove_inclusion,
    read_day,
    read_tile,
    sign_checkpoint,
)


def grow(db, count, hour=HOUR):
    """Book calls and append their hour."""
    book_calls(db, calls(count, hour=hour))
    assert append_hour(db, AppendHour.of(hour, list_booked(db, hour), LogLease("a", MS, MS + 1)))


@pytest.fixture
def db():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate_copied(db)
        grow(db, 3)
        yield db


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


def test_an_hour_is_not_appended_by_one_without_the_lease_or_when_more_was_booked_in_it(db):
    book_calls(db, calls(2, hour=HOUR + 1))
    booked = list_booked(db, HOUR + 1)
    for refused in (
        AppendHour.of(HOUR + 1, booked, LogLease("b", MS, MS + 9)),  # the lease is a's until MS + 1
        AppendHour.of(HOUR + 1, booked[:1], LogLease("a", MS, MS + 9)),
        AppendHour.of(HOUR - 1, [], LogLease("a", MS, MS + 9)),
    ):
        assert not append_hour(db, refused)
        assert log_size(db) == 3
    assert append_hour(db, AppendHour.of(HOUR + 1, booked, LogLease("b", MS + 2, MS + 9)))
    assert log_size(db) == 5


def test_leaves_tiles_and_proofs_reach_as_far_as_the_log(db):
    leaves = [find_leaf(db, index) for index in range(3)]
    assert (find_leaf(db, 3), find_leaf(db, -1), log_state_of(db)) == (None, None, LogMark(3, mth(leaves)))
    assert log_state_of(db, 2) == LogMark(2, mth(leaves[:2]))
    for index, size in ((0, 1), (0, 3), (2, 3)):
        assert root_from_path(leaves[index], index, size, prove_inclusion(db, index, size)) == mth(leaves[:size])
    assert [prove_inclusion(db, index, size) for index, size in ((3, 3), (-1, 3), (0, 4), (0, 0))] == [None] * 4
    assert consistent(2, 3, mth(leaves[:2]), mth(leaves), prove_consistency(db, 2, 3))
    assert prove_consistency(db, 3, 3) == []
    assert [prove_consistency(db, old, new) for old, new in ((0, 3), (3, 2), (3, 4))] == [None] * 3
    assert unbundled(read_tile(db, Tile(None, 0, 3))) == leaves
    assert unbundled(read_tile(db, Tile(None, 0, 2))) == leaves[:2]
    assert len(read_tile(db, Tile(0, 0, 3))) == 3 * 32
    assert [read_tile(db, tile) for tile in (Tile(None, 0, 4), Tile(0, 0, 4))] == [None] * 2


def test_an_empty_log_has_no_leaf_and_no_checkpoint_and_can_be_signed():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate_copied(db)
        assert (log_size(db), last_checkpoint(db), find_leaf(db, 0)) == (0, None, None)
        assert sign_checkpoint(db, SIGN).size == 0
        assert last_checkpoint(db) == sign_checkpoint(db, SIGN)
