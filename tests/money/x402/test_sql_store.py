"""What only the store in SQLite can show: a whole transaction or none of it, and rows that nothing may change."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from tests.money.ledger.ledgers import opened as opened_ledger
from tests.money.x402.parts import desk, signed
from tests.money.x402.test_store import BEGUN, CREDIT, HASH, HASH2, ID, ID2, MS, TOKEN, TOKEN2, TX, Stored
from tests.postgres import POSTGRES
from toolserver.clock import SystemClock
from toolserver.money.ledger.store import FILE, open_ledger
from toolserver.money.x402.records import NonceUsed
from toolserver.money.x402.store import SqlPaymentStore
from toolserver.sql.errors import DatabaseError, StorageFailed


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Stored]:
    async with open_ledger(folder / FILE) as ledger:
        yield Stored(SqlPaymentStore(ledger.file), ledger)
        assert await ledger.check() == []


def run(folder: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder / FILE)) as db, db:
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


BEGUN2 = BEGUN._replace(payload=ID2, nonce=bytes([9]) * 32)
RECOVERED = [(BEGUN, CREDIT), (BEGUN2, CREDIT._replace(payload=ID2, credits=7))]


@pytest.mark.parametrize("kind", ["sqlite", POSTGRES])
async def test_payments_of_the_chain_are_stored_with_their_credits_once_and_all_or_none(tmp_path, kind):
    async with opened_ledger(kind, tmp_path, SystemClock()) as ledger:
        store = SqlPaymentStore(ledger.file)
        await store.credit_recovered(RECOVERED[:1])
        assert await store.find_unknown([(one.payer, one.nonce) for one, _ in RECOVERED]) == [BEGUN2[1:3]]
        with pytest.raises(NonceUsed):
            await store.credit_recovered([(one, given._replace(token=HASH2)) for one, given in reversed(RECOVERED)])
        assert await store.find_payment(ID2) is None
        assert (await ledger.balance(TOKEN), await ledger.check()) == (100, [])
        found = await store.find_payment(ID)
        assert (found.state, found.tx_hash, found.token, found.credits) == ("settled", TX, HASH, 100)


@pytest.mark.parametrize("kind", ["sqlite", POSTGRES])
async def test_what_was_credited_by_hand_is_not_credited_again(tmp_path, kind):
    async with opened_ledger(kind, tmp_path, SystemClock()) as ledger:
        await ledger.mint(TOKEN2, 100, cause=f"grant:0x{TX.hex()}:a restored backup")
        store = SqlPaymentStore(ledger.file)
        with pytest.raises(NonceUsed, match="by hand"):
            await store.credit_recovered(RECOVERED)
        assert await store.find_payment(ID) is None


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM x402_confirmation",
        "UPDATE x402_confirmation SET undone_at=NULL, lost=NULL",
    ],
)
async def test_the_database_itself_keeps_what_was_undone(tmp_path, sql):
    async with desk(tmp_path) as d:
        await d.buy(signed())
        store = SqlPaymentStore(d.ledger.file)
        (watched,) = await store.list_watched()
        assert await store.undo_payment(watched.payload, 5) == (0, 0)
        assert await store.is_undone(watched.payload)
        assert await store.list_watched() == []
        with pytest.raises(Exception, match=r"never deleted|stays undone") as caught:
            await d.ledger.file.alone(lambda db: db.execute(sql).rowcount)
        assert isinstance(caught.value.__cause__, DatabaseError)
