"""One payment is made at most once, whatever the facilitator says, loses or leaves open."""

import anyio
import httpx
import pytest

from tests.money.x402.parts import NOW, PAYER_TEXT, REGISTRY, TERMS, Chain, Script, desk, failed, response_of, signed
from tests.requirements import proves
from toolserver.core.waiting_room import waiting_client
from toolserver.errors import ChainUnavailable, PaymentRequired, PaymentUsed, SettlementPending
from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.x402 import wire
from toolserver.money.x402.offers import offer_call
from toolserver.money.x402.settlement import (
    VERIFY_WAITS,
    AuthorisationState,
    leave_pending,
    refuse_payment,
    refuse_unknown_use,
    say_unavailable,
)
from toolserver.money.x402.wire import FacilitatorDown

TX = bytes([9]) * 32
TWO = 2 * ATOMIC
KEY = "a-long-idempotency-key"


async def test_a_settlement_that_certainly_failed_leaves_the_payment_as_it_was(tmp_path):
    payment = signed()
    async with desk(tmp_path) as d:
        d.script.settles = lambda said: failed("invalid_exact_evm_insufficient_balance")
        with pytest.raises(PaymentRequired) as caught:
            await d.buy(payment)
        assert response_of(caught.value) == {
            "success": False,
            "errorReason": "invalid_exact_evm_insufficient_balance",
            "transaction": "",
            "network": "eip155:8453",
            "payer": PAYER_TEXT,
        }
        assert wire.REQUIRED in caught.value.headers
        assert await d.states() == []
        d.script.settles = None
        assert (await d.buy(payment)).sold.charged == 2


UNUSABLE = {
    "html": lambda said: httpx.Response(200, html="<h1>Welcome</h1>"),
    "empty": lambda said: httpx.Response(200, content=b""),
    "an array": lambda said: httpx.Response(200, json=[]),
    "deep": lambda said: httpx.Response(200, content=b"[" * 60_000),
    "endless": lambda said: httpx.Response(200, content=b" " * 200_000),
    "502": lambda said: httpx.Response(502, text="bad gateway"),
    "302": lambda said: httpx.Response(302, headers={"location": "https://else.example"}),
    "reset": httpx.ReadError("reset"),
    "timeout": httpx.ReadTimeout("slow"),
}


@proves("x402.spent-nonce")
async def test_a_payment_whose_nonce_the_chain_has_and_we_do_not_know_gets_no_offer(tmp_path):
    """As after a restore from a backup: its sender would pay twice."""
    used = {"isValid": False, "invalidReason": "invalid_exact_evm_nonce_already_used", "payer": PAYER_TEXT}
    async with desk(tmp_path) as d:
        d.script.verifies = lambda said: httpx.Response(200, json=used)
        with pytest.raises(PaymentUsed, match="ask the operator") as caught:
            await d.buy(signed())
        with pytest.raises(PaymentUsed) as topped:
            await d.topup(signed(TWO))
        assert wire.REQUIRED not in caught.value.headers | topped.value.headers
        assert await d.states() == []


NOT_ASKED = {
    "no connection": httpx.ConnectError("refused"),
    "connect timeout": httpx.ConnectTimeout("slow"),
    "401": lambda said: httpx.Response(401, json={"error": "key"}),
    "429": lambda said: httpx.Response(429),
}


@pytest.mark.parametrize("fault", [*UNUSABLE.values(), *NOT_ASKED.values()], ids=[*UNUSABLE, *NOT_ASKED])
async def test_when_verifying_fails_nothing_was_done(tmp_path, fault):
    async with desk(tmp_path) as d:
        d.script.verifies = fault
        with pytest.raises(ChainUnavailable) as caught:
            await d.buy(signed())
        assert wire.REQUIRED not in caught.value.headers
        assert d.engine.internet.asked == []
        assert await d.states() == []


