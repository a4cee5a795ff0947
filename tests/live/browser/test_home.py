"""The home page in Chromium: it opens filled, follows the values, obeys its visitor, and is light."""

import json
import re
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.live.browser.visitor import PHONE, visiting
from tests.live.processes import UNLIMITED, Program, started

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]
EXCHANGE = "(Coinbase|Kraken)"  # the second answers where the first is slow, on a busy machine


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A fresh demo, as people start it."""
    with started("demo", folder=tmp_path_factory.mktemp("filled"), fills=True, **UNLIMITED) as program:
        yield program


@pytest.fixture
def page(browser: Browser, filled: Program) -> Iterator[Page]:
    with visiting(browser, filled.url) as window:
        yield window.open("/", settled=False)
        window.check()


def card(page: Page, tool: str):
    return page.locator(f"#card-{tool}")


def refresh(page: Page) -> None:
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def test_the_first_view_of_a_fresh_demo_has_every_tile_filled(browser: Browser, filled: Program) -> None:
    """This test must be the first that opens the page. Without scripts, the first bytes alone have the values."""
    with visiting(browser, filled.url, scripts=False) as window:
        page = window.open("/", settled=False)
        expect(page.locator("#cards .missing")).to_have_count(0)
        assert page.locator("#cards .card").count() >= 26
        expect(card(page, "btc_price").locator(".value")).to_have_text(re.compile(r"^\$[\d,]+\.\d\d$"))
        expect(card(page, "btc_price").locator(".foot")).to_contain_text(re.compile(rf"^\s*\d\d:\d\d UTC\s*{EXCHANGE}"))
        assert int(page.locator(".ticker .spark").first.get_attribute("data-points") or 0) >= 20  # hours of a day
        assert page.locator(".world .m").count() > 50
        expect(page.locator(".news li")).not_to_have_count(0)
        expect(page.locator(".health li")).to_have_count(15)


def test_ages_count_and_numbers_are_written_for_the_reader(page: Page) -> None:
    expect(card(page, "btc_price").locator(".foot time")).to_have_text(re.compile(r"^\d+ (s|min) ago$"))
    expect(card(page, "weather").locator(".unit")).to_have_text("°F")  # the browser is American
    expect(page.locator(".news time").first).to_have_text(re.compile(r"(ago$|^in )"))


def test_a_card_follows_what_the_service_says_and_text_stays_text(page: Page, filled: Program) -> None:
    part = httpx.get(f"{filled.url}/front.html", timeout=60).text
    inner = re.search(r'id="card-btc_price".*?</li>', part, re.DOTALL)
    assert inner is not None

    def answer(route: Route) -> None:
        changed = re.sub(
            r'<p class="note[^>]*>.*?</p>', '<p class="note">&lt;b&gt;bold&lt;/b&gt;</p>', inner[0], flags=re.DOTALL
        )
        changed = re.sub(r'value="[\d.]+" data-unit="\$">[^<]*', 'value="1234.5" data-unit="$">$1,234.50', changed)
        route.fulfill(body=part.replace(inner[0], changed), content_type="text/html")

    page.route("**/front.html", answer)
    refresh(page)
    expect(card(page, "btc_price").locator(".value")).to_have_text("$1,234.50")
    expect(card(page, "btc_price").locator(".note")).to_have_text("<b>bold</b>")
    assert page.locator("#cards b").count() == 0


def test_a_service_that_is_away_is_told_and_the_values_stay(browser: Browser, filled: Program) -> None:
    with visiting(browser, filled.url) as window:
        see_a_failure_and_its_end(window.open("/", settled=False))


def see_a_failure_and_its_end(page: Page) -> None:
    page.route("**/front.html", lambda route: route.abort())
    refresh(page)
    expect(page.locator("#trouble")).to_contain_text("cannot be reached")
    expect(card(page, "btc_price").locator(".value")).to_have_text(re.compile(r"\d"))
    page.unroute("**/front.html")
    refresh(page)
    expect(page.locator("#trouble")).to_be_empty()


def test_a_page_asks_again_while_it_is_visible_and_never_while_it_is_hidden(page: Page) -> None:
    page.clock.install()
    page.reload()
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url) if "front.html" in request.url else None)
    page.evaluate("Object.defineProperty(document, 'visibilityState', {get: () => window.seen, configurable: true})")
    page.clock.run_for(60_000)
    assert requested == []
    page.evaluate("window.seen = 'visible'")
    with page.expect_response("**/front.html"):
        page.clock.run_for(11_000)


def test_a_visitor_hides_and_moves_tiles_by_keyboard_and_the_browser_remembers(page: Page) -> None:
    page.locator("#chooser summary").focus()
    page.keyboard.press("Enter")
    page.locator("#show-forex").focus()
    page.keyboard.press("Space")
    expect(card(page, "forex")).to_be_hidden()
    page.get_by_role("button", name="Later: Bitcoin price").focus()
    page.keyboard.press("Enter")
    ids = "[...document.querySelectorAll('#cards > .card')].map((one) => one.id)"
    assert page.evaluate(ids)[:2] == ["card-earthquakes", "card-btc_price"]
    expect(page.get_by_role("button", name="Later: Bitcoin price")).to_be_focused()
    page.reload()
    expect(card(page, "forex")).to_be_hidden()
    assert page.evaluate(ids)[:2] == ["card-earthquakes", "card-btc_price"]
    assert page.context.cookies() == []
    assert json.loads(page.evaluate("localStorage.home"))["hidden"] == ["forex"]
    page.locator("#chooser summary").click()
    page.locator("#reset").click()
    expect(card(page, "forex")).to_be_visible()


def test_a_visitor_chooses_a_place_and_units(page: Page) -> None:
    page.locator("#chooser summary").click()
    page.get_by_label("Temperature").select_option("C")
    expect(card(page, "weather").locator(".unit")).to_have_text("°C")
    page.get_by_label("Place for weather and air").select_option(label="Lisbon")
    expect(card(page, "weather").locator(".note")).to_contain_text("Lisbon")
    expect(card(page, "air_quality").locator(".note")).to_contain_text("Lisbon")
    expect(card(page, "weather").locator(".unit")).to_have_text("°C")


def test_a_kind_on_the_map_can_be_hidden(page: Page) -> None:
    button = page.locator("button.kind", has_text="Earthquakes")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "false")
    expect(page.locator(".world .circle").first).to_be_hidden()
    button.click()
    expect(page.locator(".world .circle").first).to_be_visible()


def test_the_first_screen_of_a_laptop_has_a_text_to_paste_for_each_of_some_programs(
    page: Page, filled: Program
) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    cursor = page.get_by_text("Cursor", exact=True).first
    cursor.click()
    shown = page.locator(".pick-panel:visible")
    expect(shown).to_have_count(1)
    expect(shown.locator("pre")).to_contain_text(f"{filled.url}/api/mcp")
    expect(shown.get_by_role("link", name="install with one click")).to_have_attribute("href", re.compile("^cursor:"))
    for part in (".quick", ".ticker", ".world"):
        box = page.locator(part).bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 900, part


@pytest.mark.parametrize("width", [PHONE, 1440])
def test_nothing_moves_while_the_page_opens_and_it_is_light(browser: Browser, filled: Program, width: int) -> None:
    with visiting(browser, filled.url, width=width) as window:
        page = window.open("/")
        shift = page.evaluate(
            "new Promise((resolve) => new PerformanceObserver((list) => resolve(list.getEntries()"
            ".filter((one) => !one.hadRecentInput).reduce((sum, one) => sum + one.value, 0)))"
            ".observe({type: 'layout-shift', buffered: true}) || setTimeout(() => resolve(0), 500))"
        )
        assert shift < 0.05
        assert window.weight < 120_000, window.sizes


def test_claims_lead_to_their_proof(page: Page, filled: Program) -> None:
    links = [str(link.get_attribute("href")) for link in page.locator(".claims a").all()]
    assert len(links) == 5
    assert {link: httpx.get(filled.url + link, timeout=60).status_code for link in links} == dict.fromkeys(links, 200)
