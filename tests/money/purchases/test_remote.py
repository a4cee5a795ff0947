"""Credits that another service sells: its answers and its refusals as ours, and what is said when it is away."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import httpx
import pytest

from tests.money.purchases.parts import TX
from tests.money.purchases.test_faces import doors
from toolserver.errors import (
    CallRejected,
    ChainUnavailable,
    InvalidArguments,
    NotFound,
    PaymentPending,
    RateLimited,
    RevokedToken,
)
from toolserver.money.ledger.statements import StatementRange
from toolserver.money.purchases.credit_sales import Claim
from toolserver.money.purchases.quotes import challenge_of
from toolserver.money.purchases.remote import MOST_BYTES, RemoteStatements, forward_to, open_remote_purchases

CLAIM = Claim(f"0x{TX.hex()}", "svc_buy_" + "0" * 32)
URL = "https://a.example"


def saying(status, body, **headers):
    """A service that says that, and what it was asked."""
    asked = []

    async def answer(request):
        asked.append(request)
        if isinstance(body, Exception):
            raise body
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return httpx.Response(status, content=content, headers={k.replace("_", "-"): v for k, v in headers.items()})

    return httpx.MockTransport(answer), asked


async def refusal(transport, ask=lambda desk: desk.confirm(CLAIM)):
    async with open_remote_purchases(URL, transport=transport) as desk:
        with pytest.raises(CallRejected) as caught:
            await ask(desk)
    return caught.value


async def test_a_quote_and_a_lock_on_it_are_the_other_services_own(tmp_path):
    async with doors(tmp_path) as a, open_remote_purchases(URL, transport=a.transport) as desk:
        quote = await desk.quote(Decimal("12.345678"), challenge=challenge_of("v" * 43))
        assert (quote.amount, quote.credits) == (12_345_678, 617)
        assert quote.expires_at.isoformat() == "2027-01-15T08:30:00+00:00"
        assert quote.uri.startswith("ethereum:")
        assert quote.commitment
        pending = await refusal(a.transport, lambda d: d.confirm(CLAIM._replace(memo=quote.memo, verifier="v" * 43)))
        assert isinstance(pending, PaymentPending)
        assert (pending.headers["Retry-After"], pending.extra["required"]) == ("3", 3)
        assert isinstance(await refusal(a.transport), NotFound)


async def test_a_balance_is_asked_for_with_the_callers_own_token():
    transport, asked = saying(200, {"credits": 5, "issued_at": "2027-01-15T08:00:00Z", "more": 1})
    async with open_remote_purchases(URL, transport=transport) as desk:
        assert (await desk.balance("svc_live_x")).credits == 5
    assert asked[0].headers["authorization"] == "Bearer svc_live_x"
    assert str(asked[0].url) == f"{URL}/api/payment/balance"


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"error": "invalid_arguments", "detail": "x", "errors": [{"loc": "tx_hash"}]}, InvalidArguments),
        (429, {"error": "rate_limited", "detail": "x", "retry_after_seconds": 9}, RateLimited),
        (503, {"error": "chain_unavailable", "detail": "x"}, ChainUnavailable),
        (402, {"error": "expired", "detail": "x", "signup": "https://a.example", "pricing": {}}, RevokedToken),
    ],
)
async def test_a_refusal_is_handed_on_with_what_belongs_to_it(status, body, kind):
    found = await refusal(saying(status, body, retry_after="9")[0])
    assert type(found) is kind
    assert (found.code, found.detail, found.status) == (body["error"], "x", status)
    assert found.headers == {"Retry-After": "9"}
    assert set(found.extra) == set(body) & {"errors", "retry_after_seconds"}


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, {"error": "internal_error"}),
        (200, b"not JSON"),
        (200, {"token": 1}),
        (404, b"<html>"),
        (409, {"error": "never_heard_of"}),
        (200, {"error": "payment_pending"}),
        (500, {"error": "payment_pending"}),
        (302, {}),
        (200, httpx.ConnectError("refused")),
        (200, b" " * (MOST_BYTES + 1)),
    ],
    ids=str,
)
async def test_anything_else_means_that_it_is_away(status, body):
    found = await refusal(saying(status, body, location="https://elsewhere.example")[0])
    assert (found.code, found.status, found.headers) == ("billing_unavailable", 402, {"Retry-After": "15"})


async def passed(transport, body=b'{"amount_usd": 5}', **headers):
    def refused(rejection):
        return rejection.status, rejection.code.encode()

    async with open_remote_purchases(URL, transport=transport) as desk:
        app = forward_to(desk, "/api/payment/topup", refused=refused)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://b.example") as client:
            return await client.post("/api/payment/topup", content=body, headers=headers)


async def test_a_top_up_is_passed_on_as_it_comes_and_so_is_the_answer():
    transport, asked = saying(
        402, b'{"x": 1 }', payment_required="abc", set_cookie="no", content_type="application/json"
    )
    answer = await passed(transport, **{"payment-signature": "sig", "cookie": "no", "authorization": "Bearer t"})
    assert (answer.status_code, answer.content, answer.headers["payment-required"]) == (402, b'{"x": 1 }', "abc")
    assert "set-cookie" not in answer.headers
    (request,) = asked
    assert (request.content, str(request.url)) == (b'{"amount_usd": 5}', f"{URL}/api/payment/topup")
    assert (request.headers["payment-signature"], request.headers["authorization"]) == ("sig", "Bearer t")
    assert "cookie" not in request.headers


async def test_a_visitor_token_is_not_passed_on():
    transport, asked = saying(200, {"token": "t"})
    await passed(transport, authorization=f"Bearer svc_free_{'a' * 64}")
    assert "authorization" not in asked[0].headers


async def test_a_top_up_while_the_other_service_is_away_is_refused():
    answer = await passed(saying(200, httpx.ConnectError("refused"))[0])
    assert (answer.status_code, answer.content, answer.headers["retry-after"]) == (402, b"billing_unavailable", "15")
    assert (await passed(saying(200, {})[0], b"x" * (MOST_BYTES + 1))).status_code == 400


AT = datetime(2027, 1, 15, 8, tzinfo=UTC)
ENTRY = {
    **{"at": "2027-01-15T08:00:00Z", "kind": "call", "credits": -2, "call_id": "call_1", "endpoint": "/api/pro/x"},
    **{"state": "posted", "receipt_id": "rcpt_1", "no_charge_reason": None, "transaction": None, "new": 1},
}


async def test_the_owner_is_asked_with_the_callers_token_and_range():
    transport, asked = saying(200, {"credits": 5, "entries": [ENTRY], "next_cursor": "0" * 16})
    async with open_remote_purchases(URL, transport=transport) as desk:
        found = await RemoteStatements(desk).read("svc_live_x", StatementRange(AT, None, "f" * 16, 7))

    assert (found.credits, found.cursor) == (5, "0" * 16)
    assert found.lines[0][:4] == (AT, "call", -2, "call_1")
    assert found.lines[0].receipt_id == "rcpt_1"
    assert asked[0].headers["authorization"] == "Bearer svc_live_x"
    assert dict(asked[0].url.params) == {"from": "2027-01-15T08:00:00.000Z", "cursor": "f" * 16, "limit": "7"}
