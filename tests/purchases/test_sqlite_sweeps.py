"""Sweeps as they are kept: noted before they are sent, counted when the chain has them, and never changed after."""

import sqlite3

import pytest

from tests.purchases.test_transfer_authorization import ONE, PAYER
from toolserver.ledger.sqlite import FILE
from toolserver.purchases.sqlite_sweeps import read_swept, record_moved, record_sending
from toolserver.storage.errors import StorageFailed
from toolserver.storage.group_commit import durable

TWO = ONE._replace(nonce=bytes(32), amount=5)


async def test_a_sweep_counts_when_the_chain_has_it_and_once(tmp_path):
    async with durable(tmp_path / FILE) as file:
        await record_sending(file, ONE, bytes([1]) * 32, 10)
        assert read_swept(tmp_path / FILE) == {}
        await record_sending(file, ONE, bytes([2]) * 32, 20)
        for one, tx in ((ONE, None), (TWO, None)):
            await record_sending(file, one, tx, 30)
            await record_moved(file, one, 40)
            await record_moved(file, one, 50)
        rows = await file.read(lambda db: db.execute("SELECT amount, tx_hash, begun_at, done_at FROM sweep").fetchall())
        assert sorted(rows) == [(5, None, 30, 40), (7, bytes([2]) * 32, 10, 40)]
        assert read_swept(tmp_path / FILE) == {PAYER: 12}


@pytest.mark.parametrize("sql", ["DELETE FROM sweep", "UPDATE sweep SET amount=1", "UPDATE sweep SET done_at=1"])
async def test_what_was_moved_is_not_rewritten(tmp_path, sql):
    async with durable(tmp_path / FILE) as file:
        await record_sending(file, ONE, None, 10)
        await record_moved(file, ONE, 40)
        with pytest.raises((StorageFailed, sqlite3.IntegrityError)):
            await file.alone(lambda db: db.execute(sql) and None)
