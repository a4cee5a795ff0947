"""The documentation in Chromium: the search finds places in documents and tools, the side list leads on."""

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.live.browser.visitor import PHONE, Visitor, visiting
from tests.live.processes import Program

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]

TALLEST = 15_000  # pixels on a phone: what is longer is more than one task, or a table to fold


def test_the_search_finds_a_section_and_leads_to_it(visitor: Visitor) -> None:
    page = visitor.open("/docs")
    page.get_by_label("Search documents and tools").fill("standard webhooks signature")
    first = page.locator("#search-found a").first
    expect(first).to_be_visible()
    expect(page.locator("#search-count")).to_have_text(re.compile(r"\d+ results?"))
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
    expect(page.locator("#search-count")).to_have_text("0 results")
    visitor.check()


@pytest.mark.parametrize("scripts", [True, False])
def test_the_page_of_results_bars_nobody_and_needs_no_javascript(
    browser: Browser, demo: Program, scripts: bool
) -> None:
    with visiting(browser, demo.url, width=PHONE, theme="dark", scripts=scripts) as window:
        page = window.open("/docs")
        page.get_by_label("Search documents and tools").fill("webhok secret")
        page.get_by_label("Search documents and tools").press("Enter")
        expect(page.locator(".search-page a").first).to_have_attribute("href", re.compile("^/docs/webhooks#"))
        if scripts:
            window.check()
            window.check_accessibility()
        assert window.faults == []


def test_a_document_lists_what_is_on_it_leads_on_and_is_copied_as_markdown(browser: Browser, demo: Program) -> None:
    with visiting(browser, demo.url) as window:
        page = window.open("/docs/webhooks")
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        contents = page.get_by_role("navigation", name="On this page")
        contents.get_by_role("link", name="Conditions").click()
        expect(page).to_have_url(re.compile("/docs/webhooks#conditions$"))
        page.get_by_role("button", name="Copy page as Markdown").click()
        expect(page.locator("#copy-markdown")).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()").startswith("# Webhooks")
        side = page.get_by_role("navigation", name="Documents").bounding_box()
        assert side is not None
        assert side["y"] < 900, "the list of documents stands below that of this page, not beside the end of the text"
        page.locator('a[rel="next"]').click()
        expect(page.locator("h1")).not_to_have_text("Webhooks")
        page.locator('a[rel="prev"]').click()
        expect(page.locator("h1")).to_have_text("Webhooks")
        window.check()
        window.check_accessibility()


def test_an_example_in_several_languages_has_tabs_and_without_a_script_all_of_them(
    browser: Browser, demo: Program
) -> None:
    with visiting(browser, demo.url) as window:
        page = window.open("/docs/connecting")
        tabs = page.get_by_role("tablist", name="The example in")
        assert tabs.first.get_by_role("tab").all_inner_texts() == ["curl", "Python", "JavaScript"]
        tabs.first.get_by_role("tab", name="Python").click()
        expect(page.get_by_text("import httpx")).to_be_visible()
        expect(page.get_by_text("await fetch")).to_be_hidden()
        window.check()
        window.check_accessibility()
    with visiting(browser, demo.url, scripts=False) as window:
        page = window.open("/docs/connecting")
        expect(page.get_by_text("import httpx")).to_be_visible()
        expect(page.get_by_text("await fetch")).to_be_visible()


def test_a_chosen_language_holds_for_every_example_of_a_page(visitor: Visitor) -> None:
    page = visitor.open("/docs/billing")
    tabs = page.get_by_role("tablist", name="The example in")
    assert tabs.count() == 3
    tabs.first.get_by_role("tab", name="JavaScript").click()
    assert [one.inner_text() for one in page.get_by_role("tab", selected=True).all()] == ["JavaScript"] * 3
    expect(page.get_by_text("import httpx").first).to_be_hidden()
    visitor.check()
    page = visitor.open("/docs/webhooks")
    assert page.get_by_role("tablist", name="The example in").count() == 1, "receivers have headings, and stay apart"
    visitor.check()


def test_the_side_list_marks_the_page_and_leads_to_the_next(visitor: Visitor) -> None:
    page = visitor.open("/docs/webhooks")
    side = page.get_by_role("navigation", name="Documents")
    expect(side.locator("[aria-current=page]")).to_have_text("Webhooks")
    side.get_by_role("link", name="Operating").click()
    expect(page.locator("h1")).to_have_text("Operating")
    visitor.check()


def test_no_page_is_endless_on_a_phone(browser: Browser, demo: Program) -> None:
    with visiting(browser, demo.url, width=PHONE) as window:
        page = window.open("/docs")
        paths = {link.get_attribute("href") for link in page.locator("#documents a").all()}
        assert len(paths) > 30
        others = {"/changelog", "/t/premium_macro", "/t/premium_agent_context", "/t/economic_data"}
        heights = {path: height_of(window, path) for path in sorted({str(path) for path in paths} | others)}
    assert {path: height for path, height in heights.items() if height > TALLEST} == {}


def height_of(window: Visitor, path: str) -> int:
    return int(window.open(path, settled=False).evaluate("document.documentElement.scrollHeight"))


def test_a_long_table_is_closed_on_a_phone_and_open_on_a_desk(browser: Browser, demo: Program) -> None:
    for width, state in [(PHONE, False), (1440, True)]:
        with visiting(browser, demo.url, width=width) as window:
            page = window.open("/docs/settings")
            assert {rows.evaluate("one => one.open") for rows in page.locator("details.rows").all()} == {state}
            if not state:
                page.get_by_text(re.compile(r"^limits\.enabled to limits\.")).click()
            expect(page.get_by_text("TOOLSERVER_LIMITS__DAILY")).to_be_visible()
            window.check()