class SlowScript(Script):
    """A facilitator that takes its time to check payments."""

    is_slow = True

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        if self.is_slow and request.url.path.endswith("verify"):
            await anyio.sleep_forever()
        return await super().__call__(request)


async def test_a_client_whose_payments_take_long_to_check_keeps_nobody_else_from_the_facilitator(tmp_path):
    script, refused, share_is_taken = SlowScript(), [], anyio.Event()

    async def press(d):
        waiting_client.set("192.0.2.66")
        try:
            await d.buy(signed())
        except ChainUnavailable as refusal:
            refused.append(refusal.detail)
            if len(refused) == 20 - VERIFY_WAITS.share:
                share_is_taken.set()

    async with desk(tmp_path, script=script) as d, anyio.create_task_group() as strangers:
        for _ in range(20):
            strangers.start_soon(press, d)
        with anyio.fail_after(10):
            await share_is_taken.wait()
        assert d.settling.room.count() == ("facilitator", 8, 64, {"share": 12})
        assert refused == ["Too many payments are being checked. This one was not made."] * 12
        script.is_slow = False
        waiting_client.set("192.0.2.1")
        assert (await d.buy(signed())).sold.charged == 2
        strangers.cancel_scope.cancel()
    assert len(d.settling.room) == 0


@pytest.mark.parametrize("fault", NOT_ASKED.values(), ids=NOT_ASKED)
async def test_when_nobody_could_be_asked_to_settle_nothing_was_taken(tmp_path, fault):
    payment = signed()
    async with desk(tmp_path) as d:
        d.script.settles = fault
        with pytest.raises(ChainUnavailable):
            await d.buy(payment)
        assert await d.states() == []
        d.script.settles = None
        assert (await d.buy(payment)).sold.charged == 2


@pytest.mark.parametrize("fault", UNUSABLE.values(), ids=UNUSABLE)
async def test_when_nobody_knows_whether_it_is_settled_there_is_no_offer(tmp_path, fault):
    payment = signed()
    async with desk(tmp_path) as d:
        d.script.settles = fault
        for _ in range(2):
            with pytest.raises(SettlementPending) as caught:
                await d.buy(payment)
            assert wire.REQUIRED not in caught.value.headers
            assert response_of(caught.value)["errorReason"] == "settlement_pending"
            assert "Retry-After" in caught.value.headers
        assert await d.states() == ["settling"]
        d.script.settles = None
        assert (await d.buy(payment)).settlement["success"] is True
        assert len(d.script.made) == 1


