"""The rows that a credit and a reversal write, and the rows that nothing may change."""

import json
import sqlite3
from contextlib import closing

import pytest

from tests.money.purchases.parts import NOW, TX, block_hash
from tests.money.purchases.test_store import MS, credit, opened
from toolserver.money.ledger.store import FILE


async def test_a_credit_is_written_with_everything_that_a_dispute_needs(tmp_path):
    async with opened("sqlite", tmp_path) as kept:
        await kept.quote()
        await kept.store.credit_transfer(credit(finality="safe", late=True, memo_public=True))
    row = rows(tmp_path, "SELECT chain_id, block_number, block_hash, block_time, logs, finality FROM tx_credit")
    assert row == [(8453, 100, block_hash(100), (NOW + 60) * 1000, json.dumps([0]), "safe")]
    assert rows(tmp_path, "SELECT late, memo_public, credited_at, final_at FROM tx_credit") == [(1, 1, MS, None)]


async def test_a_reversal_is_written_with_the_block_that_is_gone(tmp_path):
    async with opened("sqlite", tmp_path) as kept:
        await kept.quote()
        await kept.store.credit_transfer(credit())
        await kept.store.reverse_credit(TX, MS + 1)
    columns = "tx_hash, purchase, block_number, block_hash, amount, credits, taken_back, lost, at"
    written = (TX, 1, 100, block_hash(100), 5_000_000, 250, 250, 0, MS + 1)
    assert rows(tmp_path, f"SELECT {columns} FROM tx_reversal") == [written]
    assert rows(tmp_path, "SELECT count(*) FROM tx_credit") == [(0,)]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM purchase",
        "UPDATE purchase SET address=randomblob(20)",
        "UPDATE purchase SET memo_hash=randomblob(32)",
        "UPDATE purchase SET credits=credits+1",
        "UPDATE purchase SET hd_index=NULL",
        "DELETE FROM tx_reversal",
        "UPDATE tx_reversal SET lost=1",
    ],
)
async def test_addresses_and_reversals_are_kept_for_ever(tmp_path, sql):
    async with opened("sqlite", tmp_path) as kept:
        await kept.quote()
        await kept.store.credit_transfer(credit())
        await kept.store.reverse_credit(TX, MS)
    with pytest.raises(sqlite3.IntegrityError, match=r"never|keeps"):
        rows(tmp_path, sql)


def rows(folder, sql):
    with closing(sqlite3.connect(folder / FILE)) as db, db:
        return db.execute(sql).fetchall()
