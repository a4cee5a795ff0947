"""x402 over REST and over MCP: headers, statuses, the specification's own 402 body, and never a 5xx for garbage."""

import base64
import json
from typing import Any

import anyio
import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from x402.extensions.bazaar import validate_and_extract
from x402.extensions.bazaar.v1.facilitator import extract_discovery_info_v1
from x402.http.utils import decode_payment_required_header, decode_payment_response_header
from x402.schemas import PaymentRequired
from x402.schemas.v1 import PaymentRequiredV1

from tests.calls.toy import FIRST, SECOND
from tests.mcp.service import asked, headers_for, running
from tests.money.x402.parts import NOW, REGISTRY, TERMS, payload, signed
from tests.money.x402.service import doors
from tests.requirements import proves
from tests.size import sized
from toolserver.mcp import messages
from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.x402 import wire
from toolserver.money.x402.offers import offer_call, offer_topup
from toolserver.registry.listed_schema import listed_schema
from toolserver.registry.registry import Registry

TWO = 2 * ATOMIC
EVERYTHING = Registry.load("tools")
UNKNOWN = f"Bearer svc_live_{'0' * 64}"
DOWN = httpx.Response(500)


# --- REST ---


@proves("x402.offer")
@pytest.mark.parametrize(
    ("bearer", "code"),
    [(None, "missing_token"), ("Bearer x", "invalid_token"), (UNKNOWN, "invalid_token")],
)
async def test_every_premium_402_says_how_to_pay_and_keeps_its_body(tmp_path, bearer, code):
    async with doors(tmp_path) as d:
        answer = await d.buy(None, **({"authorization": bearer} if bearer else {}))

        assert answer.status_code == 402
        assert set(answer.json()) == {"error", "signup", "pricing", "detail", "request_id", "x402Version", "accepts"}
        assert answer.json()["error"] == code
        offer = decode_payment_required_header(answer.headers["payment-required"])
        assert (offer.error, offer.accepts[0].amount) == (code, "40000")
        assert offer.resource.url == "https://data.example/api/pro/report"
        assert "payment-response" not in answer.headers


async def test_a_token_that_does_not_suffice_is_told_how_to_pay(tmp_path):
    async with doors(tmp_path) as d:
        token = (await d.topup(signed(ATOMIC), 1)).json()["token"]
        await d.desk.ledger.charge("call_1", token, 49, endpoint="/api/pro/x")
        for _ in range(2):  # the second time, the answer is at hand
            poor = await d.buy(None, authorization=f"Bearer {token}")
            assert (poor.status_code, poor.json()["error"]) == (402, "insufficient_credits")
            assert "payment-required" in poor.headers
            await d.buy(signed())
        paid = await d.buy(signed(), authorization=f"Bearer {token}")
        assert (paid.status_code, "x-credits-remaining" in paid.headers) == (200, False)
        assert await d.desk.ledger.balance(token) == 1


@proves("x402.offer")
async def test_a_client_of_version_1_reads_the_offer_in_the_body_and_pays(tmp_path):
    async with doors(tmp_path) as d:
        offer = PaymentRequiredV1.model_validate((await d.buy(None)).json())
        (accepted,) = offer.accepts
        assert (accepted.scheme, accepted.network, accepted.max_amount_required) == ("exact", "base", "40000")
        assert accepted.resource == "https://data.example/api/pro/report"
        assert accepted.extra == {"name": "USD Coin", "version": "2"}
        whole = payload()
        first = {"x402Version": 1, "scheme": "exact", "network": "base", "payload": whole["payload"]}
        paid = await d.rest.get("/api/pro/report", headers={"x-payment": wire.header(first)})
        assert (paid.status_code, d.desk.script.settlements) == (200, 1)
        told = {name: wire.unheader(paid.headers[name]) for name in ("payment-response", "x-payment-response")}
        assert told["x-payment-response"] == told["payment-response"] | {"network": "base"}
        again = await d.buy(wire.header(whole))
        assert (again.content, d.desk.script.settlements) == (paid.content, 1)
        assert "x-payment-response" not in again.headers
        topup = {**first, "payload": payload(TWO)["payload"]}
        bought = await d.rest.post(
            "/api/payment/topup", json={"amount_usd": 2}, headers={"x-payment": wire.header(topup)}
        )
        assert (bought.status_code, bought.json()["credits"]) == (200, 100)
        both = {"x-payment": wire.header(first), "payment-signature": signed()}
        assert (await d.rest.get("/api/pro/report", headers=both)).status_code == 400


