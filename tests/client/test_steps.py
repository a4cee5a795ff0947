"""What a client says to a service: each step is looked at, nothing is sent and nothing waits."""

import json

import httpx
import pytest

from tests.money.receipts.test_sign import JWS, KEY
from toolserver.client.answer import ToolAnswer
from toolserver.client.steps import ROUTES, ClientSteps, HttpRequest
from toolserver.core.http import HttpAnswer, Unreachable
from toolserver.errors import InternalError, InvalidArguments, NotFound, PaymentPending, RateLimited

TOKEN = "svc_live_" + "a" * 64
URL = "https://data.example"
CATALOGUE = {
    "routes": {
        "sights": {
            "method": "GET",
            "path": "/api/sights",
            "auth": "none",
            "arguments": {"lat": "query", "in": "query"},
        },
        "deep": {"method": "GET", "path": "/api/pro/deep", "auth": "bearer", "arguments": {}},
        "change": {
            "method": "PATCH",
            "path": "/api/a/{id}",
            "auth": "bearer",
            "arguments": {"id": "path", "n": "body"},
        },
        "make": {"method": "POST", "path": "/api/a", "auth": "bearer", "arguments": {"n": "body"}},
        "payment_confirm": {
            "method": "POST",
            "path": "/api/payment/confirm",
            "auth": "none",
            "arguments": {"tx_hash": "body", "nonce": "body"},
        },
    }
}


def talk(token=None, **more):
    return ClientSteps(URL, token, **({"retries": 2, "patience_s": 10} | more))


def said(body, status=200, **headers):
    return HttpAnswer(status, headers, json.dumps(body).encode())


def refused(code, status, **extra):
    return said({"error": code, "detail": "Why", **extra}, status)


def take(steps, *answers):
    """The steps until the conversation ends, and how: the result, or what was raised."""
    taken, step = [], next(steps)
    waiting = (
        [said(CATALOGUE), *answers] if isinstance(step, HttpRequest) and step.url.endswith(ROUTES) else list(answers)
    )
    try:
        while True:
            taken.append(step)
            if not isinstance(step, HttpRequest):
                step = steps.send(None)
                continue
            answer = waiting.pop(0)
            step = steps.throw(answer) if isinstance(answer, Exception) else steps.send(answer)
    except StopIteration as done:
        return taken, done.value
    except Exception as error:
        return taken, error


def lost(cause=None):
    error = Unreachable("gone")
    error.__cause__ = cause
    return error


def test_the_routes_are_asked_for_once():
    client = talk()
    first, answer = take(client.call("sights", {}), said({"a": 1}))
    second, _ = take(client.call("sights", {}), said({"a": 2}))
    assert [step.url for step in first] == [f"{URL}{ROUTES}", f"{URL}/api/sights"]
    assert len(second) == 1
    assert answer.payload == {"a": 1}


def test_arguments_go_where_the_route_says_and_null_is_left_out():
    (_, ask), _ = take(talk(TOKEN).call("change", {"id": "a/b", "n": [1, 2], "unknown": True}), said({}))
    assert (ask.method, ask.url, ask.json) == ("PATCH", f"{URL}/api/a/a%2Fb", {"n": [1, 2], "unknown": True})
    (_, ask), _ = take(talk().call("sights", {"lat": None, "in": ["a", "b"], "far": True}), said({}))
    assert (ask.params, ask.json) == ({"in": "a,b", "far": "true"}, None)


def test_a_token_goes_with_every_call_and_a_new_key_with_each_paid_one():
    client = talk(TOKEN)
    (_, free), _ = take(client.call("sights", {}), said({}))
    (first,), _ = take(client.call("deep", {}), said({}))
    (second,), _ = take(client.call("deep", {}), said({}))
    (chosen,), _ = take(client.call("deep", {}, idempotency_key="mine"), said({}))
    assert free.headers == {"authorization": f"Bearer {TOKEN}"}
    assert first.headers["idempotency-key"] != second.headers["idempotency-key"]
    assert chosen.headers["idempotency-key"] == "mine"


def test_a_token_is_never_sent_in_the_clear():
    with pytest.raises(ValueError, match="https"):
        ClientSteps("http://data.example", TOKEN, retries=0, patience_s=0)
    (_, ask), _ = take(ClientSteps("http://127.0.0.1:80", TOKEN, retries=0, patience_s=0).call("deep", {}), said({}))
    assert ask.headers["authorization"]
    plain = ClientSteps("http://data.example", None, retries=0, patience_s=0)
    plain.token = TOKEN
    (_, ask), _ = take(plain.call("deep", {}), said({}))
    assert ask.headers == {}


def test_the_same_request_with_the_same_key_is_sent_again_after_the_pause_that_was_asked_for():
    steps, answer = take(
        talk(TOKEN).call("deep", {}), refused("upstream_unavailable", 503, retry_after_seconds=3), said({"a": 1})
    )
    _, first, pause, second = steps
    assert (pause, second) == (3, first)
    assert answer.payload == {"a": 1}


