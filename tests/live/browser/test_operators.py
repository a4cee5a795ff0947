"""The operators' page beside the metrics: it shows money and what is pending, fits, bars nobody, needs no script."""

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.live.browser.visitor import DESK, PHONE, Theme, visiting
from tests.live.buying import bought
from tests.live.processes import Program

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def site(demo: Program) -> str:
    """Its address, after a purchase and an offer that nobody paid."""
    bought(demo, demo.ready["world_url"], 10)
    httpx.post(f"{demo.url}/api/payment/buy-credits", json={"amount_usd": 5}).raise_for_status()
    return str(demo.ready["metrics_url"]).removesuffix("/metrics")


@pytest.mark.parametrize("scripts", [True, False])
def test_a_purchase_and_an_open_offer_are_shown(browser: Browser, site: str, scripts: bool) -> None:
    with visiting(browser, site, scripts=scripts) as window:
        page = window.open("/")
        received = float(page.locator(".card", has_text="Received today").locator(".value").inner_text().lstrip("$"))
        assert received >= 10
        assert int(page.locator(".card", has_text="Offers not paid yet").locator(".value").inner_text()) >= 1
        expect(page.locator("#log + p")).to_contain_text("entries, signed")
        assert "svc_live_" not in page.content()
        assert window.faults == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESK])
def test_it_fits_is_quiet_and_bars_nobody(browser: Browser, site: str, width: int, theme: Theme) -> None:
    with visiting(browser, site, width=width, theme=theme) as window:
        expect(window.open("/").locator("h1")).to_have_count(1)
        window.check()
        window.check_accessibility()


def test_the_public_site_has_no_such_page(demo: Program) -> None:
    for path in ("/operators", "/operators.json", "/operator"):
        assert httpx.get(demo.url + path).status_code == 404