# --- what is offered, and where ---


async def test_head_never_offers(tmp_path):
    """A client that accepts an offer pays for a response without a body."""
    async with doors(tmp_path) as d:
        for headers in ({}, {"authorization": UNKNOWN}, {"payment-signature": signed(20_000)}):
            answer = await d.rest.head("/api/pro/report", headers=headers)
            assert (answer.status_code, "payment-required" in answer.headers) == (402, False)
        assert d.desk.script.asked == []


async def test_an_empty_unpaid_post_of_a_paid_path_finds_out_what_is_sold(tmp_path):
    async with doors(tmp_path) as d:
        empty = await d.rest.post("/api/pro/report")
        assert (empty.status_code, empty.json()["error"]) == (402, "payment_required")
        offer = decode_payment_required_header(empty.headers["payment-required"])
        assert offer.accepts[0].amount == "40000"
        assert offer.extensions is not None
        assert offer.extensions["bazaar"]["info"]["input"]["method"] == "GET"
        assert PaymentRequiredV1.model_validate(empty.json()).accepts[0].max_amount_required == "40000"
        others = [
            await d.rest.post("/api/pro/report", headers={"authorization": UNKNOWN}),
            await d.rest.post("/api/pro/report", headers={"payment-signature": signed()}),
            await d.rest.post("/api/pro/report", json={}),
            await d.rest.post("/api/number"),
            await d.rest.put("/api/pro/report"),
        ]
        assert [(one.status_code, "payment-required" in one.headers) for one in others] == [(405, False)] * 5
        assert d.desk.script.asked == []
    async with doors(tmp_path, on=False) as d:
        assert (await d.rest.post("/api/pro/report")).status_code == 405


@pytest.mark.parametrize("name", [one.name for one in EVERYTHING if one.credits] + ["payment_topup"])
def test_official_code_lists_every_tool_that_is_sold(name):
    """Official code checks the description against its own schema, and finds method, arguments and answer in it."""
    operation = EVERYTHING[name]
    make = offer_topup(TERMS, ATOMIC, operation) if name == "payment_topup" else offer_call(TERMS, operation)
    header = wire.header(make.required("payment_required"))
    listed = validate_and_extract(wire.unheader(header)["extensions"]["bazaar"])

    assert (listed.valid, listed.errors) == (True, [])
    info, schema = make.extensions["bazaar"]["info"], make.extensions["bazaar"]["schema"]
    assert info["input"]["method"] == operation.method
    sent = schema["properties"]["input"]["properties"]["body" if operation.takes_body else "queryParams"]
    assert set(sent["properties"]) == set(operation.input_schema["properties"])
    answer = schema["properties"]["output"]["properties"]["example"]
    assert set(listed_schema(operation)["properties"]) == set(answer["properties"])
    assert len(header) < 3_500  # a proxy holds the head of a response in a buffer of 4 or 8 KB
    one = wire.offer_version_1(make.required("x"))["accepts"][0]
    found = extract_discovery_info_v1(one)
    assert found is not None
    assert found.input.method == operation.method


async def test_the_description_is_passed_on_as_we_wrote_it_and_stays_away_from_models(tmp_path):
    """A facilitator lists what it is told at the settlement, so the payer does not decide what is listed."""
    async with doors(tmp_path) as d:
        seen: list[Any] = []

        def note(said: dict[str, Any]) -> httpx.Response:
            seen.append(said["paymentPayload"]["extensions"])
            return d.desk.script.settle(said)

        d.desk.script.settles = note
        forged = payload() | {"extensions": {"bazaar": {"info": "forged"}}}
        assert (await d.buy(wire.header(forged))).status_code == 200
        assert seen == [offer_call(TERMS, REGISTRY["premium_report"]).extensions]
        unpaid = await d.tell("premium_report")
        assert (unpaid["structuredContent"]["extensions"], bool(unpaid["structuredContent"]["accepts"])) == ({}, True)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [({"network": "base-sepolia"}, "invalid_network"), ({"scheme": "upto"}, "invalid_scheme"), ({}, "value_mismatch")],
)
async def test_a_payment_of_version_1_for_anything_else_is_refused(tmp_path, changed, reason):
    whole = {"x402Version": 1, "scheme": "exact", "network": "base", "payload": payload(20_000)["payload"]}
    async with doors(tmp_path) as d:
        answer = await d.rest.get("/api/pro/report", headers={"x-payment": wire.header(whole | changed)})
        assert (answer.status_code, reason in answer.json()["detail"]) == (402, True)
        assert d.desk.script.asked == []


