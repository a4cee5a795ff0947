"""Payments nobody knows the end of, found by looking at the chain, without their sender."""

import anyio
import httpx
import pytest

from tests.money.x402.parts import NOW, PAYER, Chain, Desk, desk, signed
from tests.requirements import proves
from toolserver.core.caller import token_hash
from toolserver.errors import PaymentUsed, SettlementPending
from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.x402 import wire
from toolserver.money.x402.settlement import AuthorisationState, Handover, SettlementSweep

TWO = 2 * ATOMIC
TX = bytes([9]) * 32
KEY = "a-long-idempotency-key"


async def pending(d: Desk, payment: str, **named) -> None:
    d.script.settles = httpx.ReadTimeout("slow")
    with pytest.raises(SettlementPending):
        await (d.topup(payment, **named) if named else d.buy(payment))
    d.script.settles = None


async def look(d: Desk, seen: AuthorisationState | None, *, later: float = 90) -> None:
    """One look of the watch, when the payment is that old."""
    d.clock.advance(later)
    await SettlementSweep(d.settling, Chain(seen)).look()


async def test_a_top_up_of_a_known_token_is_credited_by_itself(tmp_path):
    payment = signed(TWO)
    async with desk(tmp_path) as d:
        token = (await d.topup(signed(TWO))).token
        await pending(d, payment, token=token)
        await look(d, AuthorisationState("paid", TX))
        assert await d.ledger.balance(token) == 200
        await look(d, AuthorisationState("paid", TX))
        assert await d.minted() == 200
        assert await d.states() == ["settled", "settled"]


async def test_a_top_up_for_a_new_token_waits_for_its_sender(tmp_path):
    payment = signed(TWO, validBefore=str(NOW + 3600))
    async with desk(tmp_path) as d:
        await pending(d, payment, key=KEY)
        await look(d, AuthorisationState("paid", TX))
        assert (await d.minted(), await d.states()) == (0, ["settled"])
        bought = await d.topup(payment, key=KEY)
        assert (bought.credits, bought.tx, await d.minted()) == (100, TX, 100)


async def test_a_call_that_was_paid_for_is_answered_when_its_sender_comes_back(tmp_path):
    payment = signed(validBefore=str(NOW + 3600))
    async with desk(tmp_path) as d:
        await pending(d, payment)
        await look(d, AuthorisationState("paid", TX))
        sold, settlement = await d.buy(payment)
        assert (sold.charged, settlement["transaction"]) == (2, f"0x{TX.hex()}")
        assert d.script.settlements == 1


async def test_a_call_that_was_paid_for_long_ago_is_not_answered_any_more(tmp_path):
    payment = signed(validBefore=str(NOW + 36_000))
    async with desk(tmp_path) as d:
        await pending(d, payment)
        await look(d, AuthorisationState("paid", TX))
        d.clock.advance(3601)
        with pytest.raises(PaymentUsed, match="was used for GET /api/pro/report"):
            await d.buy(payment)


