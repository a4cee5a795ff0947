"""Every upstream writes hostile text into every field: pages show it as text, fit their window, and run none of it."""

from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser

from tests.live.browser.visitor import PHONE, Visitor, visiting
from tests.live.processes import UNLIMITED, Program, control, started
from toolserver.registry.registry import Registry, Tier

pytestmark = [pytest.mark.live, pytest.mark.slow("opens the page of each tool"), pytest.mark.timeout(600)]

KEPT = [o for o in Registry.load("tools") if o.tier is Tier.FREE and o.sources and not o.input_schema.get("required")]
LEAST = 10  # tools whose answers carry text of their sources, and whose sources still answer


@pytest.fixture(scope="module")
def spoiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A service on a world whose every text is hostile from the start."""
    folder = tmp_path_factory.mktemp("hostile")
    with started("world", folder=folder) as world, control(world.url) as sim:
        sim.fault("*", "hostile", links=True)
        with started("serve", folder=folder, TOOLSERVER_UPSTREAM__VIA=world.url, **UNLIMITED) as service:
            yield service


def show(window: Visitor, path: str) -> str:
    """Open a page, see that nothing of it ran or broke, and return its text."""
    page = window.open(path, settled=False)
    if page.locator('link[rel="alternate"][type="application/json"][href*="/t/"]').count():
        page.wait_for_selector("#answer[data-filled]", timeout=60_000)
        for tab in page.get_by_role("tab").all():
            if tab.is_visible():
                tab.click()
                window.check()
    window.check()
    assert page.title() != "broken"
    assert page.locator('main :is(img, a[href^="javascript" i]), main script:not([type])').count() == 0
    return page.locator("main").text_content() or ""


def test_hostile_words_of_every_source_stay_words_on_every_page(browser: Browser, spoiled: Program) -> None:
    with httpx.Client(base_url=spoiled.url, timeout=60) as client:
        answers = {operation.name: client.get(operation.path).text for operation in KEPT}
    hostile = [name for name, text in answers.items() if "<script>" in text]
    assert len(hostile) >= LEAST, hostile
    with visiting(browser, spoiled.url, width=PHONE) as window:
        window.page.on("dialog", lambda dialog: window.faults.append("a dialog was opened"))
        texts = {operation.name: show(window, f"/t/{operation.name}") for operation in KEPT}
        for path in ("/", "/status", "/sources", "/docs"):
            show(window, path)
    assert [name for name in hostile if "<script>" not in texts[name]] == []
