"""The page that verifies receipts: a true one verifies in the browser with nothing sent, and no tampered one does."""

import base64
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import anyio.from_thread
import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.calls.parts import RICH, START
from tests.live.browser.visitor import DESK, PHONE, Theme, Visitor, visiting
from tests.live.processes import Program
from toolserver.clock import ManualClock
from toolserver.core.caller import token_hash
from toolserver.money.receipts.service import Issuer, ReceiptService
from toolserver.money.receipts.sign import Sale
from toolserver.money.receipts.sql_store import SqlReceiptStore
from toolserver.sql.sqlite import in_memory

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]


class Bought(NamedTuple):
    """A paid answer as it arrived: its headers as text, its receipt, its bytes."""

    headers: str
    jws: str
    body: bytes


@pytest.fixture(scope="module")
def call(demo: Program) -> Bought:
    answer = ask(demo, "/api/pro/macro")
    headers = "\r\n".join(f"{name}: {value}" for name, value in answer.headers.items())
    return Bought(headers, answer.headers["x-service-receipt"], answer.content)


def ask(demo: Program, path: str) -> httpx.Response:
    token = {"authorization": f"Bearer {demo.ready['token']}"}
    return httpx.get(demo.url + path, headers=token, timeout=30, trust_env=False).raise_for_status()


def verify(page: Page, receipt: str, answer: str = "") -> None:
    page.get_by_label("Receipt").fill(receipt)
    page.get_by_label("Answer").fill(answer)
    page.get_by_role("button", name="Verify").click()
    expect(page.locator("[data-verdict]")).to_be_visible()


def test_the_fields_are_of_one_size_and_the_button_is_in_the_first_window(visitor: Visitor) -> None:
    page = visitor.open("/receipts")
    heights = {(page.get_by_label(name).bounding_box() or {})["height"] for name in ("Receipt", "Answer")}
    assert len(heights) == 1
    expect(page.get_by_role("button", name="Verify")).to_be_in_viewport()
    visitor.check()


def states(page: Page) -> dict[str, str]:
    rows = page.locator("[data-check]").all()
    return {row.get_attribute("data-check") or "": row.get_attribute("data-state") or "" for row in rows}


def unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def b64(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def changed(jws: str, part: int, **members: Any) -> str:
    """The receipt with other members in its header (0) or payload (1), and everything else as it was."""
    parts = jws.split(".")
    told = json.loads(unb64(parts[part])) | members
    parts[part] = b64(json.dumps(told, sort_keys=True, separators=(",", ":")).encode())
    return ".".join(parts)


def flipped(jws: str) -> str:
    head, payload, signature = jws.split(".")
    bits = bytearray(unb64(signature))
    bits[7] ^= 1
    return f"{head}.{payload}.{b64(bytes(bits))}"


GOOD = {"format": "good", "key": "good", "signature": "good", "time": "good", "answer": "good", "log": "unknown"}
TAMPERED: dict[str, tuple[Callable[[Bought], tuple[str, bytes]], str]] = {
    "the price": (lambda call: (changed(call.jws, 1, credits_charged=1), call.body), "signature"),
    "a bit of the signature": (lambda call: (flipped(call.jws), call.body), "signature"),
    "the answer": (lambda call: (call.jws, call.body.replace(b'"stale":false', b'"stale":true ')), "answer"),
    "the key": (lambda call: (changed(call.jws, 0, kid="A" * 43), call.body), "key"),
    "the algorithm": (lambda call: (changed(call.jws, 0, alg="none"), call.body), "format"),
    "its spelling": (lambda call: (changed(call.jws, 1, v=1.0), call.body), "format"),
}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, DESK])
def test_a_receipt_of_a_paid_call_verifies_in_the_browser(
    browser: Browser, demo: Program, call: Bought, width: int, theme: Theme
) -> None:
    with visiting(browser, demo.url, width=width, theme=theme) as window:
        page = window.open("/receipts")
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        verify(page, call.headers, call.body.decode())
        expect(page.locator("[data-verdict]")).to_have_text("Valid")
        assert states(page) == GOOD
        expect(page.locator("#verdict")).to_contain_text("2 credits charged")
        assert asked == [f"{demo.url}/.well-known/service-receipt-keys.json"]
        page.get_by_text("Everything in this receipt").click()
        window.check()
        window.check_accessibility()


@pytest.mark.parametrize("what", TAMPERED)
def test_a_tampered_receipt_does_not_verify(visitor: Visitor, call: Bought, what: str) -> None:
    tamper, failing = TAMPERED[what]
    receipt, answer = tamper(call)
    assert (receipt, answer) != (call.jws, call.body)
    page = visitor.open("/receipts")
    verify(page, receipt, answer.decode())
    expect(page.locator("[data-verdict]")).to_contain_text("Not valid")
    assert [name for name, state in states(page).items() if state == "bad"] == [failing]
    visitor.check()


