"""Sweeps as they are kept: noted before they are sent, counted when the chain has them, and never changed after."""

import sqlite3

import pytest

from tests.money.ledger.ledgers import opened_file
from tests.money.purchases.test_transfer_authorization import ONE, PAYER
from tests.postgres import POSTGRES
from toolserver.money.purchases.sql_sweeps import record_moved, record_sending, sum_swept
from toolserver.sql.errors import StorageFailed

BOTH = pytest.mark.parametrize("kind", ["sqlite", POSTGRES])
TWO = ONE._replace(nonce=bytes(32), amount=5)


@BOTH
async def test_a_sweep_counts_when_the_chain_has_it_and_once(kind, tmp_path):
    async with opened_file(kind, tmp_path) as file:
        await record_sending(file, ONE, bytes([1]) * 32, 10)
        assert await file.apart(sum_swept) == {}
        await record_sending(file, ONE, bytes([2]) * 32, 20)
        for one, tx in ((ONE, None), (TWO, None)):
            await record_sending(file, one, tx, 30)
            await record_moved(file, one, 40)
            await record_moved(file, one, 50)
        rows = await file.read(lambda db: db.execute("SELECT amount, tx_hash, begun_at, done_at FROM sweep").fetchall())
        assert sorted(rows) == [(5, None, 30, 40), (7, bytes([2]) * 32, 10, 40)]
        assert await file.apart(sum_swept) == {PAYER: 12}


@BOTH
@pytest.mark.parametrize("sql", ["DELETE FROM sweep", "UPDATE sweep SET amount=1", "UPDATE sweep SET done_at=1"])
async def test_what_was_moved_is_not_rewritten(kind, tmp_path, sql):
    async with opened_file(kind, tmp_path) as file:
        await record_sending(file, ONE, None, 10)
        await record_moved(file, ONE, 40)
        with pytest.raises((StorageFailed, sqlite3.IntegrityError)):
            await file.alone(lambda db: db.execute(sql) and None)
