"""One Chromium for the tests of a file, and a window for each."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.live.browser.visitor import Visitor, chromium, visiting
from tests.live.processes import Program


@pytest.fixture(scope="module")  # a driver that stays would leave its event loop running in a process of other tests
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def visitor(browser: Browser, demo: Program) -> Iterator[Visitor]:
    """A wide window of the demo."""
    with visiting(browser, demo.url) as window:
        yield window
