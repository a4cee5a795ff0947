"""What all pages share, as a browser shows it: the theme, the keyboard, copying, print."""

import httpx
import pytest
from playwright.sync_api import expect

from tests.live.browser.visitor import Visitor
from tests.live.processes import Program

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]


def test_a_browser_gets_a_page_for_a_missing_address_and_a_program_gets_json(visitor: Visitor, demo: Program) -> None:
    visitor.expected = {404}
    page = visitor.open("/doc")
    expect(page.locator("h1")).to_have_text("Not found")
    page.get_by_role("link", name="/docs", exact=True).click()
    expect(page).to_have_url(f"{demo.url}/docs")
    visitor.check()
    assert httpx.get(f"{demo.url}/doc").json()["error"] == "not_found"
    assert httpx.get(f"{demo.url}/api/x", headers={"accept": "text/html"}).json()["error"] == "not_found"


def test_the_theme_is_the_systems_until_the_reader_chooses_and_is_kept(visitor: Visitor) -> None:
    page = visitor.open("/docs")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Dark theme").click()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    visitor.open("/changelog")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark != light
    page.get_by_role("button", name="System theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == light
    assert page.evaluate("localStorage.length") == 0


def test_the_first_key_leads_past_the_navigation(visitor: Visitor) -> None:
    page = visitor.open("/docs")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_code_is_copied_by_a_button(visitor: Visitor, demo: Program) -> None:
    visitor.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = visitor.open("/problems/not_found")
    page.get_by_role("button", name="Copy").first.click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == page.locator("pre").first.inner_text()


def test_a_static_file_is_kept_for_a_year_under_its_own_version_only(demo: Program) -> None:
    page = httpx.get(f"{demo.url}/docs").text
    path = next(part for part in page.split('"') if part.endswith("/css/style.css"))
    assert "immutable" in httpx.get(demo.url + path).headers["cache-control"]
    other = httpx.get(f"{demo.url}/static/0123456789ab/css/style.css")
    assert (other.status_code, other.headers["cache-control"]) == (200, "no-cache")
    assert httpx.get(f"{demo.url}/static/0123456789ab/css/none.css").status_code == 404


def test_printed_pages_have_no_controls(visitor: Visitor) -> None:
    page = visitor.open("/problems/not_found")
    page.emulate_media(media="print")
    assert not page.get_by_role("button").first.is_visible()
    assert not page.locator(".top nav").is_visible()
