"""The table of error codes: what a declaration must say, and everything that is written from it."""

import json
import re
from pathlib import Path

import pytest

from catalog import tool_pages
from catalog.llms_txt import llms_full_txt
from rest_bridge.openapi.document import openapi
from rest_bridge.pages.problems import problem_page, problems_page
from tests.catalog.tiny import FACTS, TINY
from tests.requirements import proves
from toolserver.errors import CallRejected, InvalidJson, PaymentRequired
from toolserver.mcp.fast_path import render_failure
from toolserver.registry.error_codes import PROBLEMS, body, concerns_payment, example, with_status, with_topic

GUIDE = (Path(__file__).parents[2] / "docs" / "adding-an-error.md").read_text(encoding="utf-8")
DECLARATION, RAISED = re.findall(r"^```python\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)


@pytest.fixture(autouse=True)
def declared():
    """What a test declares is gone after it."""
    before = dict(CallRejected.declared)
    yield
    CallRejected.declared.clear()
    CallRejected.declared.update(before)


@pytest.fixture
def too_early():
    """The class of the guide, declared as the guide says."""
    names = {"CallRejected": CallRejected, "__name__": "guide"}
    exec(DECLARATION, names)
    return names["TooEarly"]


@proves("errors.codes")
def test_the_table_holds_every_code_of_the_contract():
    assert {code: problem.status for code, problem in PROBLEMS.items()}.items() >= {
        **dict.fromkeys(("invalid_arguments", "invalid_json"), 400),
        **dict.fromkeys(("missing_token", "invalid_token", "expired", "insufficient_credits"), 402),
        **dict.fromkeys(("billing_unavailable", "payment_required"), 402),
        "not_found": 404,
        "method_not_allowed": 405,
        **dict.fromkeys(("payment_pending", "no_matching_transfer", "below_minimum", "already_credited"), 409),
        "payer_proof_required": 409,
        "payload_too_large": 413,
        "unsupported_media_type": 415,
        "idempotency_conflict": 422,
        "rate_limited": 429,
        "internal_error": 500,
        **dict.fromkeys(("upstream_unavailable", "chain_unavailable", "settlement_pending"), 503),
    }.items()


def test_the_table_is_ordered_by_status():
    statuses = [problem.status for problem in PROBLEMS.values()]

    assert statuses == sorted(statuses)
    assert len(PROBLEMS) == len(statuses)
    assert list(PROBLEMS)[:2] == ["invalid_arguments", "invalid_json"]


def test_codes_are_found_by_status_and_by_topic():
    assert {problem.code for problem in with_status(503)} == {
        "upstream_unavailable",
        "chain_unavailable",
        "sales_ceiling_reached",
        "settlement_pending",
        "storage_unavailable",
        "shutting_down",
        "overloaded",
    }
    assert [problem.code for problem in with_topic("x402")] == [
        "payment_used",
        "sales_ceiling_reached",
        "settlement_pending",
    ]
    assert all(issubclass(problem, PaymentRequired) for problem in with_status(402))


def test_codes_of_requests_occur_also_where_nothing_is_sold():
    about_requests = {code for code, problem in PROBLEMS.items() if not concerns_payment(problem)}

    assert {"invalid_arguments", "not_found", "rate_limited", "internal_error"} <= about_requests
    assert not about_requests & {"missing_token", "payment_pending", "idempotency_conflict", "upstream_unavailable"}


@pytest.mark.parametrize("missing", ["code", "status", "title", "advice", "docstring"])
def test_a_class_that_forgets_something_names_it_when_it_is_defined(missing):
    members = {"code": "too_early", "status": 425, "title": "Too early", "advice": "Wait.", "__doc__": "Too early."}
    members.pop("__doc__" if missing == "docstring" else missing)

    with pytest.raises(TypeError, match=rf"^TooEarly declares no {missing}: see docs/adding-an-error.md$"):
        type("TooEarly", (CallRejected,), members)


def test_advice_and_code_are_not_inherited_but_the_status_is():
    with pytest.raises(TypeError, match="declares no code, no advice"):
        type("Other", (InvalidJson,), {"__doc__": "Another."})
    stricter = type("Other", (InvalidJson,), {"__doc__": "Another.", "code": "other", "advice": "Wait."})

    assert (stricter.status, PROBLEMS["other"].meaning) == (400, "Another.")


def test_a_code_that_is_taken_is_refused():
    members = {"code": "not_found", "status": 404, "title": "Gone", "advice": "Look elsewhere.", "__doc__": "Gone."}

    with pytest.raises(TypeError, match=r"^Gone and NotFound both declare the error code not_found$"):
        type("Gone", (CallRejected,), members)


def test_a_class_that_only_groups_others_declares_nothing():
    class Group(CallRejected, abstract=True):
        status = 409

    assert Group not in PROBLEMS.values()


def test_the_guide_leads_to_a_code_that_every_document_tells(too_early):
    with pytest.raises(too_early) as raised:
        exec(RAISED, {"TooEarly": too_early})
    error = raised.value
    told = body(error.code, error.detail, facts=FACTS, request_id="r1", **error.extra)

    assert told == {
        "type": FACTS.url("/problems/too_early"),
        "title": "Too early",
        "status": 425,
        "error": "too_early",
        "detail": "The figures of July come out on Friday.",
        "request_id": "r1",
        "retry_after_seconds": 3600,
    }
    assert json.loads(json.loads(render_failure(error, FACTS, "r1").core + b"}")["content"][0]["text"]) == told
    assert b"too_early" in problems_page(TINY, FACTS).body
    assert b"The data that the call asks for" in problem_page(TINY, FACTS, too_early).body
    assert "| `too_early` | 425 | The data that" in tool_pages.errors_page(PROBLEMS)
    assert "`too_early` (425)" in llms_full_txt(TINY, FACTS)
    assert "too_early" in json.dumps(openapi(TINY, FACTS))
    assert example(too_early, facts=FACTS, request_id="r1")["detail"] == too_early.meaning


def test_the_guide_quotes_the_message_that_python_gives():
    names = {"CallRejected": CallRejected, "__name__": "guide"}
    without_advice = re.sub(r"^    advice.*\n", "", DECLARATION, flags=re.MULTILINE)

    with pytest.raises(TypeError) as refused:
        exec(without_advice, names)
    assert f"`{refused.value}`" in GUIDE


@proves("payment-error.body", "errors.problem")
def test_a_payment_failure_has_the_body_of_the_specification_and_the_others_that_of_rfc_9457():
    assert body("missing_token", "why", facts=FACTS, request_id="r1") == {
        "error": "missing_token",
        "signup": "https://data.example/docs/payments",
        "pricing": {"1 USD": "50 credits"},
        "detail": "why",
        "request_id": "r1",
    }
    assert body("rate_limited", "why", facts=FACTS, request_id="r1", retry_after_seconds=30) == {
        "type": "https://data.example/problems/rate_limited",
        "title": "Rate limit exceeded",
        "status": 429,
        "error": "rate_limited",
        "detail": "why",
        "request_id": "r1",
        "retry_after_seconds": 30,
    }


def test_a_refusal_never_repeats_a_token():
    token = f"svc_live_{'5' * 64}"
    problem = body("invalid_arguments", f"no {token}", facts=FACTS, request_id="call_1", errors=[{token: [token]}])

    assert "5" * 64 not in json.dumps(problem)
