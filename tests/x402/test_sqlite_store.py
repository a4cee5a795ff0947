"""What only the store in SQLite can show: a whole transaction or none of it, and rows that nothing may change."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.x402.test_store import BEGUN, CREDIT, HASH, HASH2, ID, MS, TX, Stored
from toolserver.ledger.sqlite import FILE, open_ledger
from toolserver.storage.errors import StorageFailed
from toolserver.x402.sqlite_store import SqlitePaymentStore


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Stored]:
    async with open_ledger(folder / FILE) as ledger:
        yield Stored(SqlitePaymentStore(ledger.file), ledger)
        assert await ledger.check() == []


def run(folder: Path, sql: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(folder / FILE) as db:
        return db.execute(sql).fetchall()


BREAK = "CREATE TRIGGER broken BEFORE UPDATE OF token ON x402_payment BEGIN SELECT RAISE(ABORT, 'broken'); END"


async def test_a_credit_that_breaks_half_way_leaves_nothing(tmp_path):
    async with opened(tmp_path) as stored:
        await stored.store.begin_payment(BEGUN)
        run(tmp_path, BREAK)
        with pytest.raises(StorageFailed, match="broken"):
            await stored.store.credit_topup(CREDIT)
        assert (await stored.store.find_payment(ID)).state == "settling"
        assert run(tmp_path, "SELECT (SELECT count(*) FROM token), (SELECT count(*) FROM transfer)") == [(0, 0)]


async def test_a_replacement_that_breaks_half_way_leaves_the_old_token(tmp_path):
    async with opened(tmp_path) as stored:
        await stored.credited()
        run(tmp_path, BREAK)
        with pytest.raises(StorageFailed, match="broken"):
            await stored.store.replace_token(HASH, CREDIT._replace(token=HASH2))
        assert (await stored.store.find_payment(ID)).token == HASH
        assert run(tmp_path, "SELECT hash, revoked_at FROM token") == [(HASH, None)]


async def test_what_was_written_is_there_when_the_file_is_opened_again(tmp_path):
    async with opened(tmp_path) as stored:
        await stored.credited()
        before = await stored.store.find_payment(ID)
    async with opened(tmp_path) as stored:
        assert await stored.store.find_payment(ID) == before


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM x402_payment",
        "UPDATE x402_payment SET amount=1",
        "UPDATE x402_payment SET nonce=randomblob(32)",
        "UPDATE x402_payment SET request='another'",
        "UPDATE x402_payment SET tx_hash=randomblob(32)",
        "UPDATE x402_payment SET state='settling', settled_at=NULL",
    ],
)
async def test_a_settled_payment_is_kept_as_it_is(tmp_path, sql):
    async with opened(tmp_path) as stored:
        await stored.store.begin_payment(BEGUN)
        await stored.store.record_settled(ID, TX, MS)
    with pytest.raises(sqlite3.IntegrityError, match=r"stays settled|keeps its terms|never deleted"):
        run(tmp_path, sql)
