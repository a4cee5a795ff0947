"""One payment, one answer: what is taken, and when nothing is."""

import anyio
import httpx
import pytest

from tests.engine.toy import FIRST, SECOND
from tests.x402.parts import NOW, PAYER, REGISTRY, Chain, Script, desk, failed, payload, signed
from toolserver.errors import (
    CallRejected,
    ChainUnavailable,
    IdempotencyConflict,
    InternalError,
    InvalidArguments,
    PaymentRequired,
    SettlementPending,
    UpstreamUnavailable,
)
from toolserver.payments.deposit import checksummed
from toolserver.payments.x402 import wire
from toolserver.payments.x402.facilitator import Facilitator, FacilitatorDown
from toolserver.payments.x402.settling import Seen

DOWN = httpx.Response(500)
TX = bytes([9]) * 32
PAYER_TEXT = checksummed(PAYER)


def told(rejected: CallRejected) -> dict[str, object]:
    """What PAYMENT-RESPONSE of a refusal says."""
    return wire.unheader(rejected.headers[wire.RESPONSE])


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


async def test_a_payment_does_not_buy_another_answer(tmp_path):
    payment = signed()
    async with desk(tmp_path) as d:
        await d.buy(payment)
        with pytest.raises(IdempotencyConflict):
            await d.buy(payment, history="30d")
        d.clock.advance(24 * 3600 + 1)
        d.script.made.clear()
        with pytest.raises(PaymentRequired, match="valid_before"):
            await d.buy(payment)
        assert d.script.settlements == 1


async def test_an_authorisation_under_two_signatures_is_one_payment(tmp_path):
    whole = payload()
    async with desk(tmp_path) as d:
        await d.buy(wire.header(whole))
        whole["payload"]["signature"] = f"0x{'1' * 130}"
        with pytest.raises(PaymentRequired, match="nonce_already_used"):
            await d.buy(wire.header(whole), history="30d")
        assert d.script.settlements == 1


async def test_two_calls_racing_for_one_authorisation(tmp_path):
    """Each is verified and answered; one of them is paid for."""
    one, other = payload(), payload()
    other["payload"]["authorization"] = one["payload"]["authorization"]
    async with desk(tmp_path) as d:
        outcomes = []

        async def buy(whole, **arguments) -> None:
            try:
                outcomes.append(await d.buy(wire.header(whole), **arguments))
            except PaymentRequired as refusal:
                outcomes.append(refusal)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(buy, one)
            tasks.start_soon(lambda: buy(other, history="30d"))

        assert d.script.settlements == 1
        assert sum(isinstance(outcome, PaymentRequired) for outcome in outcomes) == 1


# --- never settled for what is not owed ---


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


async def test_a_stale_answer_is_given_for_nothing_and_the_payment_stays_good(tmp_path):
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
        sold, settlement = await d.buy(payment)
        assert (sold.charged, d.script.settlements) == (2, 2)
        assert settlement["success"] is True


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
        with anyio.move_on_after(0.05):

            async def slow(request: httpx.Request) -> httpx.Response:
                await anyio.sleep(5)
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
        assert told(caught.value)["errorReason"] == "invalid_exact_evm_payload_authorization_value_mismatch"
        offer = wire.unheader(caught.value.headers[wire.REQUIRED])
        assert offer["accepts"][0]["amount"] == "40000"
        assert d.script.asked == []


async def test_a_payment_that_is_not_verified_is_refused_before_anything_runs(tmp_path):
    async with desk(tmp_path) as d:
        d.script.verifies = lambda said: httpx.Response(
            200, json={"isValid": False, "invalidReason": "invalid_exact_evm_insufficient_balance"}
        )
        with pytest.raises(PaymentRequired) as caught:
            await d.buy(signed())
        assert told(caught.value)["errorReason"] == "invalid_exact_evm_insufficient_balance"
        assert d.engine.internet.asked == []


