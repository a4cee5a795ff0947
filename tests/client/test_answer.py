"""What an answer says besides its payload."""

import json

import pytest

from tests.catalog.tiny import FACTS
from toolserver.client.answer import ToolAnswer, UnknownRejection, read_json, read_rejection
from toolserver.core.http import HttpAnswer, Unreachable
from toolserver.errors import CallRejected, InsufficientCredits, RateLimited
from toolserver.mcp.call_arguments import NEXT
from toolserver.registry.error_codes import PROBLEMS, body


def test_the_headers_of_a_paid_answer_are_read():
    headers = {
        "x-service-receipt": "a.b.c",
        "x-service-receipt-id": "rcpt_1",
        "x-credits-remaining": "7",
        "x-request-id": "req_1",
    }
    answer = ToolAnswer({"a": 1}, b'{"a":1}', headers)
    assert (answer.receipt, answer.receipt_id, answer.credits_remaining) == ("a.b.c", "rcpt_1", 7)
    assert answer.request_id == "req_1"
    assert "a.b.c" not in repr(answer)


def test_a_free_answer_has_neither_receipt_nor_credits():
    answer = ToolAnswer({}, b"{}", {})
    assert (answer.receipt, answer.receipt_id, answer.credits_remaining, answer.request_id) == (None, None, None, None)


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b""])
def test_what_is_no_json_object_does_not_come_from_the_service(body):
    with pytest.raises(Unreachable, match="502"):
        read_json(HttpAnswer(502, {}, body))


def answer(code, status, **extra):
    return HttpAnswer(status, {"x": "y"}, json.dumps(body(code, "Why", facts=FACTS, request_id="r", **extra)).encode())


@pytest.mark.parametrize("code", list(PROBLEMS))
def test_every_code_of_the_service_is_raised_as_the_class_that_declares_it(code):
    found = read_rejection(answer(code, PROBLEMS[code].status, retry_after_seconds=4))
    assert type(found) is PROBLEMS[code]
    assert (found.code, found.detail, found.retry_after_s) == (code, "Why", 4.0)
    assert found.extra["request_id"] == "r"
    assert found.advice


def test_members_of_the_body_stand_in_extra_and_those_of_every_problem_do_not():
    found = read_rejection(answer("insufficient_credits", 402, credits_remaining=1))
    assert isinstance(found, InsufficientCredits)
    assert found.extra["credits_remaining"] == 1
    assert found.extra["signup"] == "https://data.example/docs/payments"
    limited = read_rejection(answer("rate_limited", 429, limit="spacing"))
    assert isinstance(limited, RateLimited)
    assert limited.extra.keys() == {"request_id", "limit"}
    assert limited.retry_after_s is None


def test_a_code_of_a_later_service_is_a_refusal_all_the_same():
    found = read_rejection(
        HttpAnswer(418, {}, b'{"error": "teapot", "detail": "Short and stout", "type": "https://e"}')
    )
    assert isinstance(found, UnknownRejection)
    assert isinstance(found, CallRejected)
    assert (found.code, found.status, found.advice, str(found)) == ("teapot", 418, "https://e", "Short and stout")
    assert "teapot" not in CallRejected.declared


def test_the_tool_that_helps_next_is_the_one_that_mcp_names():
    named = {code: problem.next_tool for code, problem in PROBLEMS.items() if problem.next_tool}
    assert named == {code: tool for code, (tool, _) in NEXT.items()}
