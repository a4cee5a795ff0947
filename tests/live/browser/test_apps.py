"""Views of MCP Apps in Chromium, in a host that ext-apps' own bridge makes: drawn, valid, small, silent."""

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from jsonschema import Draft202012Validator as Validator
from playwright.sync_api import Browser, Frame, Page, Route

from tests.live.browser.visitor import Visitor, visiting
from tests.live.processes import Program
from tests.live.programs import CLIENTS, installed
from tests.requirements import proves
from tests.size import a_share

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]

HOST = "https://host.example"
MODULES = CLIENTS / "node_modules"
EXT_APPS = MODULES / "@modelcontextprotocol" / "ext-apps"
TYPES = {".js": "text/javascript", ".mjs": "text/javascript"}
VIEWED = {
    "weather": {},
    "btc_price": {},
    "earthquakes": {},
    "stocks": {"symbols": "AAPL,NVDA,TSLA"},
    "forex": {},
    "premium_correlation_matrix": {},
    "premium_whales": {},
    "premium_world_deltas": {},
    "service_status": {},
    "briefing": {},
    "premium_briefing": {"history": "24h"},
}
HOSTILE = '<script>document.title="broken"</script><img src=x onerror=alert(1)>\u202egnp.exe ' + "w" * 3_000


class Call(NamedTuple):
    """A call of a tool, its result, and the view that the host reads for it."""

    tool: str
    arguments: dict[str, Any]
    result: dict[str, Any]
    html: str


def ask(demo: Program, method: str, **params: Any) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"authorization": f"Bearer {demo.ready['token']}"}
    answer = httpx.post(demo.ready["mcp_url"] + "?toolset=all&views=on", json=message, headers=headers, timeout=60)
    result: dict[str, Any] = answer.json()["result"]
    return result


@pytest.fixture(scope="module")
def calls(demo: Program) -> dict[str, Call]:
    """A call of each tool, with its view as a host finds it: by `_meta` of the tool, then resources/read."""
    told = {entry["name"]: entry.get("_meta", {}) for entry in ask(demo, "tools/list")["tools"]}
    made = {}
    for name, arguments in VIEWED.items():
        (read,) = ask(demo, "resources/read", uri=told[name]["ui"]["resourceUri"])["contents"]
        made[name] = Call(name, arguments, ask(demo, "tools/call", name=name, arguments=arguments), read["text"])
    return made


@pytest.fixture(scope="module")
def forms() -> dict[str, Validator]:
    """What validates a message, by its method, as the protocol's schema defines them.

    The schema has references to nowhere where no message gets to, so the validator must be one that follows them late.
    """
    installed(EXT_APPS / "package.json")
    schema = json.loads((EXT_APPS / "dist/src/generated/schema.json").read_text())
    return {
        form["properties"]["method"]["const"]: Validator({**schema, "$ref": f"#/$defs/{name}"})
        for name, form in schema["$defs"].items()
        if "const" in form.get("properties", {}).get("method", {})
    }


def serve(route: Route) -> None:
    """Serve the host's page and the bridge's modules; whatever else is requested fails."""
    path = route.request.url.removeprefix(HOST)
    file = Path(__file__).with_name("app_host.html") if path == "/" else MODULES / path.lstrip("/")
    kind = TYPES.get(file.suffix, "text/html")
    if route.request.url.startswith(HOST) and file.is_file():
        route.fulfill(body=file.read_bytes(), content_type=f"{kind}; charset=utf-8")
    else:
        route.abort()


@contextmanager
def hosting(browser: Browser, width: int) -> Iterator[Visitor]:
    """A window with a host. Requests outside it are faults, and so are messages on the console."""
    installed(EXT_APPS / "package.json")
    with visiting(browser, HOST, width=width) as window:
        window.page.route("**/*", serve)
        window.open("/")
        window.page.wait_for_function("() => window.ready")
        yield window


def show(page: Page, call: Call, *, theme: str = "light", result: Any = None) -> Frame:
    """Show a call in a new view, and return its frame when it is drawn."""
    asked_for = {"html": call.html, "theme": theme, "input": call.arguments, "again": call.result}
    page.evaluate("(what) => window.show(what)", asked_for | {"result": result or call.result})
    frame = page.frames[-1]
    frame.wait_for_selector("#shown > :is(footer, .problem)")
    return frame


def check_messages(page: Page, forms: Mapping[str, Validator]) -> list[str]:
    """Each message of a view has the form that the protocol's schema defines. Returns their methods."""
    said = page.evaluate("() => window.seen.said.splice(0)")
    for message in said:
        assert message["jsonrpc"] == "2.0"
        method = message.get("method")
        if method in forms:
            forms[method].validate({key: value for key, value in message.items() if key not in ("jsonrpc", "id")})
        else:
            assert method in (None, "tools/call"), method
    return [message["method"] for message in said if "method" in message]


CASES = a_share([*itertools.product(VIEWED, ("light", "dark"), (320, 800))], 8)