@pytest.mark.parametrize("failure", [lost(), refused("internal_error", 500)])
def test_what_is_lost_on_the_way_is_repeated_only_if_it_cannot_be_done_twice(failure):
    steps, _ = take(talk(TOKEN).call("deep", {}), failure, failure, said({}))
    assert [type(step) for step in steps] == [HttpRequest, HttpRequest, float, HttpRequest, float, HttpRequest]
    steps, error = take(talk(TOKEN).call("make", {"n": 1}), failure)
    assert [type(step) for step in steps] == [HttpRequest, HttpRequest]
    assert isinstance(error, Unreachable | InternalError)


def test_what_was_never_sent_is_repeated_always():
    steps, _ = take(talk(TOKEN).call("make", {}), lost(httpx.ConnectError("refused")), said({}))
    assert len(steps) == 4


@pytest.mark.parametrize(
    ("answers", "raised", "asked"),
    [
        ([refused("rate_limited", 429, retry_after_seconds=30)], RateLimited, 2),  # longer than our patience
        ([refused("rate_limited", 429, retry_after_seconds=4)] * 3, RateLimited, 4),
        ([refused("invalid_arguments", 400)], InvalidArguments, 2),
        ([said({}, 502)] * 3, Unreachable, 4),  # a proxy on the way
        ([lost()] * 3, Unreachable, 4),
    ],
)
def test_patience_and_attempts_end_and_what_waiting_cannot_help_is_raised_at_once(answers, raised, asked):
    steps, error = take(talk().call("sights", {}), *answers)
    assert isinstance(error, raised)
    assert sum(isinstance(step, HttpRequest) for step in steps) == asked


def test_a_tool_that_there_is_not_is_named_with_those_meant():
    steps, error = take(talk().call("sight", {}))
    assert isinstance(error, NotFound)
    assert error.extra["did_you_mean"] == ["sights"]
    assert len(steps) == 1


def test_a_payment_is_waited_for_and_its_token_is_used_from_then_on():
    client = talk()
    pending = refused("payment_pending", 409, retry_after_seconds=2)
    steps, answer = take(
        client.confirm("0x1", "svc_buy_2", within_s=60),
        pending,
        refused("chain_unavailable", 409),
        said({"token": TOKEN}),
    )
    assert [step for step in steps if not isinstance(step, HttpRequest)] == [2, 5]
    assert steps[1].json == {"tx_hash": "0x1", "nonce": "svc_buy_2"}
    assert (answer.payload["token"], client.token) == (TOKEN, TOKEN)


def test_a_payment_that_takes_too_long_is_still_pending():
    pending = refused("payment_pending", 409, retry_after_seconds=40)
    steps, error = take(talk().confirm("0x1", "svc_buy_2", within_s=60), pending, pending)
    assert isinstance(error, PaymentPending)
    assert steps[2] == 40


def test_only_a_paid_answer_has_a_receipt_to_check():
    with pytest.raises(ValueError, match="paid"):
        next(talk().check_receipt(ToolAnswer({}, b"{}", {})))


def test_a_receipt_is_checked_here_with_the_published_keys_which_are_asked_for_once():
    client = talk()
    keys = said({"keys": [KEY.jwk()]})
    body = b"another body"
    steps, verdict = take(client.check_receipt(ToolAnswer({}, body, {"x-service-receipt": JWS})), keys)
    assert [step.url for step in steps] == [f"{URL}/.well-known/service-receipt-keys.json"]
    assert (verdict["checks"]["signature"], verdict["checks"]["body"]) == (True, False)
    with pytest.raises(StopIteration):
        next(client.check_receipt(ToolAnswer({}, body, {"x-service-receipt": JWS})))


def test_a_receipt_that_is_none_is_judged_without_asking_for_keys():
    steps = talk().check_receipt(ToolAnswer({}, b"{}", {"x-service-receipt": "not a receipt"}))
    with pytest.raises(StopIteration) as done:
        next(steps)
    assert done.value.value["valid"] is False


HOSTILE_ROUTES = [
    {"path": ".evil.example/x"},
    {"path": "@evil.example/x"},
    {"path": ":8080@evil.example/x"},
    {"path": "https://evil.example/x"},
    {"path": "\\evil.example"},
    {"path": "/x\r\nhost: evil.example"},
    {"path": "/x?y=1"},
    {"path": "/x#y"},
    {"path": None},
    {"method": "CONNECT"},
    {"method": ["GET"]},
    {"arguments": None},
    {"auth": None},
]


@pytest.mark.parametrize("change", HOSTILE_ROUTES, ids=str)
def test_a_route_that_leads_elsewhere_is_refused_before_anything_is_sent(change):
    route = {"method": "GET", "path": "/api/x", "auth": "bearer", "arguments": {}} | change
    steps = talk(TOKEN).call("sights", {})
    next(steps)
    with pytest.raises(Unreachable, match="an address that is not its own"):
        steps.send(said({"routes": {"sights": route}}))


@pytest.mark.parametrize("listing", [{}, {"routes": []}, {"routes": None}], ids=str)
def test_a_listing_without_routes_is_not_of_the_service(listing):
    steps = talk().call("sights", {})
    next(steps)
    with pytest.raises(Unreachable, match="without routes"):
        steps.send(said(listing))


@pytest.mark.parametrize("credits", ["many", "٣", "", "-1"])
def test_credits_that_are_no_number_are_not_known(credits):
    assert ToolAnswer({}, b"", {"x-credits-remaining": credits}).credits_remaining is None
