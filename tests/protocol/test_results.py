"""Results as bytes."""

import json
from dataclasses import replace

from tests.protocol.service import echo, oracle
from toolserver.documents import Facts
from toolserver.errors import PaymentRequired
from toolserver.pipeline import Outcome
from toolserver.protocol.results import core_of, refused, result_of
from toolserver.registry import Tier, operation_of
from toolserver.rendering import Rendered

PREMIUM = Rendered(b'{"a":"\\u00fc\\"","_meta":{"stale":false}}', 0.0, 60.0, None)


def whole(core: bytes) -> dict[str, object]:
    result: dict[str, object] = json.loads(core + b"}")
    return result


def test_a_free_result_is_made_once_per_answer() -> None:
    assert core_of(PREMIUM) is core_of(PREMIUM)


def test_the_credits_left_stand_in_both_copies() -> None:
    result = result_of(operation_of(oracle), Outcome(PREMIUM, credits_remaining=7, receipt="jws", receipt_id="rcpt_1"))
    told = whole(result.core)

    assert told["structuredContent"] == {"a": 'ü"', "_meta": {"stale": False, "credits_remaining": 7}}
    assert json.loads(told["content"][0]["text"]) == told["structuredContent"]
    assert result.meta == {"credits_remaining": 7, "receipt": "jws", "receipt_id": "rcpt_1"}


def test_a_bare_payload_gets_a_meta_of_its_own() -> None:
    operation = replace(operation_of(echo), tier=Tier.PAYMENT, method="POST")
    bare = Rendered(b'{"wallet":"0x","quote":{"credits":50}}', 0.0, 0.0, None)
    told = whole(result_of(operation, Outcome(bare, credits_remaining=50)).core)

    assert told["structuredContent"] == {"wallet": "0x", "quote": {"credits": 50}, "_meta": {"credits_remaining": 50}}
    assert json.loads(told["content"][0]["text"]) == told["structuredContent"]


def test_a_refusal_is_text_only_and_has_the_body_of_rest() -> None:
    error = PaymentRequired("insufficient_credits", 'Too few: "1".', required=2, credits_remaining=1)
    result = refused(error, Facts("https://data.example", "data.example"), "req_1")
    told = whole(result.core)

    assert told.keys() == {"content", "isError"}
    assert json.loads(told["content"][0]["text"]) == {
        "error": "insufficient_credits",
        "signup": "https://data.example/docs/payments",
        "pricing": {"1 USD": "50 credits"},
        "detail": 'Too few: "1".',
        "request_id": "req_1",
        "required": 2,
        "credits_remaining": 1,
    }
