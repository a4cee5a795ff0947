"""Paying for a call in a chat: an official client opens the page, the demo wallet pays, and the same call answers."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.live.browser.test_account import opened
from tests.live.browser.test_buy import SETTLED_S, fast, offered
from tests.live.browser.visitor import DESK, PHONE, Theme, visiting
from tests.live.buying import bought
from tests.live.processes import Program
from tests.live.programs import CLIENTS, NODE, installed

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

TOOL, PRICE = "premium_macro", 2
SDKS = ["python", "typescript"]


class Chat:
    """A running client, and the lines that it says."""

    def __init__(self, program: "subprocess.Popen[str]") -> None:
        self._program = program

    def read(self) -> dict[str, Any]:
        assert self._program.stdout is not None
        line = self._program.stdout.readline()
        assert line, "the client ended"
        found: dict[str, Any] = json.loads(line)
        return found

    def answer(self, action: str) -> dict[str, Any]:
        """What came of the call after a person's answer."""
        assert self._program.stdin is not None
        self._program.stdin.write(f"{action}\n")
        self._program.stdin.flush()
        return self.read()


@contextmanager
def chatting(sdk: str, demo: Program, token: str = "") -> Iterator[Chat]:
    command = [sys.executable, CLIENTS / "elicit.py"]
    if sdk == "typescript":
        installed(NODE, CLIENTS / "node_modules" / "@modelcontextprotocol" / "client")
        command = [NODE, CLIENTS / "elicit.mjs"]
    program = subprocess.Popen(
        [*command, demo.ready["mcp_url"], token, TOOL],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=CLIENTS,
    )
    try:
        yield Chat(program)
    finally:
        program.kill()
        program.communicate()


def credits_of(demo: Program, token: str) -> int:
    bearer = {"authorization": f"Bearer {token}"}
    return int(httpx.get(f"{demo.url}/api/payment/balance", headers=bearer, trust_env=False).json()["credits"])


def check_request(page: Page, request: dict[str, Any]) -> None:
    """The page shows what the chat shows."""
    expect(page.get_by_role("heading", name="A chat asks you to pay")).to_be_visible()
    assert f"the code {page.locator('#asked-code').inner_text()}" in request["message"]
    assert page.locator("#asked-price").inner_text() == f"{PRICE} credits"


@pytest.mark.parametrize(("sdk", "width", "theme"), [("python", DESK, "light"), ("typescript", PHONE, "dark")])
def test_a_call_without_credits_opens_the_page_the_wallet_pays_and_the_same_call_answers(
    browser: Browser, demo: Program, sdk: str, width: int, theme: Theme
) -> None:
    with chatting(sdk, demo) as chat, visiting(browser, demo.url, width=width, theme=theme) as window:
        request = chat.read()
        assert request["mode"] == "url"
        window.expected = {409}
        page = window.open(request["open"].removeprefix(demo.url))
        check_request(page, request)
        window.check()
        window.check_accessibility()
        offered(page, "2")
        page.get_by_role("button", name="Pay from the demo wallet").click()
        with fast(demo):
            expect(page.get_by_role("heading", name="100 credits are yours")).to_be_visible(timeout=SETTLED_S)
        expect(page.locator("#call-paid")).to_contain_text("The call is paid")
        window.check_accessibility()
        token = page.locator("#token").inner_text()
        result = chat.answer("accept")
        assert (result["failed"], result["answer"]["endpoint"]) == (False, "/api/pro/macro")
        assert token not in json.dumps([request, result])
        assert credits_of(demo, token) == 100 - PRICE


@pytest.mark.parametrize("sdk", SDKS)
def test_credits_for_the_account_of_a_chat_are_sold_only_to_a_browser_with_its_token(
    browser: Browser, demo: Program, sdk: str
) -> None:
    token, other = bought(demo, demo.ready["world_url"], 1), bought(demo, demo.ready["world_url"], 1)
    with httpx.Client(base_url=demo.url, headers={"authorization": f"Bearer {token}"}, trust_env=False) as http:
        while http.get("/api/payment/balance").json()["credits"] >= PRICE:
            assert http.get("/api/pro/macro").status_code == 200
    with chatting(sdk, demo, token) as chat, visiting(browser, demo.url) as window:
        request = chat.read()
        window.expected = {409}
        page = window.open(request["open"].removeprefix(demo.url))
        check_request(page, request)
        expect(page.locator("#amount-form")).to_be_hidden()
        window.check_accessibility()
        page.locator("#proof").fill(other)
        page.get_by_role("button", name="Continue").click()
        expect(page.locator("#trouble")).to_contain_text("another account")
        expect(page.locator("#amount-form")).to_be_hidden()
        page.locator("#proof").fill(token)
        page.get_by_role("button", name="Continue").click()
        offered(page, "2")
        page.get_by_role("button", name="Pay from the demo wallet").click()
        with fast(demo):
            expect(page.locator("#call-paid")).to_contain_text("100 credits were added", timeout=SETTLED_S)
        window.check()
        window.check_accessibility()
        assert chat.answer("accept")["failed"] is False
        assert (credits_of(demo, token), credits_of(demo, other)) == (100 - PRICE, 50)


