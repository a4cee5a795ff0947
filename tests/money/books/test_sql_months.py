"""The table of closed months refuses what is not the next one, and what is written to it later is found."""

import sqlite3
from contextlib import closing

import pytest

from tests.money.receipts.test_month_statement import KEY, statement
from tests.quick_files import migrate_copied
from toolserver.money.books.sql_months import (
    MonthRefused,
    find_closed,
    find_month_differences,
    list_closed,
    release_month,
    store_closed,
)
from toolserver.money.receipts.month_statement import CLOSING, OPENING, MonthSpan, RowDigest, parse_month, sign_month

TABLES = {name: RowDigest(1, "a" * 64) for name in (OPENING, CLOSING, "transfer")}


def month(number, previous=None):
    span = MonthSpan.named(f"2027-{number:02}")
    named = {"month": span.name, "since": span.since, "until": span.until, "closed_at": span.until + 1}
    return parse_month(sign_month(statement(**named, tables=TABLES, previous=previous), KEY))


FIRST = month(1)
SECOND = month(2, FIRST.sha256)


@pytest.fixture
def db():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate_copied(db)
        store_closed(db, FIRST)
        store_closed(db, SECOND)
        yield db


def test_months_are_stored_in_their_order(db):
    assert [closed.month for closed in list_closed(db)] == ["2027-01", "2027-02"]
    assert find_closed(db, MonthSpan.named("2027-02")).statement == SECOND.text
    assert find_closed(db, MonthSpan.named("2027-03")) is None
    for wrong in (FIRST, SECOND, month(3), month(4, FIRST.sha256)):
        with pytest.raises(MonthRefused):
            store_closed(db, wrong)


def test_a_month_is_released_once(db):
    release_month(db, "2027-01", 7)
    release_month(db, "2027-01", 8)
    assert [closed.released_at for closed in list_closed(db)] == [7, None]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM closed_month",
        "UPDATE closed_month SET transfers=2",
        "UPDATE closed_month SET statement=''",
        "UPDATE closed_month SET released_at=NULL WHERE month='2027-01'",
    ],
)
def test_a_closed_month_keeps_its_terms(db, sql):
    release_month(db, "2027-01", 7)
    with pytest.raises(sqlite3.IntegrityError, match="closed month"):
        db.execute(sql)


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT 1", []),
        ("UPDATE closed_month SET transfers=2 WHERE month='2027-02'", ["the statement differs from its row"]),
        ("DELETE FROM closed_month WHERE month='2027-01'", ["does not name the month before"]),
        ("UPDATE closed_month SET statement='x' WHERE month='2027-02'", ["not a month statement"]),
    ],
)
def test_what_somebody_rewrote_is_found(db, sql, found):
    for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='trigger'").fetchall():
        db.execute(f"DROP TRIGGER {name}")
    db.execute("UPDATE closed_month SET released_at=1")  # so that their rows, of which there are none, are not compared
    db.execute(sql)
    differences = list(find_month_differences(db, {KEY.kid: KEY}.get))
    assert len(differences) == len(found)
    assert all(part in text for part, text in zip(found, differences, strict=True))


def test_a_month_that_an_unknown_key_signed_is_found(db):
    assert len(list(find_month_differences(db, lambda kid: None))) == 2
