"""Signing in as hosts do it: the OAuth code of the official clients, and a person in a real browser on the page."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import Queue
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.live.browser.visitor import DESK, PHONE, Theme, Visitor, visiting
from tests.live.buying import bought
from tests.live.processes import Program, control
from tests.live.programs import CLIENTS, NODE, installed

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

PROTECTED = "/api/mcp/auth"
PYTHON = [sys.executable, str(CLIENTS / "oauth.py")]
TYPESCRIPT = [str(NODE), str(CLIENTS / "oauth.mjs")]


@contextmanager
def listening() -> Iterator[tuple[str, "Queue[str]"]]:
    """The page of a host's program to which the browser is sent back: its address, and the addresses that came."""
    came: Queue[str] = Queue()

    class Callback(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            came.put(f"http://{self.headers['host']}{self.path}")
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>Back</title><p>You can close this window.</p>")

        def log_message(self, *args: Any) -> None:
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Callback)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/callback", came
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def hosted(program: list[str], demo: Program, callback: str) -> Iterator["subprocess.Popen[str]"]:
    """A host's program, with nothing in its environment."""
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    words = [*program, demo.url + PROTECTED, callback]
    with subprocess.Popen(words, text=True, env={"PATH": "/usr/bin"}, cwd=CLIENTS, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def heard(process: "subprocess.Popen[str]") -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert process.stderr is not None
    assert line, process.stderr.read()
    found: dict[str, Any] = json.loads(line)
    return found


def sent_back(window: Visitor, came: "Queue[str]") -> str:
    """Where the browser was sent: to the host's program, and nowhere else."""
    address = came.get(timeout=30)
    others = [fault for fault in window.faults if address not in fault and "favicon" not in fault]
    assert others == []
    return address


def paste(page: Page, demo: Program) -> None:
    """What a person does who has a token."""
    page.get_by_label("Your token").fill(bought(demo, demo.ready["world_url"], 10))
    page.get_by_label("Maximum credits").fill("20")
    page.get_by_role("button", name="Allow").click()


def buy(page: Page, demo: Program) -> None:
    """What a person does who has none: buys 100 credits on the simulated chain, and lets 20 of them be spent."""
    page.get_by_label("US dollars to spend").fill("2")
    page.get_by_role("button", name="Buy credits").click()
    expect(page.locator(".qr svg")).to_be_visible()
    wallet = page.locator("code.pick").inner_text()
    with control(demo.ready["world_url"]) as world:
        expect(page.get_by_role("status")).to_contain_text("detects it automatically")
        world.paid(wallet, 2)
    expect(page.get_by_role("heading", name="1. Keep your token")).to_be_visible(timeout=90_000)
    assert page.locator("code.token").inner_text().startswith("svc_live_")
    page.get_by_label("Maximum credits").fill("20")
    page.get_by_role("button", name="I have saved the token. Allow").click()


@pytest.mark.parametrize(
    ("program", "name", "act", "scripts"),
    [(PYTHON, "Python SDK", paste, False), (TYPESCRIPT, "TypeScript SDK", buy, True)],
    ids=["python-paste", "typescript-buy"],
)
def test_a_host_signs_in_and_pays(
    browser: Browser, demo: Program, program: list[str], name: str, act: Any, scripts: bool
) -> None:
    installed(NODE)
    with listening() as (callback, came), hosted(program, demo, callback) as process:
        with visiting(browser, demo.url, scripts=scripts) as window:
            window.page.goto(heard(process)["open"])
            expect(window.page.get_by_role("heading", level=1)).to_have_text(f"Connect {name}")
            expect(window.page.locator("main")).to_contain_text("a program on this device (127.0.0.1")
            act(window.page, demo)
            address = sent_back(window, came)
        assert "svc_live_" not in address
        assert process.stdin is not None
        process.stdin.write(address + "\n")
        process.stdin.flush()
        found = heard(process)
        assert found["premium"]["sections"]
        assert found["balance"]["credits"] == 19
        assert (found["iss"], found["expires_in"]) == (demo.url + PROTECTED, 3600)
        assert found["client"]["client_name"] == name
        assert heard(process) == {"refreshed": True, "tools": 21}


def asked(demo: Program, callback: str) -> str:
    """The address of a page that waits for a person, as a host opens it."""
    body = {"client_name": "A host", "redirect_uris": [callback], "token_endpoint_auth_method": "none"}
    client = httpx.post(f"{demo.url}{PROTECTED}/register", json=body, trust_env=False).json()["client_id"]
    given = {"response_type": "code", "client_id": client, "redirect_uri": callback, "code_challenge_method": "S256"}
    return f"{demo.url}{PROTECTED}/authorize?{httpx.QueryParams(given | {'code_challenge': 'x' * 43, 'state': 's'})}"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESK])
def test_the_page_fits_is_quiet_and_bars_nobody(browser: Browser, demo: Program, width: int, theme: Theme) -> None:
    with visiting(browser, demo.url, width=width, theme=theme) as window:
        page = window.page
        page.goto(asked(demo, "https://host.example/back"))
        window.check()
        window.check_accessibility()
        page.get_by_role("button", name="Buy credits").click()
        expect(page.locator(".qr svg")).to_be_visible()
        window.check()
        window.check_accessibility()


@pytest.mark.parametrize("scripts", [True, False])
def test_a_payment_is_seen_by_itself_and_no_step_bars_anybody(browser: Browser, demo: Program, scripts: bool) -> None:
    with visiting(browser, demo.url, width=PHONE, scripts=scripts) as window:
        page = window.page
        page.goto(asked(demo, "https://host.example/back"))
        page.get_by_label("US dollars to spend").fill("2")
        page.get_by_role("button", name="Buy credits").click()
        page.get_by_role("link", name="Enter the transaction hash").click()
        page.get_by_label("Transaction hash").fill("0x" + "12" * 32)
        if scripts:
            window.check_accessibility()
        page.get_by_role("button", name="I have paid").click()
        expect(page.get_by_role("progressbar")).to_be_visible()
        if scripts:
            window.check_accessibility()
        page.get_by_role("button", name="The hash is wrong").click()
        with control(demo.ready["world_url"]) as world:
            world.paid(page.locator("code.pick").inner_text(), 2)
        expect(page.get_by_role("heading", name="1. Keep your token")).to_be_visible(timeout=90_000)
        if scripts:
            window.check()
            window.check_accessibility()


def test_no_page_can_frame_it(browser: Browser, demo: Program, tmp_path: Path) -> None:
    with visiting(browser, demo.url) as window:
        address = asked(demo, "https://host.example/back")
        (tmp_path / "frame.html").write_text(f"<iframe src='{address}'></iframe>")
        window.page.goto(f"file://{tmp_path}/frame.html")
        window.page.wait_for_timeout(500)
        assert all("Connect A host" not in frame.content() for frame in window.page.frames[1:])


def test_saying_no_brings_the_person_back(browser: Browser, demo: Program) -> None:
    with listening() as (callback, came), visiting(browser, demo.url) as window:
        window.page.goto(asked(demo, callback))
        window.page.get_by_role("button", name="Cancel").click()
        assert "error=access_denied" in sent_back(window, came)
        expect(window.page).to_have_title("Back")  # until then the browser is between two pages and cannot go back
        window.page.go_back()
        expect(window.page.locator("main")).to_contain_text("already been answered")
