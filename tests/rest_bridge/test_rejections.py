"""Failures for programs and for people."""

import json

import pytest

from rest_bridge.face import RejectionWriter
from tests.catalog.tiny import FACTS, TINY
from tests.rest_bridge.markup import Page
from toolserver.errors import MissingToken, NotFound
from toolserver.money.x402.wire import REQUIRED
from toolserver.money.x402.wire import header as offer

WRITER = RejectionWriter(TINY, FACTS)
BROWSER = b"text/html,application/xhtml+xml,*/*;q=0.8"


def written(error, *, accept=BROWSER, path="/nothing", method="GET"):
    scope = {"path": path, "method": method, "headers": [(b"accept", accept)]}
    body, headers = WRITER.write(scope, error, "req_1")
    return body, dict(headers)


def missing():
    return NotFound("There is nothing at this address.", did_you_mean=["/docs", "/api/x/{id}"], catalog="…")


def test_a_browser_gets_a_page_that_leads_on():
    body, headers = written(missing())
    page = Page(body)
    assert headers[b"content-type"].startswith(b"text/html")
    assert b"script-src 'self'" in headers[b"content-security-policy"]
    assert page.faults == []
    assert "There is nothing at this address." in page.text
    assert "req_1" in page.text
    assert "/docs" in page.links
    assert not any("{" in link for link in page.links)
    assert b"canonical" not in body


@pytest.mark.parametrize(
    "asked",
    [
        {"accept": b"*/*"},
        {"accept": b"application/json"},
        {"path": "/api/nothing"},
        {"path": "/.well-known/nothing"},
        {"method": "POST"},
    ],
)
def test_programs_and_addresses_of_the_api_get_json(asked):
    body, headers = written(missing(), **asked)
    assert json.loads(body)["error"] == "not_found"
    assert headers == {b"content-type": b"application/problem+json"}


def test_payment_failures_keep_their_shape():
    body, _ = written(MissingToken("A token is needed."))
    assert json.loads(body).keys() >= {"error", "signup", "pricing"}


def test_what_was_asked_for_never_becomes_markup():
    error = NotFound("<script>alert(1)</script>", did_you_mean=['/"><b>'], catalog="…")
    body, _ = written(error)
    assert b"<script>alert" not in body
    assert b"<b>" not in body


def test_an_offer_that_comes_with_a_refusal_is_also_in_its_body_for_clients_of_version_1():
    offered = {"scheme": "exact", "network": "eip155:8453", "amount": "40000", "payTo": "0x1", "asset": "0x2"}
    required = {
        "resource": {"url": "https://data.example/api/pro/deep", "description": "d", "mimeType": "application/json"},
        "accepts": [offered | {"maxTimeoutSeconds": 60, "extra": {}}],
    }
    error = MissingToken("A token is needed.", headers={REQUIRED: offer(required)})
    told = json.loads(written(error)[0])
    assert (told["x402Version"], told["accepts"][0]["maxAmountRequired"]) == (1, "40000")
    assert "x402Version" not in json.loads(written(MissingToken("A token is needed."))[0])


def test_a_payment_failure_is_json_even_for_a_browser():
    body, headers = written(MissingToken("A token is needed."))
    assert headers == {b"content-type": b"application/problem+json"}
    assert json.loads(body)["request_id"] == "req_1"
