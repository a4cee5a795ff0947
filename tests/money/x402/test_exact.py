"""One payment, one answer: what is taken, and when nothing is."""

import anyio
import httpx
import pytest

from tests.calls.toy import FIRST, SECOND
from tests.money.x402.parts import NOW, PAYER_TEXT, REGISTRY, Chain, desk, failed, payload, response_of, signed
from tests.requirements import proves
from toolserver.errors import (
    ChainUnavailable,
    IdempotencyConflict,
    InternalError,
    InvalidArguments,
    PaymentRequired,
    PaymentUsed,
    RateLimited,
    SettlementPending,
    UpstreamUnavailable,
)
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.x402 import wire
from toolserver.money.x402.exact import name_request
from toolserver.money.x402.settlement import AuthorisationState

DOWN = httpx.Response(500)
TX = bytes([9]) * 32
LATER = str(NOW + 7200)
OTHER_TEXT = checksum_address(bytes([7]) * 20)


async def test_a_payment_buys_an_answer_and_a_receipt(tmp_path):
    async with desk(tmp_path) as d:
        sold, settlement = await d.buy(signed())

        assert (sold.charged, sold.reason, sold.remaining) == (2, None, None)
        assert settlement == {
            "success": True,
            "transaction": next(iter(d.script.made.values())),
            "network": "eip155:8453",
            "payer": PAYER_TEXT,
        }
        assert d.script.asked == ["verify", "settle"]
        assert await d.states() == ["settled"]
        verdict = await d.evidence.verify(sold.receipt, sold.rendered.sha256().hex())
        assert verdict["valid"], verdict
        core = verdict["core"]
        assert (core["kind"], core["credits_charged"], core["settlement"]) == ("call", 2, "charged")
        assert core["balance_after"] is None


async def test_the_same_payment_again_is_the_same_answer(tmp_path):
    payment = signed()
    async with desk(tmp_path) as d:
        first = await d.buy(payment)
    async with desk(tmp_path) as d:
        again = await d.buy(payment)

        assert again.sold.rendered.payload == first.sold.rendered.payload
        assert (again.sold.receipt, again.settlement) == (first.sold.receipt, first.settlement)
        assert d.script.asked == []


@proves("x402.call")
async def test_twenty_twins_pay_once(tmp_path):
    payment = signed()
    async with desk(tmp_path) as d:
        found = []

        async def buy() -> None:
            found.append(await d.buy(payment))

        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(buy)

        assert d.script.settlements == 1
        assert len({each.sold.receipt_id for each in found}) == 1


@proves("x402.one-answer")
async def test_a_payment_does_not_buy_another_answer(tmp_path):
    payment = signed()
    async with desk(tmp_path) as d:
        await d.buy(payment)
        with pytest.raises(IdempotencyConflict, match="was used for GET /api/pro/report"):
            await d.buy(payment, history="30d")
        with pytest.raises(IdempotencyConflict, match="was used for GET /api/pro/report"):
            await d.buy(payment, "premium_void")
        assert d.script.settlements == 1


# --- a payment that was made is known first, whatever its validity says by now ---

KEY = "a-long-idempotency-key"


@proves("x402.again")
@pytest.mark.parametrize(
    ("first", "again", "after_s", "is_answered"),
    [
        (None, None, 1, True),
        (None, None, 180, True),
        (None, None, 599, True),
        (None, None, 600, False),
        (None, KEY, 3600, False),
        (KEY, None, 180, True),
        (KEY, None, 3600, False),
        (KEY, "another key", 3600, False),
        (KEY, KEY, 3600, True),
        (KEY, KEY, 86_000, True),
        (KEY, KEY, 86_400, False),
        ("k", "k", 3600, True),
    ],
)
async def test_a_payment_is_answered_again_in_its_time_and_never_with_an_offer(
    tmp_path, first, again, after_s, is_answered
):
    payment = signed()
    async with desk(tmp_path) as d:
        bought = await d.buy(payment, key=first)
        d.clock.advance(after_s)
        clock = d.clock
    async with desk(tmp_path, clock=clock) as d:
        if is_answered:
            found = await d.buy(payment, key=again)
            assert (found.sold.rendered.payload, found.sold.receipt) == (
                bought.sold.rendered.payload,
                bought.sold.receipt,
            )
            assert found.settlement == bought.settlement
        else:
            with pytest.raises(PaymentUsed, match="was used for GET /api/pro/report at 2027-01-15T08:00:00Z") as caught:
                await d.buy(payment, key=again)
            assert wire.REQUIRED not in caught.value.headers
        assert d.script.asked == []
        assert await d.states() == ["settled"]


