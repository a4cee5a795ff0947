"""The rules of refunds: what may be refunded, when one may be booked or cancelled, and what pays it."""

import sqlite3

import pytest

from tests.money.ledger.ledgers import token
from tests.money.purchases.parts import NOW, TX, Server, address_of, desk, paid
from tests.postgres import POSTGRES
from tests.requirements import proves
from toolserver.core.caller import token_hash
from toolserver.errors import ToolserverError
from toolserver.money.purchases.refunds import (
    PROVE_MS,
    RefundDraft,
    RefundRefused,
    RefundRoom,
    StoredRefund,
    nonce_of,
    require_bookable,
    require_cancellable,
    show_refund,
)
from toolserver.money.purchases.sql_refunds import SqlRefunds
from toolserver.sql.errors import StorageFailed

TO, FROM = bytes([0xD0]) * 20, bytes([0xE0]) * 20
ASKED = StoredRefund(
    *("rf_1", "a" * 64, TO, 5, 100_000, "moved", "asked", 1000, 1000 + PROVE_MS),
    *(None, None, None, None, None, None, "a" * 16),
)
BOOKED = ASKED._replace(state="booked", proof="payer", payer=FROM, booked_at=2000)


def test_a_credit_is_paid_back_at_its_price():
    draft = RefundDraft("rf_1", "a" * 64, TO, 5, "moved", 1000)
    assert (draft.amount, draft.expires_at) == (100_000, 1000 + 7 * 86_400_000)


@proves("refund.once")
@pytest.mark.parametrize(("credits", "why"), [(6, "holds only 5"), (5, "4 credits were paid for")])
def test_neither_more_than_is_held_nor_more_than_was_paid_for(credits, why):
    with pytest.raises(RefundRefused, match=why):
        RefundRoom(5, 4).require(credits)
    RefundRoom(5, 4).require(4)


@proves("refund.once")
def test_what_was_asked_for_is_booked_once_and_in_time():
    require_bookable(ASKED, ASKED.expires_at)
    with pytest.raises(RefundRefused, match="ask again"):
        require_bookable(ASKED, ASKED.expires_at + 1)
    for state in ("booked", "sent", "paid", "cancelled"):
        with pytest.raises(RefundRefused, match=state):
            require_bookable(ASKED._replace(state=state), 1000)


def test_what_may_be_signed_is_not_cancelled():
    for one in (ASKED, BOOKED):
        require_cancellable(one)
    for one in (BOOKED._replace(planned_at=1), *(BOOKED._replace(state=state) for state in ("sent", "paid"))):
        with pytest.raises(RefundRefused, match="cannot be cancelled"):
            require_cancellable(one)


def test_a_refund_has_one_nonce_whenever_it_is_authorised():
    first, later = BOOKED.authorize(10), BOOKED.authorize(20)
    assert (first.payer, first.payee, first.amount, first.nonce) == (FROM, TO, 100_000, nonce_of("rf_1"))
    assert (first.nonce, later.valid_before) == (later.nonce, 20)
    assert nonce_of("rf_2") != nonce_of("rf_1")
    for state in ("asked", "paid", "cancelled"):
        with pytest.raises(RefundRefused, match="nothing to pay"):
            BOOKED._replace(state=state).authorize(10)


def test_a_refund_is_shown_with_its_money_and_times():
    shown = show_refund(BOOKED)
    assert (shown["amount_usd"], shown["booked"], shown["tx"]) == ("0.100000", "1970-01-01T00:00:02Z", None)


AT = NOW * 1000


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


@proves("refund.once")
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
