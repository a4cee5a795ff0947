"""What is sold without a person looking has an end, told in the quote; what arrives beyond it waits for approval."""

import pytest

from tests.money.purchases.parts import NOW, TX, TX2, Server, address_of, desk, paid
from tests.postgres import POSTGRES
from tests.requirements import proves
from toolserver.errors import InvalidArguments, PaymentPending
from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.purchases.quotes import HOUR_S, Ceilings
from toolserver.money.purchases.sql_doubts import read_review_cases
from toolserver.money.purchases.store import approve_transfer

USD = ATOMIC


@proves("purchase.ceilings")
async def test_a_quote_beyond_one_purchase_is_refused_with_the_bound(tmp_path):
    async with desk(tmp_path, [Server()], ceilings=Ceilings(purchase=100 * USD)) as d:
        await d.quote("100")
        with pytest.raises(InvalidArguments, match="at most 100"):
            await d.quote("101")


async def test_a_quote_says_that_a_person_would_have_to_approve_it(tmp_path):
    server = Server()
    async with desk(tmp_path, [server], ceilings=Ceilings(hour=50 * USD, day=60 * USD)) as d:
        first = await d.quote("45")
        assert first.review is None
        server.sees(paid(address_of(first), 45))
        await d.confirm(TX, first.memo)
        assert "more than 50 USD from all buyers within an hour" in str((await d.quote("6")).review)
        assert (await d.quote("5")).review is None
        d.clock.advance(HOUR_S + 1)
        assert "within a day" in str((await d.quote("16")).review)


@proves("purchase.ceilings")
async def test_what_arrives_beyond_a_ceiling_waits_until_it_is_approved(tmp_path):
    server = Server()
    async with desk(tmp_path, [server], ceilings=Ceilings(hour=50 * USD)) as d:
        first, second = await d.quote("30"), await d.quote("30")
        server.sees(paid(address_of(first), 30), paid(address_of(second), 30, tx=TX2))
        await d.confirm(TX, first.memo)
        for _ in range(2):
            with pytest.raises(PaymentPending, match="a person has to approve it"):
                await d.confirm(TX2, second.memo)
        (case,) = read_review_cases(d.ledger.file.path)
        assert (case.kind, case.tx, case.amount) == ("held", TX2, 30 * USD)
        assert await d.minted() == 1500
        assert await approve_transfer(d.ledger.file, TX2, 1)
        assert not await approve_transfer(d.ledger.file, TX2, 2)
        assert (await d.confirm(TX2, second.memo)).credits == 1500
        assert read_review_cases(d.ledger.file.path) == []


# --- the record of both ways of paying

BOTH = pytest.mark.parametrize("kind", ["sqlite", POSTGRES])
KEYS = bytes(32), bytes(20), bytes(32)
PAYMENT = """INSERT INTO x402_payment(payload, authorizer, nonce, amount, request, state, valid_before, begun_at)
  VALUES(?, ?, ?, 7000000, 'topup new', 'settling', 1, ?)"""


@proves("purchase.ceilings")
@BOTH
async def test_transfers_and_signed_payments_count_together_from_a_moment_on(kind, tmp_path):
    server = Server()
    async with desk(tmp_path, [server], kind=kind) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5))
        await d.confirm(TX, quote.memo)
        await d.ledger.file.alone(
            lambda db: db.execute(PAYMENT, (bytes(32), bytes(20), bytes(32), NOW * 1000)).rowcount
        )
        assert await d.store.sum_sold(NOW * 1000) == 12_000_000
        assert await d.store.sum_sold(NOW * 1000 + 1) == 0


@BOTH
async def test_a_transfer_that_nobody_holds_is_not_approved(kind, tmp_path):
    async with desk(tmp_path, [Server()], kind=kind) as d:
        quote = await d.quote()
        assert await d.store.hold_transfer(TX, 1, 5, "more", 1)
        assert await d.store.hold_transfer(TX, 1, 5, "more", 2)
        assert (await d.rows("SELECT at FROM payment_review")) == [(1,)]
        assert quote.review is None
