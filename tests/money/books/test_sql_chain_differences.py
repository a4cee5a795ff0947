"""Documents and the book of the chain, in both directions: what was paid agrees, and what is planted is named."""

import random

import pytest

from tests.money.chain.log_node import BLOCK_S, LogNode, served
from tests.money.chain.month import START, STRANGER, Month, scanner_of
from tests.money.chain.parts import WALLET
from tests.money.purchases.parts import Server, desk
from tests.postgres import POSTGRES
from toolserver.money.books.sql_chain_differences import count_booked, find_chain_differences
from toolserver.money.chain.scanner import COLD_S
from toolserver.money.chain.sql_chain_ways import sum_ways
from toolserver.money.ledger.sql_books import EVER
from toolserver.money.purchases.credit_price import ATOMIC

BEGUN = """INSERT INTO x402_payment(payload, authorizer, nonce, amount, request, state, valid_before, begun_at)
  VALUES (?,?,?,20000,'GET /api/pro/macro x','settling',9,?)"""
SETTLED = "UPDATE x402_payment SET state='settled', tx_hash=payload, settled_at=begun_at, answered_at=begun_at"
PLACED = "UPDATE x402_confirmation SET block_number=?, block_hash=payload"


@pytest.fixture(params=["sqlite", POSTGRES])
async def m(request, tmp_path):
    """A day with a payment that was confirmed, one twice, a short one, one swept and a call by x402; two looks."""
    server, node = Server(), LogNode()
    node.height = START
    async with served(node) as url, desk(tmp_path, [server], kind=request.param) as d:
        scanner, pool = scanner_of(d, url)
        m = Month(node, d, server, scanner, random.Random(0))
        m.pay(await m.quote(), 0.5)
        await scanner.look()  # from here on the book is there
        for usd in (5, 6):
            address = await m.quote()
            m.expected[f"paid {usd}"] = tx = m.pay(address, usd)
            m.pass_blocks(12)
            await m.confirm(address, tx, usd)
        m.pay(address, 7)
        m.expected["swept"] = await m.sweep(address)
        m.expected["call"] = tx = m.pay(f"0x{WALLET.hex()}", 0.02)
        key = bytes.fromhex(tx[2:])
        await change(m, BEGUN, key, bytes.fromhex(STRANGER[2:]), key, int(d.clock.time() * 1000))
        await change(m, SETTLED)
        await change(m, PLACED, node.height)
        for _ in range(2):
            m.pass_blocks(int(COLD_S / BLOCK_S))
            await scanner.look()
        yield m
        await pool.aclose()


async def change(m, sql, *values, drops=False):
    """Change rows; where the triggers are dropped, as somebody with the database would (SQLite only)."""

    def job(db):
        if drops:
            for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='trigger'").fetchall():
                db.execute(f"DROP TRIGGER {name}")
        assert db.execute(sql, values).rowcount

    await m.desk.ledger.file.alone(job)


async def compare(m):
    return await m.desk.ledger.file.read(lambda db: list(find_chain_differences(db)))


async def test_what_was_paid_confirmed_swept_and_signed_agrees(m):
    assert await compare(m) == []
    assert await m.desk.ledger.file.read(count_booked) == 6


async def test_every_transfer_has_one_way_and_one_state(m):
    ways = await m.desk.ledger.file.read(lambda db: sum_ways(db, 0, EVER))
    found = {way: {state: sums.received / ATOMIC for state, sums in states.items()} for way, states in ways.items()}
    assert found == {
        "transfer": {"credited": 11, "second": 7, "short": 0.5},
        "x402_call": {"credited": 0.02},
        "sent": {"swept": 0},
    }
    assert ways["sent"]["swept"].sent == 13 * ATOMIC
    assert await m.desk.ledger.file.read(lambda db: sum_ways(db, 0, 1)) == {}


CREDITED = "(SELECT tx_hash FROM tx_credit WHERE amount=6000000)"
MOVED = f"UPDATE chain_transfer SET tx_hash=zeroblob(32) WHERE tx_hash={CREDITED}"
PLANTED = {
    MOVED: "6.000000 USDC were credited, the book of the chain has 0.0",
    f"UPDATE chain_transfer SET amount=5999999 WHERE tx_hash={CREDITED}": "credited, the book of the chain has 5.9",
    f"UPDATE chain_transfer SET state='undone' WHERE tx_hash={CREDITED}": "the book of the chain has 0.000000 (undone)",
    f"UPDATE chain_transfer SET state='short' WHERE tx_hash={CREDITED}": "has 0.000000 in that state",
    f"DELETE FROM tx_credit WHERE tx_hash={CREDITED}": "6.000000 USDC are credited on the chain, and no document",
    "DELETE FROM x402_confirmation": "0.020000 USDC are credited on the chain, and no document says so",
    "UPDATE x402_payment SET amount=30000": "0.030000 USDC were settled by x402, the book of the chain has 0.02",
    "DELETE FROM sweep": "13.000000 USDC are swept on the chain, and no document says so",
    "UPDATE sweep SET amount=13000001": "13.000001 USDC were swept, the book of the chain has 13.000000",
    "UPDATE chain_transfer SET state='refunded' WHERE state='swept'": "13.000000 USDC are refunded on the chain",
    "UPDATE chain_transfer SET state='held' WHERE state='second'": "7.000000 USDC are held on the chain, and no",
    "INSERT INTO chain_difference VALUES (zeroblob(20), -5, 2000000, 8, 9)": "its transfers say -0.000005 USDC, and",
}


@pytest.mark.parametrize("m", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("sql", "said"), PLANTED.items())
async def test_what_is_planted_on_either_side_is_named(m, sql, said):
    await change(m, sql, drops=True)
    differences = await compare(m)
    assert [text for text in differences if said in text], differences
    assert len(differences) <= 2  # what has moved to another transaction, or another amount, is wrong on both sides


@pytest.mark.parametrize("m", ["sqlite"], indirect=True)
async def test_what_is_older_than_the_book_or_newer_than_the_last_look_may_be_missing_there(m):
    await change(m, MOVED, drops=True)
    for at in ("1", "(SELECT at FROM chain_scan WHERE name='cold')"):
        await change(m, f"UPDATE tx_credit SET credited_at={at}", drops=True)
        assert not [text for text in await compare(m) if "were credited" in text]
