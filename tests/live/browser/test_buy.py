"""A purchase by clicking, on the simulated chain: offer, payment, waiting, token; and how it goes wrong."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.live.browser.visitor import DESK, PHONE, Theme, Visitor, visiting
from tests.live.processes import Program, control

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

SETTLED_S = 60_000
HASH = "0x" + "ab" * 32


@contextmanager
def fast(demo: Program) -> Iterator[None]:
    """Blocks come thirty times as fast."""
    with control(demo.ready["world_url"]) as world:
        world.put("clock", {"speed": 30})
        try:
            yield
        finally:
            world.put("clock", {"speed": 1})


def offered(page: Page, usd: str) -> None:
    page.get_by_label("US dollars").fill(usd)
    page.get_by_role("button", name="Get an address").click()
    expect(page.get_by_role("heading", name=f"Pay {usd} USDC")).to_be_focused()


def claim(page: Page, tx_hash: str) -> None:
    page.get_by_text("Payment not detected?").click()
    page.get_by_label("Transaction hash, as").fill(tx_hash)
    page.get_by_role("button", name="I have paid").click()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESK])
def test_a_purchase_completes_by_clicking(browser: Browser, demo: Program, width: int, theme: Theme) -> None:
    with visiting(browser, demo.url, width=width, theme=theme) as window:
        page = window.open("/buy")
        expect(page.locator("#buys")).to_have_text("250 credits: 125 to 250 calls")
        window.check_accessibility()
        offered(page, "2")
        assert page.evaluate("async () => { await document.querySelector('#qr').decode(); return true }")
        assert page.get_by_role("link", name="Open in a wallet").get_attribute("href").startswith("ethereum:0x833589")
        expect(page.get_by_role("timer")).to_have_text(re.compile(r"^(30:00|29:\d\d)$"))
        window.check()
        window.check_accessibility()
        page.get_by_role("button", name="Pay from the demo wallet").click()
        expect(page.get_by_role("progressbar")).to_be_visible(timeout=SETTLED_S)
        window.check_accessibility()
        with fast(demo):
            expect(page.get_by_role("heading", name="100 credits are yours")).to_be_focused(timeout=SETTLED_S)
        token = page.locator("#token").inner_text()
        assert token in page.locator("#first-call").inner_text()
        bearer = {"authorization": f"Bearer {token}"}
        assert httpx.get(f"{demo.url}/api/payment/balance", headers=bearer, trust_env=False).json()["credits"] == 100
        window.check()
        window.check_accessibility()
        assert page.evaluate("localStorage.length + sessionStorage.length") == 0
        assert page.url == f"{demo.url}/buy"
        page.get_by_role("button", name="I have saved it").click()
        expect(page.locator("#done")).to_be_visible()
        assert token not in page.content()


def test_a_payment_from_any_wallet_is_seen_by_itself(visitor: Visitor, demo: Program) -> None:
    visitor.expected = {409}
    page = visitor.open("/buy")
    offered(page, "3")
    with control(demo.ready["world_url"]) as world:
        world.paid(page.locator("#wallet").inner_text(), 3)
    with fast(demo):
        expect(page.get_by_role("heading", name="150 credits are yours")).to_be_visible(timeout=SETTLED_S)
    visitor.check()


@pytest.mark.parametrize("by_hash", [True, False])
def test_a_purchase_goes_on_later_by_its_memo(visitor: Visitor, demo: Program, by_hash: bool) -> None:
    visitor.expected = {409}
    page = visitor.open("/buy")
    offered(page, "3")
    wallet, memo = (page.locator(f"#{id}").text_content() or "" for id in ("wallet", "memo"))
    visitor.open("/buy")
    page.get_by_text("I have already paid").click()
    page.get_by_label("Memo").fill(memo)
    if not by_hash:
        page.get_by_role("button", name="Get the token").click()
        expect(page.locator("#trouble")).to_contain_text("has arrived yet")
    with control(demo.ready["world_url"]) as world, fast(demo):
        tx_hash = world.paid(wallet, 3)
        page.get_by_label("Transaction hash, if").fill(tx_hash if by_hash else "")
        world.put("clock", {"advance_s": 4})
        page.get_by_role("button", name="Get the token").click()
        expect(page.get_by_role("heading", name="150 credits are yours")).to_be_visible(timeout=SETTLED_S)
    visitor.check()


def test_waiting_shows_confirmations_and_can_be_left(visitor: Visitor) -> None:
    visitor.expected = {409}
    pending = {
        "error": "payment_pending",
        "detail": "Wait.",
        "confirmations": 2,
        "required": 3,
        "retry_after_seconds": 1,
    }
    answer = {"status": 409, "content_type": "application/problem+json", "body": json.dumps(pending)}
    visitor.page.route("**/api/payment/confirm", lambda route: route.fulfill(**answer))
    page = visitor.open("/buy")
    offered(page, "2")
    claim(page, HASH)
    expect(page.locator("#far")).to_have_text("2 of 3 confirmations.")
    assert page.get_by_role("progressbar").get_attribute("value") == "2"
    page.get_by_role("button", name="Back").click()
    expect(page.get_by_role("heading", name="Pay 2 USDC")).to_be_focused()
    visitor.check()


def test_what_waiting_does_not_mend_is_explained(visitor: Visitor, demo: Program) -> None:
    visitor.expected = {409, 400}
    page = visitor.open("/buy")
    offered(page, "2")
    with control(demo.ready["world_url"]) as world:
        elsewhere = world.paid("0x" + "1" * 40, 2)
    with fast(demo):
        claim(page, elsewhere)
        expect(page.locator("#trouble")).to_contain_text("no_matching_transfer", timeout=SETTLED_S)
    expect(page.locator("#pay")).to_be_visible()
    page.get_by_role("button", name="Another amount").click()
    page.get_by_label("US dollars").fill("0.5")
    page.get_by_role("button", name="Get an address").click()
    expect(page.locator("#trouble")).to_contain_text("invalid_arguments")
    visitor.check()


def test_who_pays_to_a_shared_address_is_asked_to_sign(visitor: Visitor) -> None:
    visitor.expected = {409}
    said: list[dict[str, str]] = []
    asked = (
        "Send payer_signature: the signature (EIP-191) by the account that paid of the text “h confirm <nonce> 0xab”."
    )
    bought = {"token": "svc_live_" + "0" * 64, "credits": 100, "late": False, "next": {"tool": "x", "how": "y"}}

    def answer(route: Route) -> None:
        said.append(route.request.post_data_json)
        if "payer_signature" in said[-1]:
            route.fulfill(json=bought)
        else:
            route.fulfill(status=409, json={"error": "payer_proof_required", "detail": asked})

    visitor.page.route("**/api/payment/confirm", answer)
    page = visitor.open("/buy")
    offered(page, "2")
    memo = page.locator("#memo").text_content() or ""
    claim(page, HASH)
    expect(page.locator("#to-sign")).to_have_text(f"h confirm {memo} 0xab")
    page.get_by_label("Signature").fill("0x" + "cd" * 65)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading", name="100 credits are yours")).to_be_visible()
    assert said[-1] == {"tx_hash": HASH, "nonce": memo, "payer_signature": "0x" + "cd" * 65}
    visitor.check()


NUMBERS = """
async (source) => {
  const {formatNumber, formatShort} = await import(source);
  return [
    formatNumber(-0), formatNumber(-0.0000000001), formatNumber(-0.004, {digits: 2}),
    formatNumber(-0.00001, {unit: "$", digits: 2}), formatShort(-0.04),
    formatNumber(-0.5), formatNumber(-1.25, {unit: "$"}), formatShort(-1200),
  ];
}
"""


def test_what_rounds_to_zero_has_no_sign(visitor: Visitor) -> None:
    page = visitor.open("/buy")
    source = str(page.locator('script[src$="/js/buy.js"]').get_attribute("src")).replace("buy.js", "format.js")
    assert page.evaluate(NUMBERS, source) == ["0", "0", "0", "$0", "0", "-0.5", "-$1.25", "-1.2K"]


WALLET = """
async ([source, offer]) => {
  const asked = [];
  const request = async ({method, params}) => {
    asked.push([method, params]);
    return {eth_requestAccounts: ["0xfrom"], eth_sendTransaction: "0xhash", personal_sign: "0xsigned"}[method];
  };
  const {payByWallet, signByWallet} = await import(source);
  return [await payByWallet({request}, offer), await signByWallet({request}, "é"), asked];
}
"""


def test_a_wallet_of_the_browser_is_asked_for_exactly_the_offer(visitor: Visitor, demo: Program) -> None:
    page = visitor.open("/buy")
    source = str(page.locator('script[src$="/js/buy.js"]').get_attribute("src")).replace("buy.js", "wallet.js")
    offer = httpx.post(f"{demo.url}/api/payment/buy-credits", json={"amount_usd": 2.5}, trust_env=False).json()
    paid, signed, asked = page.evaluate(WALLET, [source, offer])
    assert (paid, signed) == ("0xhash", "0xsigned")
    transaction = asked[2][1][0]
    assert asked[1] == ["wallet_switchEthereumChain", [{"chainId": hex(8453)}]]
    assert transaction["to"] == "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
    to, amount = offer["wallet"][2:].lower().rjust(64, "0"), f"{2_500_000:064x}"
    assert transaction["data"] == f"0xa9059cbb{to}{amount}{offer['memo_commitment'][2:]}"
    assert asked[-1] == ["personal_sign", ["0xc3a9", "0xfrom"]]


def test_a_payment_that_is_seen_and_refused_is_confirmed_once_only(visitor: Visitor) -> None:
    visitor.expected = {409}
    looks: list[Route] = []
    claims: list[Route] = []

    def look(route: Route) -> None:
        looks.append(route)
        route.fulfill(json={"tx_hash": HASH})

    def refuse(route: Route) -> None:
        claims.append(route)
        route.fulfill(status=409, json={"error": "already_credited", "detail": "It was credited."})

    visitor.page.route("**/buy/payment", look)
    visitor.page.route("**/api/payment/confirm", refuse)
    page = visitor.open("/buy")
    offered(page, "2")
    expect(page.locator("#trouble")).to_contain_text("already_credited", timeout=30_000)
    seen = len(looks)
    for _ in range(2):  # the second one is asked when all that the first one led to is over
        page.wait_for_event("requestfinished", lambda request: request.url.endswith("/buy/payment"), timeout=30_000)
    assert len(looks) > seen
    expect(page.locator("#pay")).to_be_visible()
    expect(page.locator("#trouble")).to_contain_text("already_credited")
    assert len(claims) == 1
    visitor.check()