async def test_an_answer_that_was_paid_for_and_lost_is_made_when_the_payment_comes_again(tmp_path):
    payment = signed()
    async with desk(tmp_path) as d:
        first = await d.buy(payment, key=KEY)
        await d.ledger.file.alone(lambda db: db.execute("DELETE FROM idempotency"))
        d.engine.internet.serves(FIRST, DOWN)
        d.engine.internet.serves(SECOND, DOWN)
        d.clock.advance(600)
        free = await d.buy(payment, key=KEY)
        assert (free.sold.reason, free.settlement) == ("stale_data", None)
        d.engine.internet.serves(FIRST, {"value": 7})
        d.engine.internet.serves(SECOND, {"value": 7})
        d.clock.advance(600)
        owed = await d.buy(payment, key=KEY)
        assert (owed.sold.charged, owed.settlement) == (2, first.settlement)
        again = await d.buy(payment, key=KEY)
        assert (again.sold.receipt, again.settlement) == (owed.sold.receipt, owed.settlement)
        assert d.script.settlements == 1


async def test_what_was_paid_for_and_cannot_be_made_is_not_said_to_be_unpaid(tmp_path):
    payment = signed()
    async with desk(tmp_path) as d:
        d.script.settles = httpx.ReadTimeout("slow")
        with pytest.raises(SettlementPending):
            await d.buy(payment, "premium_report", history="30d")
        d.script.settles = None
        d.clock.advance(100_000)
        d.engine.internet.serves(FIRST, DOWN)
        d.engine.internet.serves(SECOND, DOWN)
        with pytest.raises(UpstreamUnavailable, match="The payment was made"):
            await d.buy(payment, "premium_report", history="30d")
        assert await d.states() == ["settled"]


async def test_a_payment_from_before_an_upgrade_is_known_by_its_hash_alone(tmp_path):
    payment = signed()
    async with desk(tmp_path) as d:
        await d.buy(payment)
        operation = REGISTRY["premium_report"]
        name = name_request(operation, operation.arguments())
        drop = "DROP TRIGGER x402_payment_keeps_its_terms"
        await d.ledger.file.alone(lambda db: db.execute(drop))
        old = name.rpartition(" ")[2]
        await d.ledger.file.alone(lambda db: db.execute("UPDATE x402_payment SET request=?", (old,)))
        assert (await d.buy(payment)).sold.charged == 2
        d.clock.advance(3600)
        with pytest.raises(PaymentUsed, match="used for a call"):
            await d.buy(payment)


async def test_an_authorisation_under_two_signatures_is_one_payment(tmp_path):
    whole = payload()
    async with desk(tmp_path) as d:
        await d.buy(wire.header(whole))
        whole["payload"]["signature"] = f"0x{'1' * 130}"
        for arguments in ({}, {"history": "30d"}):
            with pytest.raises(PaymentUsed, match="another signature") as caught:
                await d.buy(wire.header(whole), **arguments)
            assert wire.REQUIRED not in caught.value.headers
        assert (d.script.asked, d.script.settlements) == (["verify", "settle"], 1)


