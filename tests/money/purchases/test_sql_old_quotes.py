"""Old quotes in SQLite: what the file refuses, what a row costs, and what a restored backup gives out."""

import sqlite3
from contextlib import closing

import pytest

from tests.money.purchases.test_store import MS, credit, opened
from toolserver.money.ledger.store import FILE


@pytest.fixture
async def file(tmp_path):
    """A ledger's file with one quote aside, one unpaid and one paid."""
    async with opened("sqlite", tmp_path) as kept:
        for number in range(3):
            await kept.quote(number, address=bytes([number]) * 20, expires_at=MS + number)
        await kept.store.credit_transfer(credit(3))
        assert await kept.store.put_quotes_aside(MS + 1, 9) == 1
    return tmp_path / FILE


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM old_quote",
        "UPDATE old_quote SET amount=1",
        "DELETE FROM purchase WHERE state='quoted'",
        "DELETE FROM purchase WHERE state='credited'",
        "INSERT INTO old_quote SELECT memo_hash, id, randomblob(20), hd_index, amount, credits, challenge, created_at,"
        " expires_at FROM purchase WHERE state='quoted'; DELETE FROM purchase WHERE state='quoted'",
    ],
)
async def test_a_quote_leaves_neither_table_but_for_the_other(file, sql):
    with (
        closing(sqlite3.connect(file)) as db,
        db,
        pytest.raises(sqlite3.IntegrityError, match=r"never deleted|keeps its terms"),
    ):
        db.executescript(f"BEGIN; {sql}; COMMIT")


async def test_what_was_put_aside_is_searched_by_an_index(file):
    with closing(sqlite3.connect(file)) as db, db:
        for sql, index in (
            ("SELECT 1 FROM old_quote WHERE memo_hash=x'00'", "PRIMARY KEY"),
            (
                "SELECT 1 FROM purchase WHERE state='quoted' AND expires_at<1 ORDER BY expires_at LIMIT 5",
                "purchase_unpaid",
            ),
        ):
            assert index in str(db.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall())
