"""The documentation in Chromium: the search finds places in documents and tools, the side list leads on."""

import re

import pytest
from playwright.sync_api import expect

from tests.live.browser.visitor import Visitor

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]


def test_the_search_finds_a_section_and_leads_to_it(visitor: Visitor) -> None:
    page = visitor.open("/docs")
    page.get_by_label("Search documents and tools").fill("standard webhooks signature")
    first = page.locator("#search-found a").first
    expect(first).to_be_visible()
    expect(page.locator("#search-count")).to_have_text(re.compile(r"\d+ places"))
    target = first.get_attribute("href") or ""
    assert target.startswith("/docs/")
    first.click()
    expect(page).to_have_url(re.compile(re.escape(target)))
    visitor.check()


def test_the_search_finds_a_tool_by_a_word_of_its_description(visitor: Visitor) -> None:
    page = visitor.open("/docs/webhooks")
    page.get_by_label("Search documents and tools").fill("magnitude worldwide")
    expect(page.locator('#search-found a[href="/t/earthquakes"]')).to_be_visible()
    page.get_by_label("Search documents and tools").fill("<b>zzzz")
    expect(page.locator("#search-count")).to_have_text("0 places")
    visitor.check()


def test_the_side_list_marks_the_page_and_leads_to_the_next(visitor: Visitor) -> None:
    page = visitor.open("/docs/webhooks")
    side = page.get_by_role("navigation", name="Documents")
    expect(side.locator("[aria-current=page]")).to_have_text("Webhooks")
    side.get_by_role("link", name="Operating").click()
    expect(page.locator("h1")).to_have_text("Operating")
    visitor.check()
