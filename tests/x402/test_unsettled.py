"""Payments nobody knows the end of, found by looking at the chain, without their sender."""

import anyio
import httpx
import pytest

from tests.x402.parts import NOW, Chain, Desk, desk, signed
from toolserver.access import token_hash
from toolserver.errors import PaymentRequired, SettlementPending
from toolserver.payments.units import ATOMIC
from toolserver.payments.x402.settling import Seen
from toolserver.payments.x402.unsettled import Unsettled

TWO = 2 * ATOMIC
TX = bytes([9]) * 32
KEY = "a-long-idempotency-key"


async def pending(d: Desk, payment: str, **named) -> None:
    d.script.settles = httpx.ReadTimeout("slow")
    with pytest.raises(SettlementPending):
        await (d.topup(payment, **named) if named else d.buy(payment))
    d.script.settles = None


async def look(d: Desk, seen: Seen | None, *, later: float = 90) -> None:
    """One look of the watch, when the payment is that old."""
    d.clock.advance(later)
    await Unsettled(d.settling, Chain(seen)).look()


async def test_a_top_up_of_a_known_token_is_credited_by_itself(tmp_path):
    payment = signed(TWO)
    async with desk(tmp_path) as d:
        token = (await d.topup(signed(TWO))).token
        await pending(d, payment, token=token)
        await look(d, Seen("paid", TX))
        assert await d.ledger.balance(token) == 200
        await look(d, Seen("paid", TX))
        assert await d.minted() == 200
        assert await d.states() == ["settled", "settled"]


async def test_a_top_up_for_a_new_token_waits_for_its_sender(tmp_path):
    payment = signed(TWO, validBefore=str(NOW + 3600))
    async with desk(tmp_path) as d:
        await pending(d, payment, key=KEY)
        await look(d, Seen("paid", TX))
        assert (await d.minted(), await d.states()) == (0, ["settled"])
        bought = await d.topup(payment, key=KEY)
        assert (bought.credits, bought.tx, await d.minted()) == (100, TX, 100)


async def test_a_call_that_was_paid_for_is_answered_when_its_sender_comes_back(tmp_path):
    payment = signed(validBefore=str(NOW + 3600))
    async with desk(tmp_path) as d:
        await pending(d, payment)
        await look(d, Seen("paid", TX))
        sold, settlement = await d.buy(payment)
        assert (sold.charged, settlement["transaction"]) == (2, f"0x{TX.hex()}")
        assert d.script.settlements == 1


async def test_a_call_that_was_paid_for_long_ago_is_not_answered_any_more(tmp_path):
    payment = signed(validBefore=str(NOW + 36_000))
    async with desk(tmp_path) as d:
        await pending(d, payment)
        await look(d, Seen("paid", TX))
        d.clock.advance(3601)
        with pytest.raises(PaymentRequired, match="nonce_already_used"):
            await d.buy(payment)


@pytest.mark.parametrize(
    ("seen", "left"),
    [
        (Seen("void"), []),
        (Seen("unused", None, NOW + 300), []),
        (Seen("unused", None, NOW + 200), ["settling"]),
        (None, ["settling"]),
    ],
)
async def test_what_can_never_be_made_is_forgotten_and_nothing_else(tmp_path, seen, left):
    async with desk(tmp_path) as d:
        await pending(d, signed())
        await look(d, seen)
        assert await d.states() == left


async def test_what_is_still_under_way_is_left_alone(tmp_path):
    async with desk(tmp_path) as d:
        await pending(d, signed())
        await look(d, Seen("paid", TX), later=30)
        assert await d.states() == ["settling"]


async def test_a_token_that_was_revoked_meanwhile_gets_nothing(tmp_path, caplog):
    async with desk(tmp_path) as d:
        token = (await d.topup(signed(TWO))).token
        await pending(d, signed(TWO), token=token)
        await d.ledger.revoke(token_hash(token).hex()[:16], "stolen")
        await look(d, Seen("paid", TX))
        assert await d.states() == ["settled", "settled"]
        assert "could not be credited" in caplog.text


async def test_a_sender_who_comes_back_at_the_same_time_is_credited_once(tmp_path):
    payment, chain = signed(TWO), Chain()
    async with desk(tmp_path, chain=chain) as d:
        token = (await d.topup(signed(TWO))).token
        await pending(d, payment, token=token)
        d.clock.advance(90)
        chain.seen = Seen("paid", TX)
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(Unsettled(d.settling, chain).look)
                tasks.start_soon(lambda: d.topup(payment, token=token))
        assert await d.ledger.balance(token) == 200


async def test_the_watch_goes_on_after_a_failure(tmp_path, caplog):
    class Broken:
        looks = 0

        async def __call__(self, payment):
            self.looks += 1
            if self.looks == 1:
                raise OSError("arranged")
            scope.cancel()

    async with desk(tmp_path) as d:
        await pending(d, signed())
        with anyio.fail_after(5), anyio.CancelScope() as scope:
            await Unsettled(d.settling, Broken()).run()
        assert scope.cancelled_caught
        assert "could not be looked at" in caplog.text
