"""Every page of the sitemap, and those in no sitemap: each fits, is quiet, bars nobody, and reads without a script.

Pages of a kind (tools, documents, problems) are shared out among the looks. `KINDS` are seen in the first two, which
have both widths and both themes, and in both of the narrowest window.
"""

import re
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, Page, Route, expect

from rest_bridge.pages.failure import failure_page
from rest_bridge.serving import page_policy
from tests.live.browser.visitor import DESK, PHONE, SMALL, Theme, Visitor, visiting
from tests.live.processes import Program
from tests.size import sized
from toolserver.errors import InternalError
from toolserver.registry import error_codes
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import SiteFacts

pytestmark = [pytest.mark.live, pytest.mark.timeout(400)]

LOOKS: list[tuple[int, Theme]] = [(PHONE, "light"), (DESK, "dark"), (PHONE, "dark"), (DESK, "light")]
LOOKS += [(SMALL, "light"), (SMALL, "dark")]
SHARE = sized(5, fast=5, long=1)  # of the pages of a kind every fifth is read without a script
SHOWN = {0, 1, 4, 5}  # the looks in which every kind of page is seen
KINDS = (
    *(
        "/",
        "/docs",
        "/docs/webhooks",
        "/docs/payments",
        "/docs/settings",
        "/changelog",
        "/buy",
        "/account",
        "/receipts",
        "/no-charge",
    ),
    *("/problems", "/problems/not_found", "/status", "/sources", "/design"),
    *("/t/earthquakes", "/t/premium_correlation_matrix", "/t/webhook_subscribe"),
)
MISSING, FAILED = "/no-such-page", "/failed"


@pytest.fixture(scope="module")
def paths(demo: Program) -> list[str]:
    """Every page that the sitemap names."""
    text = httpx.get(f"{demo.url}/sitemap.xml", timeout=60).raise_for_status().text
    found = [place.removeprefix(demo.url) or "/" for place in re.findall(r"<loc>([^<]*)</loc>", text)]
    assert set(found) >= set(KINDS)
    assert {f"/t/{operation.name}" for operation in Registry.load("tools")} <= set(found)
    return found


def failed(demo: Program) -> bytes:
    """The page that a browser gets when the service has a fault of its own, as the face writes it."""
    facts = SiteFacts(base_url=demo.url, source="127.0.0.1", simulated=True)
    problem = error_codes.body(InternalError.code, "Something went wrong here.", facts=facts, request_id="req_1")
    return failure_page(Registry([]), facts, problem).body


def beyond(window: Visitor, demo: Program) -> Iterator[str]:
    """The pages of a missing address and of a fault, which no sitemap names."""
    page = failed(demo)
    name, policy = (part.decode() for part in page_policy(page))

    def answer(route: Route) -> None:
        route.fulfill(status=500, headers={name: policy, "content-type": "text/html; charset=utf-8"}, body=page)

    window.page.route(demo.url + FAILED, answer)
    window.expected = {404, 500}
    yield from (MISSING, FAILED)


def is_whole(page: Page) -> None:
    """It has its heading, and where it is the page of a tool, what its script writes."""
    expect(page.locator("h1")).to_have_count(1)
    if "/t/" in page.url:
        expect(page.locator("#code code").first).to_contain_text("curl")


@pytest.mark.slow("opens every page")
@pytest.mark.parametrize("look", range(len(LOOKS)), ids=[f"{width}-{theme}" for width, theme in LOOKS])
def test_every_page_fits_is_quiet_and_bars_nobody(browser: Browser, demo: Program, paths: list[str], look: int) -> None:
    width, theme = LOOKS[look]
    others = [path for path in paths if path not in KINDS]
    with visiting(browser, demo.url, width=width, theme=theme) as window:
        for path in (*(KINDS if look in SHOWN else ()), *others[look :: len(LOOKS)], *beyond(window, demo)):
            is_whole(window.open(path, settled=False))
            window.check()
            window.check_accessibility()
            window.check_style()


@pytest.mark.slow("opens every page")
def test_pages_of_each_kind_can_be_read_without_javascript(browser: Browser, demo: Program, paths: list[str]) -> None:
    with visiting(browser, demo.url, width=PHONE, scripts=False) as window:
        others = [path for path in paths if path not in KINDS]
        for path in (*KINDS, *others[::SHARE], *beyond(window, demo)):
            page = window.open(path, settled=False)
            assert len(page.locator("main").inner_text()) > 100, path
            assert not page.locator("#theme").is_visible()
            for form in page.locator("main form:visible").all():
                assert form.get_attribute("action"), f"{path} shows a form that does nothing"
        assert window.faults == []
