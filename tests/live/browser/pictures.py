"""`python -m tests.live.browser.pictures`: the pictures of pages in docs/pictures, of a demo that has just begun, and
the picture that previews of links to the site show, `static/card.png`.

Each is a PNG of fewer than 300 KB, and one is a moving SVG: a session in a terminal. They are made anew by hand when
pages change: no test compares those of pages.
"""

import sys
import tempfile
from pathlib import Path

from rest_bridge.pages.social_card import SITE, draw_card
from tests.live.browser.session_picture import draw_session, record_session
from tests.live.browser.visitor import DESK, PHONE, Theme, chromium, visiting
from tests.live.processes import ROOT, UNLIMITED, started

CARD_FILE = ROOT / "rest_bridge" / "pages" / "static" / "card.png"
FOLDER = ROOT / "docs" / "pictures"
MOST_BYTES = 300_000
OPERATORS = "operators"  # the page beside the metrics
SHOTS: tuple[tuple[str, str, int, Theme], ...] = (
    ("home", "/", DESK, "light"),
    ("home-dark-phone", "/", PHONE, "dark"),
    ("earthquakes", "/t/earthquakes", DESK, "light"),
    ("bitcoin-phone", "/t/btc_price", PHONE, "light"),
    ("macro-dark", "/t/premium_macro", DESK, "dark"),
    ("launches-dark", "/t/launches", DESK, "dark"),
    ("status", "/status", DESK, "light"),
    ("sources", "/sources#USGS.earthquakes_feed", DESK, "light"),
    ("operators-dark", OPERATORS, DESK, "dark"),
)


def take_pictures(folder: Path) -> list[Path]:
    """Write every picture, and return where they are. Raises ValueError for one that is too large."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with (
        tempfile.TemporaryDirectory() as data,
        started("demo", folder=Path(data), fills=True, **UNLIMITED) as demo,
        chromium() as shown,
    ):
        for name, path, width, theme in SHOTS:
            site, path = (
                (demo.ready["metrics_url"].removesuffix("metrics"), "") if path == OPERATORS else (demo.url, path)
            )
            with visiting(shown, site, width=width, theme=theme) as window:
                page = window.open(path, settled=False)
                if path.startswith("/t/"):
                    page.wait_for_selector("#answer[data-filled]", timeout=60_000)
                    page.locator("#answer").scroll_into_view_if_needed()
                elif name.startswith(OPERATORS):
                    page.evaluate("window.scrollTo(0, document.querySelector('#money').offsetTop - 24)")
                page.wait_for_timeout(1_500)
                target = folder / f"{name}.png"
                page.screenshot(path=target, animations="disabled")
            if target.stat().st_size >= MOST_BYTES:
                raise ValueError(f"{target} has {target.stat().st_size} bytes")
            written.append(target)
        CARD_FILE.write_bytes(draw_card(SITE))
        moving = folder / "session.svg"
        moving.write_text(draw_session(record_session(demo.url, demo.ready["token"])), encoding="utf-8")
    return [*written, CARD_FILE, moving]


if __name__ == "__main__":
    for picture in take_pictures(FOLDER):
        sys.stdout.write(f"{picture.relative_to(ROOT)} {picture.stat().st_size} bytes\n")