@proves("apps.drawn")
@pytest.mark.parametrize(("tool", "theme", "width"), CASES)
def test_a_view_is_drawn_fits_and_speaks_by_the_schema(
    browser: Browser, calls: dict[str, Call], forms: dict[str, Validator], tool: str, theme: str, width: int
) -> None:
    with hosting(browser, width) as window:
        page = window.page
        frame = show(page, calls[tool], theme=theme)
        if tool != "btc_price":
            assert int(frame.locator("[data-points]").first.get_attribute("data-points") or 0) > 0
        page.wait_for_function("() => window.seen.sizes.length")
        methods = check_messages(page, forms)
        assert methods[:2] == ["ui/initialize", "ui/notifications/initialized"]
        wide, inner = frame.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
        assert wide <= inner == width
        paid = tool.startswith("premium_")
        words = frame.locator("footer").inner_text()
        assert ("Charged" in words and "Receipt rcpt_" in words) == paid
        assert re.search(r"\d credits left", words)
        assert ("Free" in words) == (frame.get_by_role("button", name="Ask again").count() == 1) == (not paid)
        window.check()


@pytest.mark.parametrize("tool", ["weather", "earthquakes", "premium_whales"])
def test_a_view_bars_nobody(browser: Browser, calls: dict[str, Call], tool: str) -> None:
    with hosting(browser, 800) as window:
        frame = show(window.page, calls[tool], theme="dark")
        frame.evaluate((CLIENTS / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8"))
        found = frame.evaluate("async () => (await axe.run(document)).violations.map((one) => one.id)")
        assert found == []


@proves("apps.hostile")
def test_hostile_words_stay_words_and_links_only_ask_the_host(
    browser: Browser, calls: dict[str, Call], forms: dict[str, Validator]
) -> None:
    stories = [
        {"title": HOSTILE, "score": 1, "url": "https://elsewhere.example/a"},
        {"title": "b", "score": 2, "url": "javascript:alert(1)"},
    ]
    sections = {"predictions": [{"question": HOSTILE, "yes_percent": 50}], "news": stories, "services": None}
    answer = {"summary": HOSTILE, "sections": sections, "stale": True, "_meta": {"attribution": [HOSTILE]}}
    call = calls["briefing"]
    spoiled = {"content": [{"type": "text", "text": "…"}], "structuredContent": answer, "isError": False}
    with hosting(browser, 320) as window:
        page = window.page
        page.on("dialog", lambda dialog: window.faults.append("a dialog was opened"))
        frame = show(page, call, result=spoiled)
        assert "<script>" in frame.locator("#shown").inner_text()
        assert frame.locator("#shown :is(img, script, a[href^='javascript' i])").count() == 0
        assert frame.title() != "broken"
        frame.get_by_text("All values").click()
        frame.locator("a[href^='https://elsewhere.example']").first.click()
        page.wait_for_function("() => window.seen.opened.length")
        assert page.evaluate("() => window.seen.opened") == ["https://elsewhere.example/a"]
        check_messages(page, forms)
        window.check()


def spoil(value: Any) -> Any:
    """The same answer with hostile words for each text. Times stay times."""
    if isinstance(value, str):
        return value if re.fullmatch(r"[\d:.TZ+-]+", value) else HOSTILE
    if isinstance(value, list):
        return [spoil(each) for each in value]
    return {name: spoil(each) for name, each in value.items()} if isinstance(value, dict) else value


@proves("apps.hostile")
@pytest.mark.parametrize("tool", a_share([*VIEWED], 4))
def test_every_text_of_an_answer_may_be_hostile(browser: Browser, calls: dict[str, Call], tool: str) -> None:
    """Sources lose invisible characters and those that turn the direction of text before a view has them."""
    result = calls[tool].result
    with hosting(browser, 320) as window:
        window.page.on("dialog", lambda dialog: window.faults.append("a dialog was opened"))
        spoiled = result | {"structuredContent": spoil(result["structuredContent"])}
        frame = show(window.page, calls[tool], result=spoiled)
        assert frame.locator("#shown :is(img, script, b, a[href^='javascript' i])").count() == 0
        assert frame.title() != "broken"
        wide, inner = frame.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")
        assert wide <= inner
        window.check()


def test_a_refusal_is_drawn_and_only_a_free_tool_is_asked_again(
    browser: Browser, calls: dict[str, Call], demo: Program, forms: dict[str, Validator]
) -> None:
    refused = ask(demo, "tools/call", name="weather", arguments={"lat": 999, "lon": 0})
    with hosting(browser, 320) as window:
        page = window.page
        frame = show(page, calls["weather"], result=refused)
        words = frame.get_by_role("alert").inner_text()
        assert json.loads(refused["content"][0]["text"])["detail"] in words
        assert "Nothing was charged" in words
        frame = show(page, calls["stocks"])
        frame.get_by_role("button", name="Ask again").press("Enter")
        page.wait_for_function("() => window.seen.called.length")
        assert page.evaluate("() => window.seen.called") == [{"name": "stocks", "arguments": VIEWED["stocks"]}]
        frame.wait_for_selector("#shown > footer")
        assert page.evaluate("async () => window.bridge.teardownResource({})") == {}
        assert "tools/call" in check_messages(page, forms)
        window.check()