async def test_a_settlement_that_certainly_failed_leaves_the_payment_as_it_was(tmp_path):
    payment = signed()
    async with desk(tmp_path) as d:
        d.script.settles = lambda said: failed("invalid_exact_evm_insufficient_balance")
        with pytest.raises(PaymentRequired) as caught:
            await d.buy(payment)
        assert told(caught.value) == {
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


# --- faults of the facilitator ---

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
            assert told(caught.value)["errorReason"] == "settlement_pending"
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
        assert told(caught.value)["transaction"] == f"0x{TX.hex()}"
        assert d.script.settlements == 2
        d.script.settles = httpx.ReadTimeout("slow")
        with pytest.raises(SettlementPending) as caught:
            await d.buy(payment)
        assert told(caught.value)["transaction"] == f"0x{TX.hex()}"


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
        chain.seen = Seen("paid", TX)
        sold, settlement = await d.buy(payment)
        assert (sold.charged, settlement["transaction"]) == (2, f"0x{TX.hex()}")
        assert len(d.script.made) == 1


async def test_a_payment_that_somebody_else_sent_to_the_chain_is_ours(tmp_path):
    async with desk(tmp_path, chain=Chain(Seen("paid", TX))) as d:
        d.script.settles = lambda said: failed("invalid_exact_evm_nonce_already_used")
        assert (await d.buy(signed())).settlement["transaction"] == f"0x{TX.hex()}"


@pytest.mark.parametrize("seen", [Seen("void"), Seen("unused", None, NOW + 1000)])
async def test_a_pending_payment_that_the_chain_will_never_have_is_given_up(tmp_path, seen):
    payment, chain = signed(), Chain()
    async with desk(tmp_path, chain=chain) as d:
        d.script.settles = httpx.ReadTimeout("slow")
        with pytest.raises(SettlementPending):
            await d.buy(payment)
        chain.seen = Seen("unused", None, NOW + 100)
        with pytest.raises(SettlementPending):
            await d.buy(payment)
        chain.seen = seen
        with pytest.raises(PaymentRequired) as caught:
            await d.buy(payment)
        assert wire.REQUIRED in caught.value.headers
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


async def test_a_slow_facilitator_is_given_up_in_time(monkeypatch):
    async def never(request: httpx.Request) -> httpx.Response:
        await anyio.sleep(60)
        raise NotImplementedError

    slow = Facilitator("https://pay.example", verify_s=0.01, settle_s=0.01, transport=httpx.MockTransport(never))
    monkeypatch.setattr("toolserver.payments.x402.facilitator.CONNECT_S", 0.01)
    with anyio.fail_after(2):
        with pytest.raises(FacilitatorDown):
            await slow.verify({}, {}, "0x")
        assert (await slow.settle({}, {}, "0x")).state == "pending"
        with pytest.raises(FacilitatorDown):
            await slow.supported()
    await slow.aclose()


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
        assert told(caught.value)["transaction"] == f"0x{TX.hex()}"


async def test_a_settlement_that_is_seen_at_the_second_question_is_settled(tmp_path):
    async with desk(tmp_path) as d:

        def settles(said: dict[str, object]) -> httpx.Response:
            return failed("settlement_pending", f"0x{TX.hex()}") if d.script.settlements == 1 else d.script.settle(said)

        d.script.settles = settles
        assert (await d.buy(signed())).settlement["success"] is True


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
        assert await d.exact.told(payment) is None
        assert await d.exact.told("garbage") is None
        assert await d.exact.told(None) is None
        await d.buy(payment)
        assert (await d.exact.told(payment))["success"] is True


async def test_what_a_facilitator_supports():
    async def ask(answer: httpx.Response) -> bool:
        one = Facilitator("https://pay.example", transport=httpx.MockTransport(lambda request: answer))
        try:
            return await one.supported()
        finally:
            await one.aclose()

    def kinds(**kind: object) -> httpx.Response:
        return httpx.Response(
            200, json={"kinds": [{"x402Version": 2, "scheme": "exact", "network": "eip155:8453"} | kind]}
        )

    assert await ask(kinds())
    assert not await ask(kinds(network="eip155:1"))
    assert not await ask(kinds(scheme="upto"))
    assert not await ask(kinds(x402Version=1))
    for unusable in (httpx.Response(500), httpx.Response(200, text="x")):
        with pytest.raises(FacilitatorDown):
            await ask(unusable)


async def test_a_facilitator_is_shown_its_token_and_no_words_of_it_are_passed_on(tmp_path):
    seen = []

    async def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"isValid": False, "invalidReason": "<script>alert(1)</script>"})

    one = Facilitator("https://pay.example/v2", token="secret", transport=httpx.MockTransport(answer))
    assert await one.verify({}, {}, "0x") == "invalid_payload"
    assert seen[0].headers["authorization"] == "Bearer secret"
    assert str(seen[0].url) == "https://pay.example/v2/verify"
    await one.aclose()


async def test_a_lost_answer_is_not_even_noticed_where_the_chain_can_be_looked_at(tmp_path):
    async with desk(tmp_path, chain=Chain(Seen("paid", TX))) as d:
        d.script.loses = httpx.ReadTimeout("slow")
        assert (await d.buy(signed())).settlement["transaction"] == f"0x{TX.hex()}"


async def test_a_settled_payment_is_never_settled_for_something_else(tmp_path):
    payment = signed()
    async with desk(tmp_path) as d:
        await d.buy(payment)
        offer = d.exact.offer(REGISTRY["premium_report"])
        with pytest.raises(PaymentRequired, match="nonce_already_used"):
            await d.settling.settle(wire.read(payment), offer, "something else")
        assert d.script.settlements == 1