async def test_a_free_tool_takes_no_payment(tmp_path):
    async with doors(tmp_path) as d:
        d.desk.engine.internet.serves(FIRST, {"value": 1})
        answer = await d.buy(signed(), "/api/number")
        assert (answer.status_code, d.desk.script.asked) == (200, [])
        assert (await d.buy(None, "/api/nothing")).headers.get("payment-required") is None


@proves("x402.call")
async def test_a_paid_call_over_rest(tmp_path):
    payment = signed()
    async with doors(tmp_path) as d:
        first, again = await d.buy(payment), await d.buy(payment)

        assert (first.status_code, again.status_code) == (200, 200)
        settlement = decode_payment_response_header(first.headers["payment-response"])
        assert (settlement.success, settlement.network) == (True, "eip155:8453")
        assert settlement.transaction in d.desk.script.made.values()
        assert "no-store" in first.headers["cache-control"]
        assert first.headers["content-digest"]
        assert first.headers["x-service-receipt-id"].startswith("rcpt_")
        same = ("payment-response", "x-service-receipt", "content-digest")
        assert [first.headers[name] for name in same] == [again.headers[name] for name in same]
        assert (first.content, d.desk.script.settlements) == (again.content, 1)
        assert (await d.buy(payment, "/api/pro/report?history=30d")).status_code == 422


@proves("receipt.reference-x402")
async def test_a_call_paid_by_itself_always_carries_its_signed_receipt(tmp_path):
    async with doors(tmp_path) as d:
        bought = await d.buy(signed(), prefer="receipt=reference")
        assert bought.status_code == 200
        assert bought.headers["x-service-receipt"].count(".") == 2
        assert "preference-applied" not in bought.headers


@proves("payment-error.payment_required")
async def test_a_refused_payment_over_rest(tmp_path):
    async with doors(tmp_path) as d:
        answer = await d.buy(signed(20_000))
        assert (answer.status_code, answer.json()["error"]) == (402, "payment_required")
        assert decode_payment_response_header(answer.headers["payment-response"]).success is False
        assert decode_payment_required_header(answer.headers["payment-required"]).accepts[0].amount == "40000"


@proves("x402.pending")
async def test_nobody_knows_over_rest(tmp_path):
    async with doors(tmp_path) as d:
        d.desk.script.settles = httpx.ReadTimeout("slow")
        answer = await d.buy(signed())
        assert (answer.status_code, answer.json()["error"]) == (503, "settlement_pending")
        assert answer.headers["content-type"] == "application/problem+json"
        assert "retry-after" in answer.headers
        assert "payment-required" not in answer.headers
        told = decode_payment_response_header(answer.headers["payment-response"])
        assert (told.success, told.error_reason) == (False, "settlement_pending")


@proves("x402.unsettled")
async def test_stale_empty_and_failed_answers_are_not_paid_for(tmp_path):
    payment = signed(validBefore=str(NOW + 7200))
    async with doors(tmp_path) as d:
        await d.buy(signed())
        d.desk.clock.advance(600)
        d.desk.engine.internet.serves(FIRST, DOWN)
        d.desk.engine.internet.serves(SECOND, DOWN)
        stale = await d.buy(payment)
        empty = await d.buy(signed(60_000, validBefore=str(NOW + 7200)), "/api/pro/void")
        broken = await d.buy(signed(60_000, validBefore=str(NOW + 7200)), "/api/pro/broken")

        assert [answer.status_code for answer in (stale, empty, broken)] == [200, 200, 500]
        assert stale.json()["stale"] is True
        assert all("payment-response" not in answer.headers for answer in (stale, empty, broken))
        assert all("x-service-receipt" in answer.headers for answer in (stale, empty, broken))
        assert d.desk.script.settlements == 1