@pytest.mark.parametrize(
    "changed", [{}, {"validBefore": "1"}, {"value": "1"}, {"network": "eip155:1"}, {"to": "0x" + "11" * 20}]
)
async def test_an_authorisation_that_the_chain_has_spent_is_never_answered_with_an_offer(tmp_path, changed):
    """Whatever else is wrong with the payment, and whatever the facilitator says of it."""
    chain = Chain(AuthorisationState("void"))
    async with desk(tmp_path, chain=chain) as d:
        d.script.verifies = lambda said: httpx.Response(200, json={"isValid": False, "invalidReason": "insufficient_x"})
        with pytest.raises(PaymentUsed) as caught:
            await d.buy(signed(**changed))
        assert wire.REQUIRED not in caught.value.headers
        with pytest.raises(PaymentUsed) as caught:
            await d.topup(signed(2_000_000, **changed))
        assert wire.REQUIRED not in caught.value.headers

        chain.seen = AuthorisationState("unused")
        with pytest.raises(PaymentRequired) as unused:
            await d.buy(signed(**changed))
        assert wire.REQUIRED in unused.value.headers
        assert await d.states() == []


async def test_while_the_chain_is_silent_a_payment_that_does_not_fit_gets_no_offer(tmp_path):
    async with desk(tmp_path, chain=Chain(None)) as d:
        with pytest.raises(ChainUnavailable) as caught:
            await d.buy(signed(validBefore="1"))
        assert wire.REQUIRED not in caught.value.headers


async def test_a_settlement_that_failed_is_looked_up_before_anything_is_offered(tmp_path):
    """Another account may have submitted the payment, and the facilitator see only that its own attempt failed."""
    chain = Chain(AuthorisationState("paid", bytes([9]) * 32))
    async with desk(tmp_path, chain=chain) as d:
        d.script.settles = lambda said: failed("insufficient_funds")
        assert (await d.buy(signed())).settlement["transaction"] == f"0x{'09' * 32}"
        chain.seen = AuthorisationState("void")
        with pytest.raises(PaymentUsed):
            await d.buy(signed())
        chain.seen = None
        with pytest.raises(SettlementPending):
            await d.buy(signed())
        chain.seen = AuthorisationState("unused")
        with pytest.raises(PaymentRequired) as caught:
            await d.buy(signed())
        assert wire.REQUIRED in caught.value.headers
        assert await d.states() == ["settled", "settling"]


async def test_two_calls_racing_for_one_authorisation(tmp_path):
    """Each is verified and answered; one of them is paid for."""
    one, other = payload(), payload()
    other["payload"]["authorization"] = one["payload"]["authorization"]
    async with desk(tmp_path) as d:
        outcomes = []

        async def buy(whole, **arguments) -> None:
            try:
                outcomes.append(await d.buy(wire.header(whole), **arguments))
            except PaymentUsed as refusal:
                outcomes.append(refusal)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(buy, one)
            tasks.start_soon(lambda: buy(other, history="30d"))

        assert d.script.settlements == 1
        assert sum(isinstance(outcome, PaymentUsed) for outcome in outcomes) == 1


# --- never settled for what is not owed ---


@proves("x402.unsettled")
async def test_nothing_is_taken_when_no_source_answers(tmp_path):
    async with desk(tmp_path) as d:
        d.engine.internet.serves(FIRST, DOWN)
        d.engine.internet.serves(SECOND, DOWN)
        with pytest.raises(UpstreamUnavailable) as caught:
            await d.buy(signed())

        assert d.script.asked == ["verify"]
        assert await d.states() == []
        verdict = await d.evidence.verify(caught.value.headers["X-Service-Receipt"])
        assert (verdict["core"]["no_charge_reason"], verdict["core"]["credits_charged"]) == ("5xx", 0)


