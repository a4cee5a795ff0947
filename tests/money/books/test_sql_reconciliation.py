"""The check of everything: agreement after real work, and the right comparison for each thing that is rewritten."""

import sqlite3
from contextlib import closing

import pytest

from tests.calls.charging import open_stand
from tests.money.purchases.parts import TX, Server, address_of, desk, paid
from toolserver.core.caller import new_call_id
from toolserver.money.books.sql_reconciliation import check_books, check_chain
from toolserver.money.ledger.store import FILE, open_ledger
from toolserver.money.receipts.log import LogMark

NOW = 1_800_000_100_000
REPLACED = "CAST(replace(CAST({} AS TEXT), '{}', '{}') AS BLOB)"
NAMES = ["ledger", "statements", "receipts", "books", "log", "months", "chain_book"]


@pytest.fixture
async def worked(tmp_path):
    """A ledger with answered calls, one of them released after its process died, and a purchase."""
    async with open_stand(tmp_path) as stand:
        for sent in (True, True, False):
            call_id = new_call_id()
            await stand.buy(call_id)
            if sent:
                stand.ledger.delivered(call_id)
    async with open_stand(tmp_path) as stand:
        assert await stand.store.release_undelivered() == 1
        stand.clock.advance(3660)
        assert await stand.evidence.log.close_hours() == 1
        await stand.free(new_call_id())
    server = Server()
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote("5")
        server.sees(paid(address_of(quote), 5))
        await d.confirm(TX, quote.memo)
    return tmp_path


async def check(folder, mark=None):
    async with open_ledger(folder / FILE) as ledger:
        found = await check_books(ledger.file, folder / FILE, mark, NOW)
    assert [one.name for one in found] == NAMES
    return {one.name: one.differences for one in found if one.differences}, {one.name: one.compared for one in found}


async def test_what_the_service_wrote_agrees(worked):
    differences, compared = await check(worked)
    assert differences == {}
    counted = {"statements": 3, "receipts": 4, "books": 1, "log": 3, "months": 0, "chain_book": 0}
    assert compared == {"ledger": compared["ledger"]} | counted


@pytest.mark.parametrize(
    ("sql", "where"),
    [
        ("DELETE FROM packed_receipt WHERE id=(SELECT min(id) FROM packed_receipt)", {"receipts"}),
        ("UPDATE receipt_form SET terms=replace(terms, '2,2,\"charged', '2,1,\"charged')", {"receipts"}),
        ("UPDATE tx_credit SET credits=1", {"books"}),
        ("UPDATE account SET credits=credits+1 WHERE id=4", {"statements", "books"}),
        ("UPDATE no_charge SET entry=" + REPLACED.format("entry", "pro", "two"), {"log"}),
        ("UPDATE no_charge_day SET calls=7", {"log"}),
        ("DELETE FROM no_charge", {"log"}),
        ("DELETE FROM uncharged_call WHERE seq=1", {"log"}),
        ("DELETE FROM uncharged_call WHERE seq=2", {"log"}),  # it is not in the log yet, and a receipt names it
        ("UPDATE uncharged_call SET credits=0 WHERE seq=1", {"log"}),
        ("UPDATE uncharged_call SET receipt=zeroblob(32) WHERE seq=1", {"log"}),
        ("UPDATE uncharged_call SET receipt=zeroblob(32) WHERE seq=2", {"log"}),
        ("UPDATE uncharged_call SET hour=hour-1 WHERE seq=2", {"log"}),
        ("INSERT INTO uncharged_call SELECT 9, hour, key, reason, endpoint, credits, receipt, at FROM uncharged_call"
         " WHERE seq=1", {"log"}),
        ("UPDATE no_charge SET hour=hour-1", {"log"}),
    ],
)  # fmt: skip
async def test_what_is_rewritten_is_found_where_it_disagrees(worked, sql, where):
    with closing(sqlite3.connect(worked / FILE)) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        db.execute(sql)
        db.commit()
    differences, _ = await check(worked)
    assert where <= differences.keys() <= where | {"ledger"}
    assert any("not written by this service" in text for text in differences["ledger"])


async def test_a_log_that_is_shorter_than_its_mark_outside_is_found(worked):
    differences, _ = await check(worked, LogMark(2, bytes(32)))
    assert differences == {"log": ["the log has 1 leaves, the mark outside the database 2"]}
    differences, _ = await check(worked, LogMark(1, bytes(32)))
    assert list(differences) == ["log"]


async def test_the_chain_is_compared_or_said_not_to_be(worked):
    server = Server()
    server.sees(paid(bytes(20), 5))
    async with desk(worked, [server]) as d:
        (address,) = [address for _, address in await d.store.list_deposits()]
        unseen = await check_chain(worked / FILE, d.chain)
        server.sees(paid(address, 5))
        moved = await check_chain(worked / FILE, d.chain)
        server.down = True
        down = await check_chain(worked / FILE, d.chain)
    none = await check_chain(worked / FILE, None)
    assert (len(unseen.differences), "the chain has 0.000000" in unseen.differences[0]) == (1, True)
    assert (moved.compared, moved.differences) == (1, [])
    assert "1 deposits of 5.000000 USDC were moved" in str(moved.note)
    assert (down.compared, none.compared) == (0, 0)
    assert str(down.note).startswith("not compared: ")
    assert "payments.rpc_urls" in str(none.note)
