"""The home page in Chromium: cards fill and update, nothing is asked for elsewhere, and the page is light."""

import re

import pytest
from playwright.sync_api import Route, expect

from tests.live.browser.visitor import Visitor
from tests.live.processes import Program

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]


def card(window: Visitor, tool: str):
    return window.page.locator(f"#card-{tool}")


def test_cards_fill_by_themselves_with_value_age_and_price(visitor: Visitor) -> None:
    visitor.open("/")
    price = card(visitor, "btc_price")
    expect(price.locator(".value")).to_have_text(re.compile(r"^\$[\d,]+\.\d\d$"), timeout=60_000)
    expect(price.locator("time")).to_have_text(re.compile(r"^\d+ (s|min) ago$"))
    expect(price.locator(".foot")).to_contain_text("free")
    expect(visitor.page.locator("#cards")).to_have_attribute("data-filled", re.compile(r"^2[4-9]$"), timeout=110_000)
    visitor.check()


def test_a_card_follows_what_the_document_says(visitor: Visitor) -> None:
    """The document is answered by the test: what comes from elsewhere is text, and only real points are drawn."""
    said = {"value": 1234.5, "note": ["<b>bold</b> ", 2, " javascript:alert(1)"], "series": []}

    def answer(route: Route) -> None:
        one = {"tool": "btc_price", "unit": "$", "updated_at": "2026-11-23T05:00:00Z", "stale": False, **said}
        route.fulfill(json={"generated_at": "2026-11-23T05:00:12Z", "values": [one]})

    visitor.page.route("**/live.json", answer)
    page = visitor.open("/")
    price = card(visitor, "btc_price")
    expect(price.locator(".value")).to_have_text("$1,234.50")
    expect(price.locator(".note")).to_have_text("<b>bold</b> 2 javascript:alert(1)")
    expect(price.locator("time")).to_have_text(re.compile(r"1[23] s ago"))
    expect(price.locator("svg")).to_have_count(0)

    said |= {"value": 1300, "series": [["2026-11-23T04:00:00Z", 1200], ["2026-11-23T04:30:00Z", 1234.5], ["…", 1300]]}
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(price.locator(".value")).to_have_text("$1,300.00")
    expect(price.locator("svg")).to_have_attribute("data-points", "3")
    visitor.check()


def test_a_service_that_is_away_is_told_and_the_values_stay(visitor: Visitor) -> None:
    page = visitor.open("/")
    expect(card(visitor, "btc_price").locator(".value")).not_to_have_text("no value yet", timeout=60_000)
    page.route("**/live.json", lambda route: route.abort())
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator("#trouble")).to_contain_text("cannot be reached")
    expect(card(visitor, "btc_price").locator(".value")).to_have_text(re.compile(r"\d"))


def test_the_page_is_light_and_leads_on(visitor: Visitor, demo: Program) -> None:
    page = visitor.open("/")
    assert visitor.weight < 100_000, visitor.sizes
    links = page.locator(".ways .button")
    assert links.count() >= 2
    assert {str(link.get_attribute("href")).split(":")[0] for link in links.all()} >= {"cursor", "vscode"}
    expect(page.locator(".ways pre").first).to_have_text(f"{demo.url}/api/mcp")
