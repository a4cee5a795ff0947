"""Results as bytes."""

import hashlib
import json
from dataclasses import replace

from tests.mcp.service import echo, oracle
from toolserver.calls.paid_call import PaidCallResult
from toolserver.calls.pipeline import Outcome
from toolserver.calls.response import RenderedResponse
from toolserver.errors import InsufficientCredits
from toolserver.mcp import messages
from toolserver.mcp.call_arguments import next_step
from toolserver.mcp.results import ToolResult, render_core, render_failure, render_result
from toolserver.money.x402.wire import META_RESPONSE, REQUIRED, RESPONSE, header
from toolserver.registry.registry import Tier, operation_of
from toolserver.registry.site_facts import SiteFacts

FACTS = SiteFacts("https://data.example", "data.example")
PREMIUM = RenderedResponse(b'{"a":"\\u00fc\\"","_meta":{"stale":false}}', 0.0, 60.0, None)


def sold(rendered: RenderedResponse, remaining: int | None = None, **receipt: str) -> Outcome:
    """The outcome of a sale of two credits."""
    return Outcome.of_sale(PaidCallResult(rendered, 2, remaining, **receipt))


def whole(core: bytes) -> dict[str, object]:
    result: dict[str, object] = json.loads(core + b"}")
    return result


def test_a_free_result_is_made_once_per_answer() -> None:
    made = render_core(PREMIUM)
    assert render_core(PREMIUM) is made
    payload = {"a": 'ü"', "_meta": {"stale": False}}
    told = whole(made)
    assert told["structuredContent"] == payload
    assert json.loads(told["content"][0]["text"]) == payload  # type: ignore[index]
    assert (told.keys(), told["isError"]) == ({"content", "structuredContent", "isError"}, False)


def test_a_result_that_cost_nothing_is_the_one_made_once_and_says_nothing_of_credits() -> None:
    result = render_result(operation_of(echo), Outcome(PREMIUM))
    signed = render_result(operation_of(echo), sold(PREMIUM, receipt="jws", receipt_id="rcpt_1"))

    assert (result.core, result.meta, result.failed) == (render_core(PREMIUM), {}, False)
    assert (signed.core, signed.meta) == (render_core(PREMIUM), {"receipt": "jws", "receipt_id": "rcpt_1"})


def test_a_payment_with_the_call_is_confirmed_beside_the_result() -> None:
    settled = {"success": True, "transaction": "0x12"}
    result = render_result(operation_of(oracle), Outcome(PREMIUM, settlement=settled))
    assert result.meta == {META_RESPONSE: settled}


def test_a_result_is_closed_with_its_own_meta_if_it_has_one() -> None:
    plain, told = ToolResult(b"{", {}), ToolResult(b"{", {"credits_remaining": 7})
    for modern in (False, True):
        assert plain.end(modern=modern) == messages.end(modern=modern)
        assert told.end(modern=modern) == messages.end_with({"credits_remaining": 7}, modern=modern)


def test_the_credits_left_stand_in_both_copies() -> None:
    result = render_result(operation_of(oracle), sold(PREMIUM, 7, receipt="jws", receipt_id="rcpt_1"))
    told = whole(result.core)

    assert told["structuredContent"] == {"a": 'ü"', "_meta": {"stale": False, "credits_remaining": 7}}
    assert json.loads(told["content"][0]["text"]) == told["structuredContent"]
    assert result.meta == {"credits_remaining": 7, "receipt": "jws", "receipt_id": "rcpt_1"}


def test_a_receipt_by_reference_is_named_beside_the_hash_that_it_has_signed() -> None:
    result = render_result(operation_of(oracle), sold(PREMIUM, 7, receipt_id="rcpt_1"))
    payload = whole(result.core)["content"][0]["text"]  # type: ignore[index]
    digest = hashlib.sha256(payload.encode()).hexdigest()

    assert result.meta == {"credits_remaining": 7, "receipt_id": "rcpt_1", "response_sha256": digest}


def test_a_bare_payload_gets_a_meta_of_its_own() -> None:
    operation = replace(operation_of(echo), tier=Tier.PAYMENT, method="POST")
    bare = RenderedResponse(b'{"wallet":"0x","quote":{"credits":50}}', 0.0, 0.0, None)
    told = whole(render_result(operation, sold(bare, 50)).core)

    assert told["structuredContent"] == {"wallet": "0x", "quote": {"credits": 50}, "_meta": {"credits_remaining": 50}}
    assert json.loads(told["content"][0]["text"]) == told["structuredContent"]


def test_a_refusal_is_text_only_and_has_the_body_of_rest() -> None:
    error = InsufficientCredits('Too few: "1".', required=2, credits_remaining=1)
    result = render_failure(error, FACTS, "req_1")
    told = whole(result.core)

    assert told.keys() == {"content", "isError"}
    assert told["isError"] is True
    assert json.loads(told["content"][0]["text"]) == {
        "error": "insufficient_credits",
        "signup": "https://data.example/docs/payments",
        "pricing": {"1 USD": "50 credits"},
        "detail": 'Too few: "1".',
        "request_id": "req_1",
        "required": 2,
        "credits_remaining": 1,
        "next": next_step("insufficient_credits")["next"],
    }
    assert (result.meta, result.failed) == ({}, True)


def test_a_refusal_hands_on_what_the_headers_of_rest_say_of_receipt_and_payment() -> None:
    failed = {"success": False, "errorReason": "late"}
    headers = {"X-Service-Receipt": "jws", "X-Service-Receipt-Id": "rcpt_1", RESPONSE: header(failed)}
    result = render_failure(InsufficientCredits("No.", headers=headers), FACTS, "req_1")

    assert result.meta == {"receipt": "jws", "receipt_id": "rcpt_1", META_RESPONSE: failed}
    assert whole(result.core).keys() == {"content", "isError"}


def test_an_offer_to_pay_is_one_object_with_the_error() -> None:
    error = InsufficientCredits("Pay.", headers={REQUIRED: header({"x402Version": 2, "accepts": []})})
    result = render_failure(error, FACTS, "req_1")
    told = whole(result.core)

    offer = told["structuredContent"]
    assert (offer["x402Version"], offer["accepts"], offer["error"]) == (2, [], "insufficient_credits")  # type: ignore[index]
    assert json.loads(told["content"][0]["text"]) == offer  # type: ignore[index]
    assert (told["isError"], result.meta, result.failed) == (True, {}, True)
