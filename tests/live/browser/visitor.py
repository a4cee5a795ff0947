"""A reader's browser: real Chromium, one window, and everything noted that must not happen on a page."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response, ViewportSize, sync_playwright

from rest_bridge.static_files import static_path
from tests.live.programs import CLIENTS, installed, missing

Theme = Literal["light", "dark"]
SMALL, PHONE, DESK = 320, 390, 1440
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
SHELL = "chromium-headless-shell"
_AXE = CLIENTS / "node_modules" / "axe-core" / "axe.min.js"
_JUDGE = """
async () => (await axe.run(document, {resultTypes: ["violations"]})).violations
  .map((one) => `${one.id} (${one.impact}): ${one.nodes.slice(0, 3).map((x) => x.html.slice(0, 160)).join(" | ")}`)
"""
_REPORT_POLICY = """
addEventListener("securitypolicyviolation", (event) => {
  (window.__violations ??= []).push(`${event.effectiveDirective}: ${event.blockedURI} ${event.sample}`);
});
"""
_WIDER = """
() => [...document.querySelectorAll("body *")]
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
  .map((one) => `${one.tagName}.${one.className.baseVal ?? one.className}: ${one.textContent.slice(0, 60)}`)
  .slice(0, 5)
"""

_UNSTYLED = """
async (address) => {
  if (!document.querySelector("head style")) return [];
  const whole = new CSSStyleSheet();
  whole.replaceSync(await (await fetch(address)).text());
  const flat = (rules) => [...rules].flatMap((rule) => rule instanceof CSSMediaRule ? flat(rule.cssRules) : [rule]);
  const listed = (rules) => flat(rules).map((rule) => rule.selectorText).filter(Boolean);
  const carried = new Set(listed(document.styleSheets[0].cssRules));
  const matches = (selector) => document.querySelector(selector.replaceAll(/::?[a-z-]+(?![a-z(-])/g, "") || "*");
  return listed(whole.cssRules).filter((selector) => !carried.has(selector) && selector.split(", ").some(matches));
}
"""
_STARTED = """
async () => {
  while (document.querySelector("script[type=later]")) await new Promise((go) => setTimeout(go, 10));
  for (const script of document.querySelectorAll("script[type=module][src]")) await import(script.src);
}
"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, driven by Playwright's driver, which comes with its Python package.

    Its shell is the same engine without a browser's own windows: a page takes a third of the CPU time there.
    """
    program = next(filter(None, map(shutil.which, (SHELL, *PROGRAMS))), None)
    if program is None:
        missing("chromium")
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=flags)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Visitor:
    """One window of a site. `faults` are what no page may cause; `expected` are statuses that a test asks for."""

    page: Page
    site: str
    faults: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    expected: set[int] = field(default_factory=set)
    scripts: bool = True

    def __post_init__(self) -> None:
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.faults.append(f"error on the page: {error}"))
        self.page.on("request", self._see)
        self.page.on("response", self._weigh)
        self.page.add_init_script(_REPORT_POLICY)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type not in ("error", "warning"):
            return
        if any(f"status of {status}" in message.text for status in self.expected):
            return
        self.faults.append(f"console: {message.text} ({message.location.get('url', '')})")

    def _see(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.netloc != urlsplit(self.site).netloc:
            self.faults.append(f"asked {request.url}")

    def _weigh(self, response: Response) -> None:
        self.sizes[response.url] = int(response.headers.get("content-length", 0))

    def open(self, path: str, *, settled: bool = True) -> Page:
        """Go to a path and wait until its scripts have run; `settled`: and until nothing is loading."""
        self.sizes.clear()
        self.page.goto(self.site + path)
        if self.scripts:
            self.page.evaluate(_STARTED)
        if settled:
            self.page.wait_for_load_state("networkidle")
        return self.page

    def check(self) -> None:
        """The page fits its window, and nothing happened that must not."""
        violations = self.page.evaluate("() => window.__violations ?? []")
        assert self.faults + violations == [], "\n".join([self.page.url, *self.faults, *violations])
        wide, inner = self.page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
        assert wide <= inner, self.page.evaluate(_WIDER)

    def check_accessibility(self) -> None:
        """axe-core finds no violation of any level. The driver puts it into the page: the site knows nothing of it."""
        installed(_AXE)
        if not self.page.evaluate("() => typeof axe === 'object'"):
            self.page.evaluate(_AXE.read_text(encoding="utf-8"))
        violations = self.page.evaluate(_JUDGE)
        assert violations == [], "\n".join([self.page.url, *violations])

    def check_style(self) -> None:
        """A page that carries its style sheet has every rule of the whole one that applies to it."""
        missing = self.page.evaluate(_UNSTYLED, self.site + static_path("css/style.css"))
        assert missing == [], "\n".join([self.page.url, *missing])

    @property
    def weight(self) -> int:
        """The bytes that the page has loaded since it was opened, as they travelled."""
        return sum(self.sizes.values())


@contextmanager
def visiting(
    browser: Browser, site: str, *, width: int = DESK, theme: Theme = "light", scripts: bool = True
) -> Iterator[Visitor]:
    """A new window without any memory of earlier ones."""
    size: ViewportSize = {"width": width, "height": 900}
    context = browser.new_context(viewport=size, color_scheme=theme, java_script_enabled=scripts, locale="en-US")
    try:
        yield Visitor(context.new_page(), site, scripts=scripts)
    finally:
        context.close()