@proves("x402.topup")
async def test_a_top_up_over_rest(tmp_path):
    async with doors(tmp_path) as d:
        asked = await d.topup(None)
        assert (asked.status_code, asked.json()["error"]) == (402, "payment_required")
        offer = decode_payment_required_header(asked.headers["payment-required"])
        assert (offer.accepts[0].amount, offer.resource.url) == (str(TWO), "https://data.example/api/payment/topup")
        bought = await d.topup(signed(TWO))
        assert (bought.status_code, bought.json()["credits"]) == (200, 100)
        assert "no-store" in bought.headers["cache-control"]
        settlement = decode_payment_response_header(bought.headers["payment-response"])
        assert settlement.transaction == bought.json()["transaction"]
        bearer = {"authorization": f"Bearer {bought.json()['token']}"}
        call = await d.buy(None, **bearer)
        assert (call.status_code, call.headers["x-credits-remaining"]) == (200, "98")
        more = await d.topup(signed(TWO), **bearer)
        assert more.json()["token"] == bought.json()["token"]
        assert (await d.rest.get("/api/payment/balance", headers=bearer)).json()["credits"] == 198


@proves("x402.topup-again")
async def test_a_top_up_is_not_given_twice_over_rest(tmp_path):
    payment = signed(TWO)
    async with doors(tmp_path) as d:
        first = await d.topup(payment, **{"idempotency-key": "a-long-idempotency-key"})
        again = await d.topup(payment, **{"idempotency-key": "a-long-idempotency-key"})
        other = await d.topup(payment)
        assert first.json() == again.json()
        assert (other.status_code, other.json()["error"]) == (409, "payer_proof_required")
        assert first.json()["token"] not in other.text
        assert await d.desk.minted() == 100


@pytest.mark.parametrize("usd", [0, 0.5, "x", None, 1.0000001, 1001, True])
async def test_amounts_that_are_not_sold(tmp_path, usd):
    async with doors(tmp_path) as d:
        assert (await d.topup(signed(TWO), usd)).status_code == 400
        assert d.desk.script.asked == []


@proves("x402.off")
async def test_with_x402_off_nothing_of_it_is_there(tmp_path):
    async with doors(tmp_path, on=False) as d:
        call, topup = await d.buy(signed()), await d.topup(signed(TWO))
        assert (call.status_code, call.json()["error"], topup.status_code) == (402, "missing_token", 404)
        assert "payment-required" not in call.headers
        assert (await d.rest.get("/.well-known/x402.json")).status_code == 404
        assert "structuredContent" not in await d.tell("premium_report")
        assert d.desk.script.asked == []


async def test_a_page_in_a_browser_may_pay(tmp_path):
    async with doors(tmp_path) as d:
        preflight = await d.rest.options("/api/pro/report", headers={"origin": "https://a.example"})
        assert "payment-signature" in preflight.headers["access-control-allow-headers"].lower()
        exposed = (await d.buy(None)).headers["access-control-expose-headers"].lower()
        assert "payment-required" in exposed
        assert "payment-response" in exposed


@proves("discovery.x402")
async def test_what_can_be_paid_for_is_listed(tmp_path):
    async with doors(tmp_path) as d:
        found = (await d.rest.get("/.well-known/x402.json")).json()
        prices = {httpx.URL(each["resource"]).path: each["accepts"][0] for each in found["resources"]}
        assert {path: offer["amount"] for path, offer in prices.items()} == {
            "/api/pro/report": "40000",
            "/api/pro/broken": "60000",
            "/api/pro/liar": "60000",
            "/api/pro/void": "60000",
            "/api/payment/topup": "1000000",
        }
        asked = wire.unheader((await d.buy(None)).headers["payment-required"])
        assert asked["accepts"] == [prices["/api/pro/report"]]


async def test_two_payments_in_one_request_are_one_too_many(tmp_path):
    async with doors(tmp_path) as d:
        lines = [("payment-signature", signed()), ("payment-signature", signed())]
        assert (await d.rest.get("/api/pro/report", headers=lines)).status_code == 400


@proves("x402.limit")
async def test_payments_are_limited_by_address(tmp_path):
    async with doors(tmp_path, limited=True) as d:
        statuses = [(await d.buy("e30=")).status_code for _ in range(601)]
        assert (set(statuses[:600]), statuses[600]) == ({400}, 429)


GARBAGE = st.binary(max_size=120).map(lambda b: base64.b64encode(b).decode()) | st.text(
    st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=80
)
WRONG = st.sampled_from(["", "0x", "-1", "9" * 78, "x" * 64, "é", "\0", None, 5, [], {}, 1e300])