def test_files_are_told_apart_and_an_object_verifies_as_well(visitor: Visitor, demo: Program, call: Bought) -> None:
    page = visitor.open("/receipts")
    files = [("answer.json", call.body), ("headers.txt", call.headers.encode())]
    page.locator("#files").set_input_files(
        [{"name": name, "mimeType": "text/plain", "buffer": content} for name, content in files]
    )
    expect(page.locator("[data-verdict]")).to_have_text("Valid")
    assert states(page) == GOOD
    id = json.loads(unb64(call.jws.split(".")[1]))["id"]
    stored = ask(demo, f"/api/receipt/{id}").json()
    verify(page, json.dumps(stored["receipt"], indent=2))
    expect(page.locator("[data-verdict]")).to_have_text("Valid")
    verify(page, json.dumps(stored["receipt"] | {"balance_after": 10**6}))
    expect(page.locator("[data-verdict]")).to_have_text("Not valid: signature")
    visitor.check()


def test_a_browser_without_ed25519_says_so_and_asks_the_service(visitor: Visitor, call: Bought) -> None:
    visitor.page.add_init_script("crypto.subtle.importKey = () => Promise.reject(new Error('no such algorithm'))")
    page = visitor.open("/receipts")
    verify(page, call.jws)
    expect(page.locator("[data-verdict]")).to_have_text("Not decided")
    expect(page.locator("[data-check=signature]")).to_contain_text("cannot check Ed25519")
    page.get_by_role("button", name="Ask the service").click()
    expect(page.locator("#verdict")).to_contain_text("on record, and it is valid")
    visitor.check()


UNCHARGED = Sale("call_" + "1" * 32, token_hash(RICH).hex(), "/api/pro/x", "GET /api/pro/x", 2, 0, 98, reason="5xx")


class Published(NamedTuple):
    """What a service answers about a call that was not charged, before and after its hour is over, and its keys."""

    early: dict[str, Any]
    late: dict[str, Any]
    keys: dict[str, Any]


@pytest.fixture(scope="module")
def uncharged(tmp_path_factory: pytest.TempPathFactory) -> Published:
    clock, issuer = ManualClock(START), Issuer("https://data.example", "data.example")
    folder = tmp_path_factory.mktemp("keys")

    async def publish() -> Published:
        async with in_memory() as rows:
            return await record(ReceiptService(SqlReceiptStore(rows), folder, clock=clock, issuer=issuer))

    async def record(service: ReceiptService) -> Published:
        for number in range(1, 6):
            await service.sign(UNCHARGED._replace(call_id=f"call_{number:032x}"))
            await service.sign(UNCHARGED._replace(call_id=f"call_{number + 9:032x}", endpoint=f"/api/pro/{number}"))
        early = await service.receipt("rcpt_" + f"{3:032x}", RICH)
        clock.advance(3660)
        await service.log.close_hours()
        late = await service.receipt("rcpt_" + f"{3:032x}", RICH)
        assert early is not None
        assert late is not None
        return Published(early, late, service.key_set())

    with anyio.from_thread.start_blocking_portal() as portal:
        return portal.call(publish)


def look_at_log(visitor: Visitor, answer: dict[str, Any], keys: dict[str, Any]) -> tuple[str, str]:
    """The state and the words of the check of the log, by those keys."""
    visitor.page.route("**/service-receipt-keys.json", lambda route: route.fulfill(json=keys))
    page = visitor.open("/receipts")
    verify(page, json.dumps(answer))
    row = page.locator("[data-check=log]")
    return row.get_attribute("data-state") or "", row.inner_text()


def test_the_proof_that_the_log_has_a_call_is_checked_in_the_browser(visitor: Visitor, uncharged: Published) -> None:
    state, words = look_at_log(visitor, uncharged.late, uncharged.keys)
    assert (state, "It is one of 5 receipts of entry" in words) == ("good", True)


def test_a_call_of_an_open_hour_waits_for_its_proof(visitor: Visitor, uncharged: Published) -> None:
    state, words = look_at_log(visitor, uncharged.early, uncharged.keys)
    assert (state, "when that hour has ended" in words) == ("unknown", True)


def step_changed(path: list[str]) -> list[str]:
    return ["0" * 64, *path[1:]]


FORGED: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "the leaf": lambda proof: proof | {"leaf": proof["leaf"] | {"calls": 6}},
    "its key": lambda proof: proof | {"leaf": proof["leaf"] | {"key": "0" * 64}},
    "the path": lambda proof: proof | {"path": step_changed(proof["path"])},
    "the receipt's path": lambda proof: (
        proof | {"receipt": proof["receipt"] | {"path": step_changed(proof["receipt"]["path"])}}
    ),
    "the receipt's place": lambda proof: (
        proof | {"receipt": proof["receipt"] | {"index": proof["receipt"]["index"] ^ 1}}
    ),
    "no receipt": lambda proof: {name: value for name, value in proof.items() if name != "receipt"},
    "the checkpoint": lambda proof: proof | {"checkpoint": proof["checkpoint"].replace("\n6\n", "\n7\n")},
}


@pytest.mark.parametrize("what", FORGED)
def test_no_forged_proof_passes(visitor: Visitor, uncharged: Published, what: str) -> None:
    forged = FORGED[what](uncharged.late["log_proof"])
    assert forged != uncharged.late["log_proof"]
    assert look_at_log(visitor, uncharged.late | {"log_proof": forged}, uncharged.keys)[0] == "bad"
