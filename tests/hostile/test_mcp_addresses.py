"""Addresses that strangers name over MCP, against real servers: resources, skills, receivers, and links to pay."""

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.live.processes import UNLIMITED, Program, started

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

SERVERS = ("hypercorn", "uvicorn")
SECRET = "whsec_" + "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
SCHEMES = ("ms-msdt:", "search-ms:", "shell:", "ssh:", "chrome-extension:", "javascript:", "data:", "intent:", "file:")
ADDED = ("\r", "\n", "\t", "\0", "%0d", "%0A", "%09", "%00", "\u00ad", "\u034f", "\u115f", "\u200b", "\u202e", "\ufe0f")
CLIMBING = (
    *("toolserver://docs/../../README", "toolserver://docs/..%2f..%2fREADME", "toolserver://docs//etc/passwd"),
    *("toolserver://docs/tools/weather", "toolserver://user:word@docs/billing", "toolserver://döcs/billing"),
    *("TOOLSERVER://docs/billing", "toolserver:docs/billing", "skill://../SKILL.md", "skill://buy-credits/../SKILL.md"),
    *("ui://toolserver/../style.css", "ui://toolserver/%2e%2e/x.html", "toolserver://answers/../forex", ""),
    *("toolserver://answers/premium_macro", "toolserver://answers/payment_buy_credits?amount_usd=5"),
    *("toolserver://receipts/../keys", f"toolserver://receipts/{'x' * 60_000}", f"toolserver://docs/{'../' * 20_000}"),
)
ENDLESS = "toolserver://answers/weather?" + "&".join(f"a{n}=" for n in range(10_000))


@pytest.fixture(scope="module", params=SERVERS)
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder = tmp_path_factory.mktemp(request.param)
    with started("demo", "--server", request.param, folder=folder, **UNLIMITED) as program:  # type: ignore[arg-type]
        yield program


def ask(client: httpx.Client, method: str, params: Any) -> dict[str, Any]:
    """The answer to a message, which is JSON-RPC whatever was asked."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    answer = client.post("/api/mcp", content=json.dumps(message), headers=headers)
    assert answer.status_code < 500, answer.text
    found: dict[str, Any] = answer.json()
    return found


def bearing(service: Program) -> httpx.Client:
    token = {"authorization": f"Bearer {service.ready['token']}"}
    return httpx.Client(base_url=service.url, headers=token, timeout=60, trust_env=False)


@pytest.mark.parametrize("method", ["resources/read", "skills/get"])
def test_only_what_is_listed_is_read_however_an_address_is_written(service: Program, method: str) -> None:
    with bearing(service) as client:
        good = "toolserver://docs/billing" if method == "resources/read" else "skill://buy-credits/SKILL.md"
        assert "result" in ask(client, method, {"uri": good})
        spoilt = [good[:at] + added + good[at:] for added in ADDED for at in range(0, len(good) + 1, 4)]
        surrogates = ["toolserver://docs/\ud800", "toolserver://receipts/\udfff"]
        for uri in (*CLIMBING, ENDLESS, *spoilt, *surrogates, *(f"{scheme}//docs/billing" for scheme in SCHEMES)):
            answer = ask(client, method, {"uri": uri})
            assert answer["error"]["code"] in {-32600, -32602, -32002, -32700}, (uri[:80], answer)
    assert "Traceback" not in service.said


def test_no_receiver_is_asked_at_an_address_that_is_not_its_own(service: Program) -> None:
    with bearing(service) as client:
        for address in (
            *(f"{scheme}//example.com/hook" for scheme in SCHEMES),
            *(f"https://example.com/a{added}b" for added in ADDED if not added.startswith("%")),
            *("https://user:word@example.com/", "https://example.com:４４３/", "https://example.com\\@127.0.0.1/"),
            *("https://[::ffff:10.0.0.1]/", "https://①②⑦.0.0.1.nip.example:22/", "https://example.com/\ud800"),
        ):
            delivery = {"mode": "webhook", "url": address, "secret": SECRET}
            params = {"name": "price.crossed", "arguments": {"symbol": "btc", "below": 1}, "delivery": delivery}
            answer = ask(client, "events/subscribe", params)
            assert answer["error"]["code"] in {-32602, -32700}, (address, answer)
            assert "whsec_" not in json.dumps(answer)
        for params in ({}, [], {"name": "\ud800", "delivery": {"url": "x"}}, {"name": "x" * 60_000, "delivery": None}):
            assert "error" in ask(client, "events/subscribe", params)
    assert "Traceback" not in service.said


def test_a_link_that_was_not_made_here_says_nothing_and_a_state_that_was_not_is_refused(service: Program) -> None:
    with bearing(service) as client:
        for link in ("A" * 999, "A" * 8_000, "../../etc/passwd", "javascript:alert(1)", "\u202e", "<script>alert(1)"):
            page = client.get("/buy", params={"link": link})
            assert page.status_code == 200
            assert link not in page.text
        for state in ("", "A" * 50_000, "\ud800", 5, None, [], {"a": 1}, "..", "v1.\u202e"):
            params = {"name": "premium_macro", "arguments": {}, "requestState": state, "inputResponses": {"buy": {}}}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            answer = client.post("/api/mcp", content=json.dumps(message), headers={"content-type": "application/json"})
            assert answer.status_code < 500, answer.text
    assert "Traceback" not in service.said


def test_a_search_takes_no_longer_for_a_hostile_question_than_fifty_common_ones(service: Program) -> None:
    hostile = ("x" * 200, "(a+)+$" * 33, " ".join(f"qz{n:02}xw" for n in range(33)), "İ" * 200, "ſ" * 200, "日本" * 100)
    with bearing(service) as client:
        client.get("/docs/search", params={"q": "first"})
        began = time.monotonic()
        for number in range(50):
            assert client.get("/docs/search", params={"q": f"credits {number}"}).status_code == 200
        common_s = time.monotonic() - began
        for question in hostile:
            began_at = time.monotonic()
            assert client.get("/docs/search", params={"q": question}).status_code == 200
            assert time.monotonic() - began_at < common_s, question
    assert "Traceback" not in service.said