def test_a_browser_that_is_remembered_buys_for_its_account_without_the_token_until_it_is_forgotten(
    browser: Browser, demo: Program
) -> None:
    token, other = bought(demo, demo.ready["world_url"], 1), bought(demo, demo.ready["world_url"], 1)
    for each in (token, other):
        with httpx.Client(base_url=demo.url, headers={"authorization": f"Bearer {each}"}, trust_env=False) as http:
            while http.get("/api/payment/balance").json()["credits"] >= PRICE:
                assert http.get("/api/pro/macro").status_code == 200
    with visiting(browser, demo.url) as window:
        page = opened(window, token)
        remembered = page.locator("#remembered")
        expect(remembered).to_contain_text("is not remembered")
        remembered.get_by_role("button", name="Remember this browser").click()
        expect(remembered).to_contain_text("is remembered until")
        window.check()
        window.check_accessibility()
        assert page.evaluate("document.cookie") == ""
        with chatting("python", demo, other) as chat:
            page = window.open(chat.read()["open"].removeprefix(demo.url))
            expect(page.locator("#proof-form")).to_be_visible()
            expect(page.locator("#amount-form")).to_be_hidden()
        with chatting("python", demo, token) as chat:
            request = chat.read()
            page = window.open(request["open"].removeprefix(demo.url))
            check_request(page, request)
            expect(page.locator("#proof-form")).to_be_hidden()
            offered(page, "2")
            page.get_by_role("button", name="Pay from the demo wallet").click()
            with fast(demo):
                expect(page.locator("#call-paid")).to_contain_text("100 credits were added", timeout=SETTLED_S)
            assert chat.answer("accept")["failed"] is False
        assert (credits_of(demo, token), credits_of(demo, other)) == (100 - PRICE, 0)
        page = opened(window, token)
        page.locator("#remembered").get_by_role("button", name="Forget this browser").click()
        expect(page.locator("#remembered")).to_contain_text("is not remembered")
        page = window.open(request["open"].removeprefix(demo.url))
        expect(page.locator("#proof-form")).to_be_visible()
        window.check()


@pytest.mark.parametrize("sdk", SDKS)
@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_person_who_declines_ends_it_with_the_ordinary_refusal_and_its_link(
    demo: Program, sdk: str, action: str
) -> None:
    with chatting(sdk, demo) as chat:
        chat.read()
        result = chat.answer(action)
        assert (result["failed"], result["answer"]["error"]) == (True, "missing_token")
        assert result["answer"]["signup"] == f"{demo.url}/docs/payments"


@pytest.mark.parametrize("sdk", SDKS)
def test_a_person_who_agrees_and_does_not_pay_ends_it_with_the_page_and_no_second_question(
    demo: Program, sdk: str
) -> None:
    with chatting(sdk, demo) as chat, fast(demo):
        request = chat.read()
        result = chat.answer("accept")
        assert (result["failed"], result["answer"]["error"]) == (True, "payment_pending")
        assert result["answer"]["purchase"]["url"] == request["open"]


def test_a_reader_with_a_token_pays_for_a_call_from_it_once(browser: Browser, demo: Program) -> None:
    token = bought(demo, demo.ready["world_url"], 1)
    with chatting("python", demo) as chat, visiting(browser, demo.url) as window:
        page = window.open(chat.read()["open"].removeprefix(demo.url))
        page.get_by_text("I have a token with credits").click()
        page.locator("#own-token").fill(token)
        page.get_by_role("button", name="Pay for the call with it").click()
        expect(page.locator("#call-paid")).to_contain_text("once")
        assert page.locator("#own-token").input_value() == ""
        assert chat.answer("accept")["failed"] is False
        assert credits_of(demo, token) == 50 - PRICE


def test_a_link_that_is_not_valid_is_said_to_be_so_and_the_page_sells_as_ever(browser: Browser, demo: Program) -> None:
    with visiting(browser, demo.url) as window:
        window.expected = {404}
        page = window.open("/buy?p=AAAA")
        expect(page.locator("#trouble")).to_contain_text("This link is damaged")
        expect(page.locator("#asked")).to_be_hidden()
        offered(page, "2")