async def test_a_stale_answer_is_given_for_nothing_and_one_authorisation_gets_no_second_one(tmp_path):
    payment = signed(validBefore=str(NOW + 7200))
    async with desk(tmp_path) as d:
        await d.buy(signed())
        d.clock.advance(600)
        d.engine.internet.serves(FIRST, DOWN)
        d.engine.internet.serves(SECOND, DOWN)
        sold, settlement = await d.buy(payment)

        assert (sold.rendered.stale, sold.reason, sold.charged, settlement) == (True, "stale_data", 0, None)
        assert d.script.settlements == 1
        d.engine.internet.serves(FIRST, {"value": 5})
        d.engine.internet.serves(SECOND, {"value": 6})
        d.clock.advance(600)
        again = await d.buy(payment)
        assert (again.sold.rendered.payload, again.settlement) == (sold.rendered.payload, None)
        with pytest.raises(IdempotencyConflict, match="already sent with another call"):
            await d.buy(payment, history="30d")
        assert d.script.settlements == 1
        assert (await d.buy(signed(validBefore=str(NOW + 7200)))).sold.charged == 2


async def test_authorisations_buy_ten_stale_answers_an_hour_and_fresh_ones_without_end(tmp_path):
    async with desk(tmp_path, limits=True) as d:
        await d.buy(signed())
        d.clock.advance(600)
        d.engine.internet.serves(FIRST, DOWN)
        d.engine.internet.serves(SECOND, DOWN)
        for _ in range(10):
            assert (await d.buy(signed(validBefore=LATER))).sold.reason == "stale_data"
        for signer, of in ((PAYER_TEXT, "premium_report"), (OTHER_TEXT, "premium tools by x402")):
            with pytest.raises(RateLimited, match=f"10 calls of {of} an hour may end without a charge"):
                await d.buy(signed(validBefore=LATER, **{"from": signer}))
        ((booked,),) = await d.rows("SELECT count(*) FROM uncharged_call")
        d.engine.internet.serves(FIRST, {"value": 5})
        d.engine.internet.serves(SECOND, {"value": 6})
        d.clock.advance(60)
        assert (await d.buy(signed(validBefore=LATER))).sold.charged == 2
        assert (booked, d.script.settlements) == (10, 2)


async def test_what_fails_for_nothing_is_bounded_too(tmp_path):
    async with desk(tmp_path, limits=True) as d:
        for _ in range(10):
            with pytest.raises(InternalError):
                await d.buy(signed(60_000), "premium_broken")
        with pytest.raises(RateLimited):
            await d.buy(signed(60_000), "premium_broken")
        assert await d.rows("SELECT count(*) FROM uncharged_call") == [(10,)]


@proves("x402.unsettled")
@pytest.mark.parametrize(
    ("name", "reason"),
    [("premium_broken", "5xx"), ("premium_liar", "schema_failure"), ("premium_void", "empty_result")],
)
async def test_nothing_is_taken_for_a_failure_or_for_nothing(tmp_path, name, reason):
    async with desk(tmp_path) as d:
        if name == "premium_void":
            sold, settlement = await d.buy(signed(60_000), name)
            assert (sold.reason, sold.charged, settlement) == (reason, 0, None)
        else:
            with pytest.raises(InternalError) as caught:
                await d.buy(signed(60_000), name)
            verdict = await d.evidence.verify(caught.value.headers["X-Service-Receipt"])
            assert verdict["core"]["no_charge_reason"] == reason
        assert d.script.asked == ["verify"]


async def test_nothing_is_taken_from_a_caller_who_hangs_up_in_time(tmp_path):
    async with desk(tmp_path) as d:
        with anyio.CancelScope() as caller:

            async def slow(request: httpx.Request) -> httpx.Response:
                caller.cancel()
                await anyio.sleep_forever()
                raise NotImplementedError

            d.engine.internet.serves(FIRST, slow)
            d.engine.internet.serves(SECOND, slow)
            await d.buy(signed())
        assert d.script.asked == ["verify"]
        assert await d.states() == []


