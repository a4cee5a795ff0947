"""What was sold lately is counted over both ways of paying."""

from tests.purchases.parts import NOW, TX, Server, address_of, desk, paid

PAYMENT = """INSERT INTO x402_payment(payload, authorizer, nonce, amount, request, state, valid_before, begun_at)
  VALUES(zeroblob(32), zeroblob(20), zeroblob(32), 7000000, 'topup new', 'settling', 1, ?)"""


async def test_transfers_and_signed_payments_count_together_from_a_moment_on(tmp_path):
    server = Server()
    async with desk(tmp_path, [server]) as d:
        quote = await d.quote()
        server.sees(paid(address_of(quote), 5))
        await d.confirm(TX, quote.memo)
        await d.ledger.file.alone(lambda db: db.execute(PAYMENT, (NOW * 1000,)).rowcount)
        assert await d.review.sum_sold(NOW * 1000) == 12_000_000
        assert await d.review.sum_sold(NOW * 1000 + 1) == 0


async def test_a_transfer_that_nobody_holds_is_not_approved(tmp_path):
    async with desk(tmp_path, [Server()]) as d:
        quote = await d.quote()
        assert await d.review.hold_transfer(TX, 1, 5, "more", 1)
        assert await d.review.hold_transfer(TX, 1, 5, "more", 2)
        assert (await d.rows("SELECT at FROM payment_review")) == [(1,)]
        assert quote.review is None