@given(GARBAGE, st.sampled_from(["from", "to", "value", "validAfter", "validBefore", "nonce"]), WRONG)
@settings(max_examples=sized(30, fast=10), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_garbage_is_never_a_5xx(tmp_path_factory, text, name, value):
    whole = payload()
    whole["payload"]["authorization"][name] = value

    async def ask() -> None:
        async with doors(tmp_path_factory.mktemp("garbage")) as d:
            for header in (text.encode("latin-1"), wire.header(whole).encode()):
                for method, path in (("GET", "/api/pro/report"), ("POST", "/api/payment/topup")):
                    more: dict[str, Any] = {"json": {"amount_usd": 2}} if method == "POST" else {}
                    answer = await d.rest.request(method, path, headers={b"payment-signature": header}, **more)
                    assert answer.status_code in (400, 402), answer.text
            assert d.desk.script.settlements == 0

    anyio.run(ask)


# --- MCP ---


def seen(result: dict[str, Any]) -> dict[str, Any]:
    """The offer in a result, read by official code."""
    assert result["isError"] is True
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    return result["structuredContent"]


@proves("x402.offer")
async def test_an_offer_over_mcp_is_error_and_offer_in_one(tmp_path):
    async with doors(tmp_path) as d:
        told = seen(await d.tell("premium_report"))
        assert (told["error"], told["pricing"]) == ("missing_token", {"1 USD": "50 credits"})
        offer = PaymentRequired.model_validate(told)
        assert (offer.x402_version, offer.accepts[0].amount) == (2, "40000")


@proves("x402.call")
async def test_a_paid_call_over_mcp(tmp_path):
    given = payload()
    async with doors(tmp_path) as d:
        result = await d.tell("premium_report", **{wire.META_PAYMENT: given})
        assert result["isError"] is False
        assert result["_meta"][wire.META_RESPONSE]["success"] is True
        assert result["_meta"]["receipt_id"].startswith("rcpt_")
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        again = await d.tell("premium_report", **{wire.META_PAYMENT: given})
        assert (again, d.desk.script.settlements) == (result, 1)


async def test_the_sdk_pays_like_the_fast_path(tmp_path):
    given = payload()
    async with doors(tmp_path) as d:
        fast = await d.tell("premium_report", **{wire.META_PAYMENT: given})
        slow = await d.tell("premium_report", **{wire.META_PAYMENT: given, "io.modelcontextprotocol/clientInfo": 5})
        assert slow["_meta"][wire.META_RESPONSE] == fast["_meta"][wire.META_RESPONSE]
        assert slow["structuredContent"] == fast["structuredContent"]
        refused = await d.tell("premium_report", **{"io.modelcontextprotocol/clientInfo": 5})
        assert PaymentRequired.model_validate(seen(refused)).accepts[0].amount == "40000"


async def test_a_refused_and_a_pending_payment_over_mcp(tmp_path):
    async with doors(tmp_path) as d:
        refused = await d.tell("premium_report", **{wire.META_PAYMENT: payload(20_000)})
        assert seen(refused)["error"] == "payment_required"
        assert refused["_meta"][wire.META_RESPONSE]["success"] is False
        d.desk.script.settles = httpx.ReadTimeout("slow")
        pending = await d.tell("premium_report", **{wire.META_PAYMENT: payload()})
        assert (pending["isError"], "structuredContent" in pending) == (True, False)
        assert json.loads(pending["content"][0]["text"])["error"] == "settlement_pending"
        assert pending["_meta"][wire.META_RESPONSE]["errorReason"] == "settlement_pending"


TAKES = {"extensions": {"org.x402/payment": {}}}


async def tell_modern(d, name, arguments=None, *, capabilities=TAKES, **params):
    """The result of a call of 2026-07-28."""
    meta = {messages.CAPABILITIES_KEY: capabilities} | params.pop("meta", {})
    message = asked("tools/call", {"name": name, "arguments": arguments or {}, "_meta": meta, **params}, modern=True)
    headers = headers_for(message, messages.MODERN)
    answer = await d.mcp.post("/api/mcp?toolset=all", json=message, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


@proves("x402.negotiated")
async def test_a_client_that_says_it_takes_offers_gets_them_as_results_of_their_own_type(tmp_path):
    async with doors(tmp_path) as d:
        for name, arguments, amount in (
            ("premium_report", None, "40000"),
            ("payment_topup", {"amount_usd": 2}, str(TWO)),
        ):
            told = await tell_modern(d, name, arguments)
            assert set(told) == {"resultType", "paymentRequired", "_meta"}
            assert (told["resultType"], set(told["_meta"])) == ("payment_required", {messages.SERVER_KEY})
            offer = PaymentRequired.model_validate(told["paymentRequired"])
            assert (offer.x402_version, offer.accepts[0].amount) == (2, amount)
            plain = await tell_modern(
                d, name, arguments, capabilities={"extensions": {"io.modelcontextprotocol/ui": {}}}
            )
            same = {key: value for key, value in seen(plain).items() if key != "request_id"}
            assert same == {key: value for key, value in told["paymentRequired"].items() if key != "request_id"}
            assert plain["resultType"] == "complete"
        paid = await tell_modern(d, "premium_report", meta={wire.META_PAYMENT: payload()})
        assert (paid["resultType"], paid["isError"]) == ("complete", False)
        assert paid["_meta"][wire.META_RESPONSE]["success"] is True
        assert d.desk.script.settlements == 1


@proves("x402.negotiated")
async def test_a_refused_payment_is_offered_anew_and_a_pending_one_never(tmp_path):
    async with doors(tmp_path) as d:
        refused = await tell_modern(d, "premium_report", meta={wire.META_PAYMENT: payload(20_000)})
        assert (refused["resultType"], refused["paymentRequired"]["error"]) == ("payment_required", "payment_required")
        assert refused["_meta"][wire.META_RESPONSE]["success"] is False
        d.desk.script.settles = httpx.ReadTimeout("slow")
        pending = await tell_modern(d, "premium_report", meta={wire.META_PAYMENT: payload()})
        assert (pending["resultType"], pending["isError"]) == ("complete", True)
        assert json.loads(pending["content"][0]["text"])["error"] == "settlement_pending"
        unused = await tell_modern(d, "premium_report", inputResponses={}, requestState=None)
        assert unused["resultType"] == "payment_required"


@proves("x402.negotiated")
async def test_only_the_modern_era_is_told_of_it_and_only_where_it_is_on(tmp_path):
    about = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "t", "version": "1"}, "capabilities": TAKES}

    async def describe(d, method, params=None, *, modern):
        message = asked(method, params, modern=modern)
        headers = headers_for(message, messages.MODERN if modern else None)
        answer = (await d.mcp.post("/api/mcp", json=message, headers=headers)).json()["result"]
        return "org.x402/payment" in answer["capabilities"].get("extensions", {})

    async with doors(tmp_path) as d:
        assert await describe(d, "server/discover", modern=True)
        assert not await describe(d, "initialize", about, modern=False)
        odd = {"_meta": {"receipt": 7}}  # the SDK answers this
        assert await describe(d, "server/discover", odd, modern=True)
        assert not await describe(d, "initialize", about | odd, modern=False)
        legacy = await d.tell("premium_report", **{messages.CAPABILITIES_KEY: TAKES})
        assert "accepts" in seen(legacy)
    async with running() as service, service.client() as client:
        message = asked("server/discover", modern=True)
        assert (
            "org.x402"
            not in (await client.post("/api/mcp", json=message, headers=headers_for(message, messages.MODERN))).text
        )


async def test_a_top_up_over_mcp(tmp_path):
    async with doors(tmp_path) as d:
        offer = seen(await d.tell("payment_topup", {"amount_usd": 2}))
        assert offer["accepts"][0]["amount"] == str(TWO)
        result = await d.tell("payment_topup", {"amount_usd": 2}, **{wire.META_PAYMENT: payload(TWO)})
        assert result["structuredContent"]["credits"] == 100
        assert result["_meta"][wire.META_RESPONSE]["transaction"] == result["structuredContent"]["transaction"]
        paid = await d.tell("premium_report", token=result["structuredContent"]["token"])
        assert paid["_meta"]["credits_remaining"] == 98


@pytest.mark.parametrize("value", [5, "x", [], {}, None, True, {"x402Version": 2}, "e30="])
async def test_what_is_no_payment_over_mcp(tmp_path, value):
    async with doors(tmp_path) as d:
        result = await d.tell("premium_report", **{wire.META_PAYMENT: value})
        assert result["isError"] is True
        assert json.loads(result["content"][0]["text"])["error"] in ("invalid_arguments", "missing_token")
        assert d.desk.script.asked == []
