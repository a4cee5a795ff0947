"""What a facilitator says over HTTP, and what of it is believed."""

import anyio
import httpx
import msgspec
import pytest

from tests.money.x402.parts import failed
from toolserver.money.purchases.units import NETWORK
from toolserver.money.x402.facilitator import MOST_BYTES, Facilitator
from toolserver.money.x402.wire import FacilitatorDown, SettleAnswer

PAYER = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
TX = bytes([9]) * 32
SETTLED = {"success": True, "transaction": f"0x{TX.hex()}", "network": NETWORK, "payer": PAYER}


async def settle(answer: httpx.Response | Exception, payer: str = PAYER) -> SettleAnswer:
    """What is made of an answer to /settle."""

    def handle(request: httpx.Request) -> httpx.Response:
        if isinstance(answer, Exception):
            raise answer
        return answer

    one = Facilitator("https://pay.example", transport=httpx.MockTransport(handle))
    try:
        return await one.settle({"a": 1}, {"b": 2}, payer)
    finally:
        await one.aclose()


async def test_a_slow_facilitator_is_given_up_in_time():
    async def never(request: httpx.Request) -> httpx.Response:
        await anyio.sleep(60)
        raise NotImplementedError

    transport = httpx.MockTransport(never)
    slow = Facilitator("https://pay.example", verify_s=0.01, settle_s=0.01, connect_s=0.01, transport=transport)
    with anyio.fail_after(20):
        with pytest.raises(FacilitatorDown):
            await slow.verify({}, {}, "0x")
        assert (await slow.settle({}, {}, "0x")).state == "pending"
        with pytest.raises(FacilitatorDown):
            await slow.supported()
    await slow.aclose()


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


async def test_the_payment_and_what_it_has_to_fulfil_are_sent_as_version_2():
    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append((request.url.path, msgspec.json.decode(request.content)))
        return httpx.Response(200, json=SETTLED)

    one = Facilitator("https://pay.example/v2", transport=httpx.MockTransport(answer))
    await one.settle({"a": 1}, {"b": 2}, PAYER)
    await one.aclose()
    assert seen == [("/v2/settle", {"x402Version": 2, "paymentPayload": {"a": 1}, "paymentRequirements": {"b": 2}})]


async def test_a_settlement_is_believed_when_transaction_network_and_payer_are_right():
    assert await settle(httpx.Response(200, json=SETTLED)) == SettleAnswer("settled", TX)
    assert (await settle(httpx.Response(200, json=SETTLED), PAYER.lower())).state == "settled"


@pytest.mark.parametrize(
    "lie", [{"transaction": ""}, {"transaction": "0x12"}, {"network": "eip155:1"}, {"payer": "0x" + "11" * 20}]
)
async def test_a_settlement_that_cannot_be_ours_is_pending(lie):
    assert (await settle(httpx.Response(200, json=SETTLED | lie))).state == "pending"


@pytest.mark.parametrize(
    "reason", ["invalid_exact_evm_insufficient_balance", "insufficient_funds", "unsupported_scheme", "asset_mismatch"]
)
async def test_a_refusal_before_the_chain_was_asked_is_certain(reason):
    assert await settle(failed(reason)) == SettleAnswer("failed", None, reason)


@pytest.mark.parametrize(
    ("reason", "tx"),
    [
        ("invalid_transaction_state", ""),
        ("invalid_exact_evm_transfer_event_mismatch", ""),
        ("unexpected_error", ""),
        ("insufficient_funds", f"0x{TX.hex()}"),
    ],
)
async def test_a_failure_that_may_have_reached_the_chain_is_pending(reason, tx):
    assert (await settle(failed(reason, tx))).state == "pending"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413, 415, 422, 429])
async def test_a_request_that_is_refused_settles_nothing(status):
    with pytest.raises(FacilitatorDown):
        await settle(httpx.Response(status))


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(500),
        httpx.Response(302, headers={"location": "https://else.example"}),
        httpx.Response(200, content=b" " * (MOST_BYTES + 1)),
        httpx.Response(200, content=b"[" * 60_000),
        httpx.ReadError("reset"),
    ],
)
async def test_an_answer_to_settle_that_cannot_be_used_is_pending(answer):
    assert (await settle(answer)).state == "pending"


async def test_nothing_is_settled_where_no_connection_was_made():
    with pytest.raises(FacilitatorDown, match="ConnectError"):
        await settle(httpx.ConnectError("https://secret.example"))
