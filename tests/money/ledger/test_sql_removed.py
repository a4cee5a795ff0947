"""What removed calls came to, of all accounts, of one, and of one allowance."""

import sqlite3
from contextlib import closing

import pytest

from tests.quick_files import migrate_copied
from toolserver.money.ledger.sql_removed import read_horizon, read_removed, read_removed_of


@pytest.fixture
def db():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate_copied(db)
        db.execute("INSERT INTO account(id, kind) VALUES (4, 'token'), (5, 'token')")
        yield db


def test_nothing_was_removed_from_a_new_ledger(db):
    assert (read_horizon(db), read_removed(db), read_removed_of(db, 4, None)) == (0, (0, 0, 0), (0, 0, 0))


def test_an_account_has_what_its_token_and_its_allowances_used(db):
    rows = [(4, "", 10, 2, 5), (4, "child", 3, 0, 1), (5, "", 7, 7, 4)]
    db.executemany("INSERT INTO removed_calls VALUES (?,?,?,?,?)", rows)

    assert read_removed(db) == (20, 9, 10)
    assert (read_removed_of(db, 4, None), read_removed_of(db, 4, "child")) == ((13, 2, 6), (3, 0, 1))
    assert read_removed_of(db, 4, None).used == 11


def test_the_horizon_is_the_end_of_the_last_month_that_was_released(db):
    for number, released in ((1, 7), (2, 8), (3, None)):
        db.execute("INSERT INTO closed_month VALUES (?, ?, 0, '', 0, ?)", (f"2027-0{number}", number * 100, released))
    assert read_horizon(db) == 200
