"""A ledger described by its numbers, and two copies compared: on a file, since both engines are read alike."""

import sqlite3
from contextlib import closing

import pytest

from tests.money.ledger.ledgers import token
from tests.money.receipts.stores import append_hours
from toolserver.money.ledger.store import FILE, open_ledger
from toolserver.money.receipts.log import BookedCall
from toolserver.money.receipts.sql_store import SqlReceiptStore, book_calls, read_log_state
from toolserver.serving.database_check import check_place, find_differences, read_facts
from toolserver.sql.ledger_place import read_place

HOUR = 500_000


@pytest.fixture
async def path(tmp_path):
    """A ledger with a token, two charges, and a log of one leaf."""
    async with open_ledger(tmp_path / FILE) as ledger:
        await ledger.mint(token(1), 10, cause="bought")
        for number in (1, 2):
            await ledger.charge(f"c{number}", token(1), 3, endpoint="/x")
        calls = [BookedCall(HOUR, bytes(32), "stale_data", "/x", 3, None, HOUR * 3_600_000)]

        def book(db):
            book_calls(db, calls)

        await ledger.file.alone(book)
        await append_hours(SqlReceiptStore(ledger.file), (HOUR + 2) * 3600)
    return tmp_path / FILE


async def test_a_sound_ledger_is_known_by_its_digests_sums_and_root(path):
    found = await check_place(path)
    assert (found["ok"], found["engine"], found["breaches"]) == (True, "SQLite", [])
    assert (found["issued"], found["charged"], found["spendable"]) == (10, 6, 4)
    assert found["accounts"]["token"] == [10, 6, 0]
    assert found["log"] == {"size": 1, "root": read_log_state(path).root.hex()}
    assert found["tables"]["reservation"]["rows"] == 2
    assert len(found["tables"]["transfer"]["sha256"]) == 64
    assert "purchase" not in found["tables"], "which is empty"


async def test_a_row_that_somebody_else_wrote_and_a_broken_rule_are_found(path):
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE account SET credits = 99 WHERE kind = 'token'")
    found = await check_place(path)
    assert found["ok"] is False
    rules = {breach["rule"] for breach in found["breaches"]}
    assert {"every row was written by this service", "an account is the sum of its transfers"} <= rules


async def test_copies_that_are_the_same_have_no_differences(path, tmp_path):
    facts = read_place(path, read_facts)
    assert list(find_differences(facts, facts._replace(engine="PostgreSQL"))) == []


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (
            "UPDATE reservation SET state = 'reversed', reason = 'x' WHERE call_id = 'c1'",
            "reservation: 2 rows, but with different contents",
        ),
        ("INSERT INTO account VALUES(77, 'token', 5, 0, 0)", "account: 4 rows and 5"),
        ("INSERT INTO account VALUES(77, 'token', 5, 0, 0)", "sums of accounts"),
        ("INSERT INTO account VALUES(77, 'token', 5, 0, 0)", "a token has one account and an account one token"),
    ],
)
async def test_every_difference_of_a_copy_is_said(path, sql, said):
    before = read_place(path, read_facts)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(sql)
    found = list(find_differences(before, read_place(path, read_facts)))
    assert any(line.startswith(said) for line in found), found