LIES = {
    "no transaction": {"transaction": ""},
    "not a hash": {"transaction": "0x1234"},
    "another chain": {"network": "eip155:1"},
    "another payer": {"payer": "0x" + "11" * 20},
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
async def test_a_settlement_that_cannot_be_ours_is_not_believed(tmp_path, lie):
    async with desk(tmp_path) as d:
        good = {"success": True, "transaction": f"0x{TX.hex()}", "network": "eip155:8453", "payer": PAYER_TEXT}
        d.script.settles = lambda said: httpx.Response(200, json=good | lie)
        with pytest.raises(SettlementPending):
            await d.buy(signed())
        assert await d.states() == ["settling"]


async def test_a_verdict_about_somebody_else_is_not_believed(tmp_path):
    async with desk(tmp_path) as d:
        d.script.verifies = lambda said: httpx.Response(200, json={"isValid": True, "payer": "0x" + "11" * 20})
        with pytest.raises(ChainUnavailable):
            await d.buy(signed())


async def test_a_pending_settlement_is_asked_about_once_more_and_names_its_transaction(tmp_path):
    payment = signed()
    async with desk(tmp_path) as d:
        d.script.settles = lambda said: failed("settlement_pending", f"0x{TX.hex()}")
        with pytest.raises(SettlementPending) as caught:
            await d.buy(payment)
        assert response_of(caught.value)["transaction"] == f"0x{TX.hex()}"
        assert d.script.settlements == 2
        d.script.settles = httpx.ReadTimeout("slow")
        with pytest.raises(SettlementPending) as caught:
            await d.buy(payment)
        assert response_of(caught.value)["transaction"] == f"0x{TX.hex()}"


async def test_a_failure_with_a_transaction_may_yet_be_none(tmp_path):
    async with desk(tmp_path) as d:
        d.script.settles = lambda said: failed("transaction_failed", f"0x{TX.hex()}")
        with pytest.raises(SettlementPending):
            await d.buy(signed())


async def test_a_settlement_that_was_made_and_not_heard_of_is_found_on_the_chain(tmp_path):
    payment, chain = signed(), Chain()
    async with desk(tmp_path, chain=chain) as d:
        d.script.loses = httpx.ReadTimeout("slow")
        for _ in range(2):  # the second time, that the nonce is used says only that somebody used it
            with pytest.raises(SettlementPending):
                await d.buy(payment)
        chain.seen = AuthorisationState("paid", TX)
        sold, settlement = await d.buy(payment)
        assert (sold.charged, settlement["transaction"]) == (2, f"0x{TX.hex()}")
        assert len(d.script.made) == 1


async def test_a_payment_that_somebody_else_sent_to_the_chain_is_ours(tmp_path):
    async with desk(tmp_path, chain=Chain(AuthorisationState("paid", TX))) as d:
        d.script.settles = lambda said: failed("invalid_exact_evm_nonce_already_used")
        assert (await d.buy(signed())).settlement["transaction"] == f"0x{TX.hex()}"


@pytest.mark.parametrize("seen", [AuthorisationState("void"), AuthorisationState("unused", None, NOW + 1000)])
async def test_a_pending_payment_that_the_chain_will_never_have_is_given_up(tmp_path, seen):
    payment, chain = signed(), Chain()
    async with desk(tmp_path, chain=chain) as d:
        d.script.settles = httpx.ReadTimeout("slow")
        with pytest.raises(SettlementPending):
            await d.buy(payment)
        chain.seen = AuthorisationState("unused", None, NOW + 100)
        with pytest.raises(SettlementPending):
            await d.buy(payment)
        chain.seen = seen
        with pytest.raises(PaymentRequired if seen.state == "unused" else PaymentUsed) as caught:
            await d.buy(payment)
        assert (wire.REQUIRED in caught.value.headers) == (seen.state == "unused")
        assert await d.states() == []


async def test_a_pending_payment_survives_a_restart(tmp_path):
    payment = signed()
    async with desk(tmp_path) as d:
        d.script.settles = httpx.ReadTimeout("slow")
        with pytest.raises(SettlementPending):
            await d.buy(payment)
    async with desk(tmp_path, script=Script()) as d:
        assert (await d.buy(payment)).sold.charged == 2
        assert d.script.settlements == 1


async def test_a_pending_payment_stays_pending_while_nobody_can_be_asked(tmp_path):
    payment = signed()
    async with desk(tmp_path) as d:
        d.script.settles = httpx.ReadTimeout("slow")
        with pytest.raises(SettlementPending):
            await d.buy(payment)
        d.script.settles = httpx.ConnectError("refused")
        with pytest.raises(SettlementPending):
            await d.buy(payment)


async def test_the_second_question_about_a_pending_settlement_may_go_unanswered(tmp_path):
    async with desk(tmp_path) as d:

        def settles(said: dict[str, object]) -> httpx.Response:
            if d.script.settlements == 1:
                return failed("settlement_pending", f"0x{TX.hex()}")
            raise httpx.ConnectError("gone")

        d.script.settles = settles
        with pytest.raises(SettlementPending) as caught:
            await d.buy(signed())
        assert response_of(caught.value)["transaction"] == f"0x{TX.hex()}"


async def test_a_settlement_that_is_seen_at_the_second_question_is_settled(tmp_path):
    async with desk(tmp_path) as d:

        def settles(said: dict[str, object]) -> httpx.Response:
            return failed("settlement_pending", f"0x{TX.hex()}") if d.script.settlements == 1 else d.script.settle(said)

        d.script.settles = settles
        assert (await d.buy(signed())).settlement["success"] is True


async def test_a_lost_answer_is_not_even_noticed_where_the_chain_can_be_looked_at(tmp_path):
    async with desk(tmp_path, chain=Chain(AuthorisationState("paid", TX))) as d:
        d.script.loses = httpx.ReadTimeout("slow")
        assert (await d.buy(signed())).settlement["transaction"] == f"0x{TX.hex()}"


async def test_a_settled_payment_is_never_settled_for_something_else(tmp_path):
    payment = signed()
    async with desk(tmp_path) as d:
        await d.buy(payment)
        offer = d.exact.offer(REGISTRY["premium_report"])
        with pytest.raises(PaymentUsed, match="was used for GET /api/pro/report"):
            await d.settling.settle(wire.read_payment(payment), offer, "something else")
        assert d.script.settlements == 1


async def test_a_payment_that_another_instance_begins_at_this_moment_is_no_other_one(tmp_path):
    """Each instance looks for the payment before any of them has stored it, and compares it with the offer later."""
    payment = signed()
    async with desk(tmp_path) as d:
        sent, offer = wire.read_payment(payment), d.exact.offer(REGISTRY["premium_report"])
        await d.settling.check_fit(sent, offer)
        await d.buy(payment)
        await d.settling.check_fit(sent, offer)
        assert (await d.buy(payment)).sold.charged == 2
        assert d.script.settlements == 1


@pytest.mark.parametrize("seen", [AuthorisationState("unused", None, 0.0), AuthorisationState("void")])
async def test_a_settlement_that_the_chain_does_not_have_is_not_credited(tmp_path, seen):
    chain = Chain(seen)
    payment = signed(TWO)
    async with desk(tmp_path, chain=chain) as d:
        with pytest.raises(SettlementPending):
            await d.topup(payment, key=KEY)
        assert (await d.minted(), await d.states()) == (0, ["settling"])
        chain.seen = AuthorisationState("paid", TX)
        assert (await d.topup(payment, key=KEY)).tx == TX


async def test_a_chain_that_lags_is_given_some_seconds(tmp_path):
    chain = Chain(AuthorisationState("unused", None, 0.0))
    async with desk(tmp_path, chain=chain) as d:
        sleep = d.clock.sleep

        async def later(seconds: float) -> None:
            chain.seen = AuthorisationState("paid", TX)
            await sleep(seconds)

        d.clock.sleep = later
        assert (await d.topup(signed(TWO))).credits == 100


async def test_when_the_chain_cannot_tell_the_facilitator_is_believed(tmp_path):
    async with desk(tmp_path, chain=Chain(None)) as d:
        assert (await d.topup(signed(TWO))).credits == 100


OFFER, PAYMENT = offer_call(TERMS, REGISTRY["premium_report"]), wire.read_payment(signed())


def test_a_payment_that_was_not_made_gets_the_reason_and_the_offer_again():
    refused = refuse_payment(PAYMENT, OFFER, "invalid_payload")

    assert (refused.status, refused.code) == (402, "payment_required")
    assert response_of(refused)["errorReason"] == "invalid_payload"
    assert wire.REQUIRED in refused.headers


def test_nobody_is_offered_anything_whose_payment_may_have_been_made():
    for said in (leave_pending(PAYMENT, bytes(32)), refuse_unknown_use(), say_unavailable(FacilitatorDown("away"))):
        assert wire.REQUIRED not in said.headers
        assert said.status in (409, 503)


def test_a_pending_payment_names_its_transaction_and_when_to_ask_again():
    said = leave_pending(PAYMENT, bytes([1]) * 32)

    assert response_of(said)["transaction"] == f"0x{'01' * 32}"
    assert said.headers["Retry-After"] == str(said.extra["retry_after_seconds"])
