"""Results as bytes."""

import hashlib
import json
from dataclasses import replace

from tests.mcp.service import echo, oracle
from toolserver.calls.outcome import Outcome
from toolserver.calls.response import RenderedResponse
from toolserver.errors import InsufficientCredits
from toolserver.mcp.results import render_core, render_failure, render_result
from toolserver.mcp.token_argument import next_step
from toolserver.registry.registry import Tier, operation_of
from toolserver.registry.site_facts import SiteFacts

PREMIUM = RenderedResponse(b'{"a":"\\u00fc\\"","_meta":{"stale":false}}', 0.0, 60.0, None)


def whole(core: bytes) -> dict[str, object]:
    result: dict[str, object] = json.loads(core + b"}")
    return result


def test_a_free_result_is_made_once_per_answer() -> None:
    assert render_core(PREMIUM) is render_core(PREMIUM)


def test_the_credits_left_stand_in_both_copies() -> None:
    result = render_result(
        operation_of(oracle), Outcome(PREMIUM, credits_remaining=7, receipt="jws", receipt_id="rcpt_1")
    )
    told = whole(result.core)

    assert told["structuredContent"] == {"a": 'ü"', "_meta": {"stale": False, "credits_remaining": 7}}
    assert json.loads(told["content"][0]["text"]) == told["structuredContent"]
    assert result.meta == {"credits_remaining": 7, "receipt": "jws", "receipt_id": "rcpt_1"}


def test_a_receipt_by_reference_is_named_beside_the_hash_that_it_has_signed() -> None:
    result = render_result(operation_of(oracle), Outcome(PREMIUM, credits_remaining=7, receipt_id="rcpt_1"))
    payload = whole(result.core)["content"][0]["text"]  # type: ignore[index]
    digest = hashlib.sha256(payload.encode()).hexdigest()

    assert result.meta == {"credits_remaining": 7, "receipt_id": "rcpt_1", "response_sha256": digest}


def test_a_bare_payload_gets_a_meta_of_its_own() -> None:
    operation = replace(operation_of(echo), tier=Tier.PAYMENT, method="POST")
    bare = RenderedResponse(b'{"wallet":"0x","quote":{"credits":50}}', 0.0, 0.0, None)
    told = whole(render_result(operation, Outcome(bare, credits_remaining=50)).core)

    assert told["structuredContent"] == {"wallet": "0x", "quote": {"credits": 50}, "_meta": {"credits_remaining": 50}}
    assert json.loads(told["content"][0]["text"]) == told["structuredContent"]


def test_a_refusal_is_text_only_and_has_the_body_of_rest() -> None:
    error = InsufficientCredits('Too few: "1".', required=2, credits_remaining=1)
    result = render_failure(error, SiteFacts("https://data.example", "data.example"), "req_1")
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