async def test_a_caller_who_hangs_up_too_late_gets_the_answer_for_the_same_payment(tmp_path):
    payment = signed()
    async with desk(tmp_path) as d:
        with anyio.CancelScope() as scope:
            d.script.settles = lambda said: (scope.cancel(), d.script.settle(said))[1]
            await d.buy(payment)
        assert scope.cancelled_caught
        assert await d.states() == ["settled"]
        sold, settlement = await d.buy(payment)
        assert (sold.charged, settlement["success"]) == (2, True)
        assert d.script.settlements == 1


# --- refusals ---


@pytest.mark.parametrize("text", ["", "garbage", "e30=", "{}"])
async def test_what_is_no_payment_is_a_bad_request(tmp_path, text):
    async with desk(tmp_path) as d:
        with pytest.raises(InvalidArguments) as caught:
            await d.buy(text)
        assert caught.value.extra["errors"][0]["loc"] == "PAYMENT-SIGNATURE"
        assert d.script.asked == []


async def test_a_payment_for_less_is_refused_with_an_offer(tmp_path):
    async with desk(tmp_path) as d:
        with pytest.raises(PaymentRequired) as caught:
            await d.buy(signed(20_000))
        assert caught.value.code == "payment_required"
        assert response_of(caught.value)["errorReason"] == "invalid_exact_evm_payload_authorization_value_mismatch"
        offer = wire.unheader(caught.value.headers[wire.REQUIRED])
        assert offer["accepts"][0]["amount"] == "40000"
        assert d.script.asked == []


@proves("x402.verified-first")
async def test_a_payment_that_is_not_verified_is_refused_before_anything_runs(tmp_path):
    async with desk(tmp_path) as d:
        d.script.verifies = lambda said: httpx.Response(
            200, json={"isValid": False, "invalidReason": "invalid_exact_evm_insufficient_balance"}
        )
        with pytest.raises(PaymentRequired) as caught:
            await d.buy(signed())
        assert response_of(caught.value)["errorReason"] == "invalid_exact_evm_insufficient_balance"
        assert d.engine.internet.asked == []


async def test_a_receipt_that_cannot_be_made_does_not_keep_what_was_paid_for(tmp_path):
    async with desk(tmp_path) as d:

        class Broken:
            async def sign(self, sale):
                raise OSError("disk")

            async def unheard(self, *facts):
                raise NotImplementedError

        d.exact._receipts = Broken()
        sold, settlement = await d.buy(signed())
        assert (sold.charged, sold.receipt, settlement["success"]) == (2, None, True)


async def test_without_receipts_answers_are_sold_all_the_same(tmp_path):
    async with desk(tmp_path) as d:
        d.exact._receipts = None
        assert (await d.buy(signed())).sold.receipt is None
        with pytest.raises(InternalError) as caught:
            await d.buy(signed(60_000), "premium_broken")
        assert caught.value.headers == {}


async def test_a_refusal_without_a_receipt_is_still_a_refusal(tmp_path):
    async with desk(tmp_path) as d:

        class Broken:
            async def sign(self, sale):
                raise OSError("disk")

        d.exact._receipts = Broken()
        with pytest.raises(InternalError):
            await d.buy(signed(60_000), "premium_broken")


async def test_a_tool_that_refuses_is_not_paid_for(tmp_path, monkeypatch):
    async def refuse(*given: object) -> None:
        raise InvalidArguments("no", errors=[])

    async with desk(tmp_path) as d:
        monkeypatch.setattr(d.engine.answers, "get", refuse)
        with pytest.raises(InvalidArguments):
            await d.buy(signed())
        assert d.script.asked == ["verify"]


async def test_what_became_of_a_payment(tmp_path):
    payment = signed()
    async with desk(tmp_path) as d:
        assert await d.exact.find_settlement(payment) is None
        assert await d.exact.find_settlement("garbage") is None
        assert await d.exact.find_settlement(None) is None
        await d.buy(payment)
        assert (await d.exact.find_settlement(payment))["success"] is True
