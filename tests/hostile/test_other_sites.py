"""What another site can do with a visitor's browser: nothing, as no request carries anything by itself.

A page of another site may send requests of a few kinds without being asked about it, with the cookies that a browser
has. It may put our pages into a frame, load our answers as scripts, and look at what caches have kept.
"""

import httpx
import pytest

from tests.live.processes import Program

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]
EVIL = {"origin": "https://evil.example", "referer": "https://evil.example/", "sec-fetch-site": "cross-site"}
SIMPLE = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b")  # need no preflight
PRIVATE = ("/api/payment/balance", "/api/payment/statement", "/api/payment/allowances", "/api/pro/subscriptions")
PUBLIC = ("/", "/account", "/buy", "/status", "/receipts", "/docs", "/api/btc-price")
COOKIES = {"cookie": "session=1; token=svc_live_" + 64 * "0"}


@pytest.fixture
def mine(service: Program) -> dict[str, str]:
    return {"authorization": f"Bearer {service.ready['token']}"}


def balance(client: httpx.Client, mine: dict[str, str]) -> int:
    return int(client.get("/api/payment/balance", headers=mine).json()["credits"])


def test_no_page_or_answer_sets_a_cookie_and_none_is_read(client, mine):
    for path in (*PUBLIC, *PRIVATE):
        assert "set-cookie" not in client.get(path, headers=mine).headers, path
        if path in PRIVATE:
            answer = client.get(path, headers=EVIL | COOKIES)
            assert answer.status_code in (401, 402), (path, answer.status_code)


@pytest.mark.parametrize("kind", SIMPLE)
def test_a_form_of_another_site_changes_nothing_and_costs_nobody_anything(client, mine, kind):
    before = balance(client, mine)
    made = client.get("/api/pro/subscriptions", headers=mine).json()
    for path in ("/api/pro/subscribe", "/api/payment/allowances", "/api/payment/topup", "/api/payment/reissue/cancel"):
        for body in (b'{"endpoint":"macro","webhook_url":"https://evil.example/"}', b"endpoint=macro&max_credits=5"):
            answer = client.post(path, content=body, headers=EVIL | COOKIES | {"content-type": kind})
            assert answer.status_code >= 400, (path, answer.status_code, answer.text)
    assert balance(client, mine) == before
    assert client.get("/api/pro/subscriptions", headers=mine).json()["subscriptions"] == made["subscriptions"]


def test_what_is_private_is_kept_by_no_cache_and_credentials_are_given_to_no_origin(client, mine):
    for path in PRIVATE:
        for headers in (mine, mine | EVIL, EVIL):
            answer = client.get(path, headers=headers)
            assert "no-store" in answer.headers["cache-control"], (path, answer.headers)
            assert "access-control-allow-credentials" not in answer.headers
    sold = client.get("/api/pro/macro", headers=mine)
    assert (sold.status_code, sold.headers["cache-control"]) == (200, "private, no-store")
    for path in PUBLIC:
        answer = client.get(path, headers=mine)
        assert service_token(mine) not in answer.text, path
        assert answer.headers.get("access-control-allow-origin", "*") == "*", "an origin is never echoed"


def service_token(mine: dict[str, str]) -> str:
    return mine["authorization"].removeprefix("Bearer ")


def test_no_page_is_framed_or_read_as_another_type(client):
    for path in PUBLIC:
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff", path
        if "text/html" in headers["content-type"]:
            assert "frame-ancestors 'none'" in headers["content-security-policy"], path
            assert "form-action" in headers["content-security-policy"], path


def test_the_operators_page_is_neither_framed_nor_kept_nor_given_to_another_site(service):
    url = str(service.ready["metrics_url"]).removesuffix("/metrics")
    with httpx.Client(base_url=url, timeout=20, trust_env=False) as client:
        for path in ("/", "/operators.json"):
            answer = client.get(path, headers=EVIL | COOKIES)
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert not [name for name in answer.headers if name.startswith("access-control")]
            assert "set-cookie" not in answer.headers
            for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
                assert client.request(method, path, headers=EVIL).status_code == 405, method
        page = client.get("/")
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
        assert "<form" not in page.text
        assert "<script" not in page.text
        assert client.get("/", headers={"host": "evil.example"}).status_code == 421