@pytest.mark.parametrize(
    ("seen", "left"),
    [
        (AuthorisationState("void"), []),
        (AuthorisationState("unused", None, NOW + 300), []),
        (AuthorisationState("unused", None, NOW + 200), ["settling"]),
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
        await look(d, AuthorisationState("paid", TX), later=30)
        assert await d.states() == ["settling"]


async def test_a_token_that_was_revoked_meanwhile_gets_nothing(tmp_path, caplog):
    async with desk(tmp_path) as d:
        token = (await d.topup(signed(TWO))).token
        await pending(d, signed(TWO), token=token)
        await d.ledger.revoke(token_hash(token).hex()[:16], "stolen")
        await look(d, AuthorisationState("paid", TX))
        assert await d.states() == ["settled", "settled"]
        assert "could not be credited" in caplog.text


async def test_a_sender_who_comes_back_at_the_same_time_is_credited_once(tmp_path):
    payment, chain = signed(TWO), Chain()
    async with desk(tmp_path, chain=chain) as d:
        token = (await d.topup(signed(TWO))).token
        await pending(d, payment, token=token)
        d.clock.advance(90)
        chain.seen = AuthorisationState("paid", TX)
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(SettlementSweep(d.settling, chain).look)
                tasks.start_soon(lambda: d.topup(payment, token=token))
        assert await d.ledger.balance(token) == 200


async def test_the_watch_goes_on_after_a_failure(tmp_path, caplog):
    class Broken:
        looks = 0

        async def __call__(self, payment, since):
            self.looks += 1
            if self.looks == 1:
                raise OSError("arranged")
            scope.cancel()

    async with desk(tmp_path) as d:
        await pending(d, signed())
        with anyio.fail_after(5), anyio.CancelScope() as scope:
            await SettlementSweep(d.settling, Broken()).run()
        assert scope.cancelled_caught
        assert "could not be looked at" in caplog.text


@proves("x402.oldest")
async def test_a_payment_that_cannot_be_looked_at_keeps_no_other_one_waiting(tmp_path, caplog):
    one, other = signed(TWO), signed(TWO)

    class Choosy(Chain):
        async def __call__(self, payment, since):
            if payment.id == wire.read_payment(one).id:
                raise OSError("arranged")
            return AuthorisationState("paid", TX)

    async with desk(tmp_path) as d:
        for payment in (one, other):
            await pending(d, payment, key=KEY)
        d.clock.advance(90)
        await SettlementSweep(d.settling, Choosy()).look()
        assert await d.states() == ["settled", "settling"]
        assert "could not be looked at" in caplog.text


@proves("x402.oldest")
async def test_more_payments_than_one_page_holds_are_all_looked_at(tmp_path):
    async with desk(tmp_path) as d:
        for _ in range(5):
            await pending(d, signed(TWO), key=KEY)
        looks = []

        class Counting(Chain):
            async def __call__(self, payment, since):
                looks.append(payment.id)

        d.clock.advance(90)
        await SettlementSweep(d.settling, Counting(), at_once=2).look()
        assert len(set(looks)) == len(looks) == 5


@proves("x402.search")
async def test_the_search_starts_at_the_block_of_the_hand_over_even_after_a_restart(tmp_path):
    chain = Chain(height=1234)
    async with desk(tmp_path, chain=chain) as d:
        await pending(d, signed(TWO), key=KEY)
        began_at = d.clock.time()
    async with desk(tmp_path) as d:
        starts = []

        class Noting(Chain):
            async def __call__(self, payment, since):
                starts.append(since)

        d.clock.advance(100_000)
        await SettlementSweep(d.settling, Noting()).look()
        assert starts == [Handover(1234, began_at)]


async def test_what_stays_open_is_counted_with_its_age_and_becomes_a_case(tmp_path):
    async with desk(tmp_path) as d:
        await pending(d, signed(TWO), key=KEY)
        d.clock.advance(60)
        sweep = SettlementSweep(d.settling, None)
        await sweep.look()
        assert d.settling.measure_backlog() == (1, 60.0, 0)
        d.clock.advance(3600)
        await sweep.look()
        assert d.settling.measure_backlog() == (1, 3660.0, 1)
        (case,) = await d.settling.store.list_payment_cases(int(d.clock.time() * 1000))
        assert (case.kind, case.wallet, case.amount, case.reason) == ("unsettled", PAYER, TWO, "a top-up")


async def test_a_top_up_whose_money_moved_and_whose_sender_stays_away_is_a_case_until_it_is_credited(tmp_path):
    payment = signed(TWO)
    async with desk(tmp_path) as d:
        await pending(d, payment, key=KEY)
        await look(d, AuthorisationState("paid", TX))
        d.clock.advance(600)

        async def cases():
            return [
                (case.kind, case.tx) for case in await d.settling.store.list_payment_cases(int(d.clock.time() * 1000))
            ]

        assert await cases() == [("uncredited", TX)]
        assert (await d.topup(payment, key=KEY)).credits == 100
        assert await cases() == []


async def test_a_call_that_was_paid_for_and_never_answered_is_a_case_until_it_is_answered(tmp_path):
    payment = signed()
    async with desk(tmp_path) as d:
        await d.buy(signed())
        await pending_call(d, payment)
        await look(d, AuthorisationState("paid", TX))

        async def kinds():
            return [case.kind for case in await d.settling.store.list_payment_cases(int(d.clock.time() * 1000))]

        d.clock.advance(600)
        assert await kinds() == ["unanswered"]
        assert (await d.buy(payment, key=KEY)).sold.charged == 2
        assert await kinds() == []


async def pending_call(d: Desk, payment: str) -> None:
    d.script.settles = httpx.ReadTimeout("slow")
    with pytest.raises(SettlementPending):
        await d.buy(payment, key=KEY)
    d.script.settles = None


async def test_a_token_is_not_kept_for_its_buyer_for_ever(tmp_path):
    async with desk(tmp_path) as d:
        await d.topup(signed(TWO), key=KEY)
        await SettlementSweep(d.settling, None).look()
        assert (await d.rows("SELECT sealed IS NULL FROM x402_payment")) == [(0,)]
        d.clock.advance(86_401)
        await SettlementSweep(d.settling, None).look()
        assert (await d.rows("SELECT sealed IS NULL FROM x402_payment")) == [(1,)]
