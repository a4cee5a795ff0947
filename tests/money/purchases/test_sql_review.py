"""What was sold lately is counted over both ways of paying."""

import pytest

from tests.money.purchases.parts import NOW, TX, Server, address_of, desk, paid
from tests.postgres import POSTGRES

BOTH = pytest.mark.parametrize("kind", ["sqlite", POSTGRES])
KEYS = bytes(32), bytes(20), bytes(32)
PAYMENT = """INSERT INTO x402_payment(payload, authorizer, nonce, amount, request, state, valid_before, begun_at)
  VALUES(?, ?, ?, 7000000, 'topup new', 'settling', 1, ?)"""


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
        assert await d.review.sum_sold(NOW * 1000) == 12_000_000
        assert await d.review.sum_sold(NOW * 1000 + 1) == 0


@BOTH
async def test_a_transfer_that_nobody_holds_is_not_approved(kind, tmp_path):
    async with desk(tmp_path, [Server()], kind=kind) as d:
        quote = await d.quote()
        assert await d.review.hold_transfer(TX, 1, 5, "more", 1)
        assert await d.review.hold_transfer(TX, 1, 5, "more", 2)
        assert (await d.rows("SELECT at FROM payment_review")) == [(1,)]
        assert quote.review is None
