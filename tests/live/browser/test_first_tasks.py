"""Five first tasks of a person: from the home page, by what is seen, in at most six clicks."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.live.browser.visitor import Visitor, visiting
from tests.live.processes import Program, control

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

MOST_CLICKS = 6
SETTLED_MS = 60_000


@dataclass
class Newcomer:
    """A person who has never been here. Nothing is opened but the home page, and every click is counted."""

    window: Visitor
    clicks: list[str] = field(default_factory=list)

    @property
    def page(self) -> Page:
        return self.window.page

    def click(self, place: Locator) -> None:
        """Click on what is seen, wherever it stands, and note its text."""
        expect(place).to_be_visible(timeout=SETTLED_MS)
        self.clicks.append(place.inner_text().partition("\n")[0])
        assert len(self.clicks) <= MOST_CLICKS, self.clicks
        place.click()

    def read(self, words: str) -> Locator:
        """Return the first control that says exactly this."""
        named = {"name": words, "exact": True}
        return self.page.get_by_role("link", **named).or_(self.page.get_by_role("button", **named)).first


@pytest.fixture
def newcomer(browser: Browser, demo: Program) -> Iterator[Newcomer]:
    with visiting(browser, demo.url) as window:
        window.expected = {409}  # a payment that is not confirmed yet
        window.open("/", settled=False)
        someone = Newcomer(window)
        yield someone
        print("\n", someone.clicks)
        window.check()


def test_someone_finds_the_price_of_ether(newcomer: Newcomer) -> None:
    newcomer.click(newcomer.read("Bitcoin price"))
    newcomer.page.wait_for_selector("#answer[data-filled]", timeout=SETTLED_MS)  # a person reads bitcoin's price first
    newcomer.click(newcomer.page.get_by_label("coin", exact=True))
    newcomer.page.keyboard.type("ETH")
    newcomer.click(newcomer.read("Run"))
    expect(newcomer.page.locator("#headline")).to_contain_text("Ethereum", timeout=SETTLED_MS)
    assert re.search(r"\$[\d,]+\.\d\d", newcomer.page.locator("#headline").inner_text())


def test_someone_watches_earthquakes(newcomer: Newcomer) -> None:
    asked: list[str] = []
    newcomer.page.on("request", lambda request: asked.append(request.url))
    newcomer.click(newcomer.read("Recent earthquakes"))
    expect(newcomer.page.locator("#answer svg.world .mark").first).to_be_visible(timeout=SETTLED_MS)
    before = sum(url.endswith("/t/earthquakes.json") for url in asked)
    with newcomer.page.expect_request("**/t/earthquakes.json", timeout=SETTLED_MS):
        pass  # the page asks again by itself, without a click
    assert sum(url.endswith("/t/earthquakes.json") for url in asked) > before >= 1
    newcomer.click(newcomer.page.get_by_role("tab", name="Table").first)
    expect(newcomer.page.locator("#as-table")).to_contain_text("magnitude")


def buy_and_spend(newcomer: Newcomer, demo: Program) -> None:
    newcomer.click(newcomer.read("Buy"))
    newcomer.click(newcomer.read("Get an address to pay to"))
    newcomer.click(newcomer.read("Pay from the demo wallet"))
    with control(demo.ready["world_url"]) as world:
        world.put("clock", {"speed": 30})
        try:
            expect(newcomer.page.locator("#token")).to_have_text(re.compile("svc_live_"), timeout=SETTLED_MS)
        finally:
            world.put("clock", {"speed": 1})
    newcomer.click(newcomer.page.get_by_role("button", name=re.compile("^Call .* here for . credit")))
    expect(newcomer.page.locator("#first-answer")).to_contain_text("credits are left", timeout=SETTLED_MS)


def test_someone_buys_credits_and_spends_one(newcomer: Newcomer, demo: Program) -> None:
    buy_and_spend(newcomer, demo)
    token = newcomer.page.locator("#token").inner_text()
    headers = {"authorization": f"Bearer {token}"}
    statement = httpx.get(f"{demo.url}/api/payment/statement", headers=headers, timeout=30, trust_env=False).json()
    assert statement["entries"][0]["kind"] == "call"
    assert f"{statement['credits']} credits are left" in newcomer.page.locator("#first-answer").inner_text()


def test_someone_verifies_the_receipt_of_what_was_bought(newcomer: Newcomer, demo: Program) -> None:
    buy_and_spend(newcomer, demo)
    newcomer.click(newcomer.read("Verify its receipt"))
    expect(newcomer.page.locator("[data-verdict=good]")).to_have_text("Valid", timeout=SETTLED_MS)
    states = [row.get_attribute("data-state") for row in newcomer.page.locator("[data-check]").all()]
    assert states.count("good") >= 4
    assert "bad" not in states


def test_someone_connects_cursor(newcomer: Newcomer) -> None:
    newcomer.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    newcomer.click(newcomer.page.locator(".quick").get_by_text("Cursor", exact=True))
    shown = newcomer.page.locator(".pick-panel:visible")
    newcomer.click(shown.get_by_role("button", name="Copy"))
    settings = json.loads(newcomer.page.evaluate("navigator.clipboard.readText()"))
    (server,) = settings["mcpServers"].values()
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"accept": "application/json, text/event-stream"}
    answer = httpx.post(server["url"], json=message, headers=headers, timeout=30, trust_env=False)
    assert len(answer.json()["result"]["tools"]) > 5
    assert (shown.get_by_role("link").get_attribute("href") or "").startswith("cursor://")
