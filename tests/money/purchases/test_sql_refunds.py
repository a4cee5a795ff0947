"""Refunds in the ledger's file: credits and state change together or not at all, and nothing is rewritten."""

import sqlite3

import pytest

from tests.money.ledger.ledgers import token
from tests.money.purchases.parts import NOW, TX, Server, address_of, desk, paid
from tests.postgres import POSTGRES
from toolserver.core.caller import token_hash
from toolserver.errors import ToolserverError
from toolserver.money.purchases.refunds import RefundDraft, RefundRefused
from toolserver.money.purchases.sql_refunds import SqlRefunds
from toolserver.sql.errors import StorageFailed

AT, TO, FROM = NOW * 1000, bytes([0xD0]) * 20, bytes([0xE0]) * 20


@pytest.fixture(params=["sqlite", POSTGRES])
async def shop(request, tmp_path):
    """A desk with a final purchase of 250 credits: its ledger, refunds, and the token."""
    server = Server()
    async with desk(tmp_path, [server], kind=request.param) as d:
        quote = await d.quote("5")
        server.sees(paid(address_of(quote), 5))
        bought = (await d.confirm(TX, quote.memo)).token
        await d.ledger.file.alone(lambda db: db.execute("UPDATE tx_credit SET final_at=1") and None)
        yield d, SqlRefunds(d.ledger.file), bought


def draft(bought, credits, id="rf_1"):
    return RefundDraft(id, token_hash(bought).hex(), TO, credits, "moved", AT)


async def test_credits_leave_with_the_proof_and_the_state(shop):
    d, refunds, bought = shop
    await refunds.add(draft(bought, 100))
    booked = await refunds.book("rf_1", "payer", FROM, AT + 5)
    assert (booked.state, booked.proof, booked.payer, booked.booked_at) == ("booked", "payer", FROM, AT + 5)
    assert await d.ledger.balance(bought) == 150
    await refunds.note_planned(["rf_1"], AT + 6)
    await refunds.note_sending("rf_1", bytes([7]) * 32)
    assert (await refunds.find("rf_1")).state == "sent"
    assert (await refunds.note_paid("rf_1", bytes([7]) * 32, AT + 9)).ended_at == AT + 9
    assert [one.id for one in await refunds.list_refunds(("paid",))] == ["rf_1"]
    assert (await refunds.find_payments(token_hash(bought).hex())).transfers[0].tx_hash == TX


async def test_the_transaction_that_was_sent_first_is_not_forgotten_for_another(shop):
    _, refunds, bought = shop
    await refunds.add(draft(bought, 100))
    await refunds.book("rf_1", "payer", FROM, AT)
    await refunds.note_sending("rf_1", bytes([7]) * 32)
    for before in (None, bytes([9]) * 32):
        with pytest.raises(RefundRefused, match="by another run"):
            await refunds.note_sending("rf_1", bytes([8]) * 32, replaces=before)
    assert (await refunds.find("rf_1")).tx_hash == bytes([7]) * 32
    await refunds.note_sending("rf_1", bytes([8]) * 32, replaces=bytes([7]) * 32)
    assert (await refunds.find("rf_1")).tx_hash == bytes([8]) * 32


async def test_two_refunds_that_fit_one_by_one_do_not_both_fit(shop):
    d, refunds, bought = shop
    for id in ("rf_1", "rf_2"):
        await refunds.add(draft(bought, 200, id))
    await refunds.book("rf_1", "payer", FROM, AT)
    with pytest.raises(RefundRefused, match="holds only 50"):
        await refunds.book("rf_2", "payer", FROM, AT)
    assert (await refunds.find("rf_2")).state == "asked"
    assert await d.ledger.balance(bought) == 50


async def test_what_was_reserved_since_is_not_taken(shop):
    d, refunds, bought = shop
    await refunds.add(draft(bought, 250))
    await d.ledger.reserve("c1", bought, 1, endpoint="/x", ttl_s=60)
    with pytest.raises(RefundRefused):
        await refunds.book("rf_1", "payer", FROM, AT)
    assert await d.ledger.balance(bought) == 249
    await d.ledger.settle("c1", no_charge="cancelled")


async def test_cancelled_credits_come_back_and_can_be_refunded_anew(shop):
    d, refunds, bought = shop
    await refunds.add(draft(bought, 250))
    await refunds.book("rf_1", "payer", FROM, AT)
    assert await d.ledger.balance(bought) == 0
    await refunds.cancel("rf_1", AT + 1)
    assert await d.ledger.balance(bought) == 250
    await refunds.add(draft(bought, 250, "rf_2"))
    with pytest.raises(RefundRefused):
        await refunds.cancel("rf_1", AT + 2)


async def test_nobody_and_nothing_is_refused(shop):
    _, refunds, _ = shop
    for given in (refunds.add(draft(token(9), 1)), refunds.find("rf_9"), refunds.find_payments("a" * 64)):
        with pytest.raises(ToolserverError):
            await given


@pytest.mark.parametrize("sql", ["DELETE FROM refund", "UPDATE refund SET amount=1", "UPDATE refund SET payee=x'00'"])
async def test_a_refund_is_not_rewritten(shop, sql):
    d, refunds, bought = shop
    await refunds.add(draft(bought, 1))
    with pytest.raises((StorageFailed, sqlite3.IntegrityError)):
        await d.ledger.file.alone(lambda db: db.execute(sql) and None)
