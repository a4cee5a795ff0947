"""Answer a request to a simulated upstream: with the provider's own answer, or with a fault's version of it.

Replies are encoded for the wire in worker threads, and cached for as long as they cannot change.
"""

import codecs
import gzip
import hashlib
import math
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from itertools import count
from typing import Any, Literal
from urllib.parse import unquote
from xml.sax.saxutils import escape

import anyio
from anyio import to_thread

from toolserver.core.single_flight import SingleFlight
from toolserver.world import bodies
from toolserver.world.faults import Rule
from toolserver.world.model import Ask, Handler, Reply, Route, Routes, World
from toolserver.world.state import WorldState

MOST_BYTES = 64 * 1024 * 1024
MOST_PAGES = 1_024
THREADS = 2
COMPRESSED_FROM = 200
NOT_SEEN_BY_PROVIDERS = {
    "accept-encoding",
    "connection",
    "content-length",
    "host",
    "if-modified-since",
    "if-none-match",
    "traceparent",
}


@dataclass(frozen=True, slots=True)
class RenderedReply:
    """A reply with its validator and its compressed form."""

    reply: Reply
    etag: str
    packed: bytes | None

    @classmethod
    def of(cls, reply: Reply) -> "RenderedReply":
        etag = f'"{hashlib.sha256(reply.body).hexdigest()[:32]}"'
        packed = gzip.compress(reply.body, 1, mtime=0) if len(reply.body) >= COMPRESSED_FROM else None
        return cls(reply, etag, packed)

    @property
    def size(self) -> int:
        return len(self.reply.body) + len(self.packed or b"")


class Renderer:
    """Calls each provider once per distinct request, in a worker thread: some bodies take a second to make."""

    def __init__(self, *, most_bytes: int = MOST_BYTES, most_pages: int = MOST_PAGES) -> None:
        self._most_bytes, self._most_pages = most_bytes, most_pages
        self._kept: OrderedDict[object, tuple[RenderedReply, World]] = OrderedDict()
        self._bytes = 0
        self._single_flight = SingleFlight()
        self._threads = anyio.CapacityLimiter(THREADS)

    async def page(self, handler: Handler, world: World, ask: Ask) -> RenderedReply:
        """Return a provider's reply to a request in a world. A repeated request costs little."""
        headers = tuple(sorted((k, v) for k, v in ask.headers.items() if k not in NOT_SEEN_BY_PROVIDERS))
        request = (ask.method, ask.host, ask.path, ask.query, ask.body, headers)
        key = (handler, world.seed, world.now, id(world.edits), request)  # the cached world keeps that id in use
        if (cached := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return cached[0]

        async def render() -> RenderedReply:
            page = await self.run(lambda: RenderedReply.of(handler(world, ask)))
            self._keep(key, page, world)
            return page

        return await self._single_flight.do(key, render)

    async def changed(self, page: RenderedReply, change: Callable[[Reply], Reply]) -> RenderedReply:
        """Return the page after a fault changed it. The result is not cached."""
        return await self.run(lambda: RenderedReply.of(change(page.reply)))

    async def run(self, make: Callable[[], RenderedReply]) -> RenderedReply:
        return await to_thread.run_sync(make, limiter=self._threads)

    def _keep(self, key: object, page: RenderedReply, world: World) -> None:
        self._kept[key] = (page, world)
        self._bytes += page.size
        while len(self._kept) > self._most_pages or (self._bytes > self._most_bytes and len(self._kept) > 1):
            _, (old, _) = self._kept.popitem(last=False)
            self._bytes -= old.size


@dataclass(frozen=True, slots=True)
class Delivery:
    """How an answer is sent: delays, cuts and resets."""

    delay_s: float = 0
    bytes_per_s: float | None = None
    fraction: float = 1  # of the body that is sent before the connection is closed
    end: Literal["", "silence", "reset_headers", "reset_body", "not_modified"] = ""


@dataclass(frozen=True, slots=True)
class SimulatedAnswer:
    """An answer and its delivery. `page` is None when nothing is sent at all."""

    page: RenderedReply | None
    source: str | None = None
    rule: Rule | None = None
    delivery: Delivery = Delivery()


async def answer(state: WorldState, routes: Routes, renderer: Renderer, ask: Ask) -> SimulatedAnswer | None:
    """Return the answer to a request, or None when nothing is simulated at that address."""
    match = routes.find(replace(ask, path=unquote(ask.path))) or routes.find(ask)
    if match is None:
        return None
    route, ask = match
    world = state.world()
    rule = state.faults.fire(route.source, ask, world)
    handler = state.replays.get(route.source, route.handler)
    if rule is None:
        return SimulatedAnswer(await renderer.page(handler, world, ask), route.source)
    if rule.kind in ("timeout", "reset") and rule.terms.get("at") != "body":
        end: Any = "silence" if rule.kind == "timeout" else "reset_headers"
        return SimulatedAnswer(None, route.source, rule, Delivery(end=end))
    page = await _faulty_page(renderer, rule, route, handler, world, ask)
    return SimulatedAnswer(page, route.source, rule, delivery(rule, world))


def delivery(rule: Rule, world: World) -> Delivery:
    """Return how a fault rule changes the way an answer is sent."""
    terms = rule.terms
    if rule.kind == "latency":
        jitter = world.u(f"fault.{rule.id}.jitter", rule.uses.seen) * terms["jitter_ms"]
        return Delivery(delay_s=(terms["ms"] + jitter) / 1000)
    if rule.kind == "slow_drip":
        return Delivery(bytes_per_s=terms["bytes_per_s"])
    if rule.kind == "truncated":
        return Delivery(fraction=terms["fraction"])
    if rule.kind == "reset":
        return Delivery(end="reset_body", fraction=0.5)
    return Delivery(end="not_modified") if rule.kind == "conditional_stuck" else Delivery()


async def _faulty_page(
    renderer: Renderer, rule: Rule, route: Route, handler: Handler, world: World, ask: Ask
) -> RenderedReply:
    """Return the upstream's own form of the fault if it has one, a generic form otherwise."""
    if rule.kind == "frozen":
        return await renderer.page(handler, rule.world, ask)
    if rule.kind == "old":
        return await renderer.page(handler, world.at(world.now - rule.terms["seconds"]), ask)
    if (own := _own_form(rule, route)) is not None:
        page = await renderer.page(own, world, ask)
        later = rule.terms.get("retry_after")
        return page if later is None else await renderer.changed(page, lambda reply: _come_back(reply, later))
    if rule.kind in REFUSALS:
        return RenderedReply.of(REFUSALS[rule.kind](rule))
    page = await renderer.page(handler, world, ask)
    change = CHANGES.get(rule.kind)
    return page if change is None else await renderer.changed(page, lambda reply: change(reply, rule, world.now))


def _come_back(reply: Reply, after_s: int) -> Reply:
    return replace(reply, headers={**reply.headers, "Retry-After": str(after_s)})


def _announce(reply: Reply, rule: Rule) -> Reply:
    """Return the answer with the rule's announcements, or a permanent redirect to the host of `moved`."""
    said = {name.title(): text for name in ("deprecation", "sunset", "warning") if (text := rule.terms[name])}
    if rule.terms["moved"]:
        return Reply(b"", 308, "text/plain", headers={**said, "Location": f"https://{rule.terms['moved']}/"})
    return replace(reply, headers={**reply.headers, **said})


def _own_form(rule: Rule, route: Route) -> Handler | None:
    forms, terms = route.forms, rule.terms
    if rule.kind == "status":
        return forms.get(f"status:{terms['code']}")
    if rule.kind == "drift":
        form = terms["form"]
        if form in FORMS and f"drift:{form}" not in forms:
            return None
        return forms.get(f"drift:{form}", forms.get("drift"))
    return forms.get("limited" if rule.kind == "rate_limit" else rule.kind) if rule.kind in OWN_FORMS else None


OWN_FORMS = {"error200", "empty", "geo", "auth", "rate_limit"}

REFUSALS: dict[str, Callable[[Rule], Reply]] = {
    "status": lambda rule: error(rule.terms["code"], rule.terms["retry_after"]),
    "rate_limit": lambda rule: limited_reply(rule.uses.retry_after_s),
    "html200": lambda rule: challenge(),
    "error200": lambda rule: error_in_200(),
    "geo": lambda rule: barred_reply(rule.terms["code"]),
    "auth": lambda rule: unauthorized_reply(),
    "dns": lambda rule: unresolved_reply(),
}

CHANGES: dict[str, Callable[[Reply, Rule, float], Reply]] = {
    "malformed": lambda reply, rule, now: damage(reply, rule.terms["fraction"]),
    "empty": lambda reply, rule, now: empty(reply),
    "zeros": lambda reply, rule, now: zeros(reply, now, rule.terms["keep_times"]),
    "drift": lambda reply, rule, now: drift(reply, rule.terms["form"]),
    "hostile": lambda reply, rule, now: spoil(reply, rule.terms["links"]),
    "jump": lambda reply, rule, now: jump(reply, now, rule.terms["factor"]),
    "announce": lambda reply, rule, now: _announce(reply, rule),
    "oversize": lambda reply, rule, now: oversize(reply, rule.terms["mib"]),
}

GONE = {"timeout", "reset", "status", "rate_limit", "geo", "auth", "dns", "malformed", "truncated", "html200"}
PROBED = "Probe.tcp_connect"


def probe(
    state: WorldState, host: str, recorded: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], Rule | None]:
    """Return how long a TCP connection to a host takes (ms), or -1 for none. Pin `probe.<host>` to fix it.

    `recorded` values of a host apply unless a fault or a pin overrides them.
    """
    world = state.world()
    rule = state.faults.fire(PROBED, Ask("CONNECT", host, "/"), world)
    pinned = world.pinned(f"probe.{host}")
    if (rule is not None and rule.kind in GONE) or (pinned is not None and pinned < 0):
        return {"unreachable": True}, rule
    if pinned is None and rule is None and recorded is not None:
        return recorded[host], None
    usual = world.between("probe", host, 4, 160) * (1 + 0.1 * world.noise(f"probe.{host}", world.now / 60))
    late = delivery(rule, world).delay_s * 1000 if rule is not None else 0
    return {"latency_ms": max(1, round((usual if pinned is None else pinned) + late))}, rule


# --- refusals and errors of upstreams that define none of their own ---


HTML = "text/html; charset=utf-8"
CHALLENGE = """<!DOCTYPE html><html lang="en"><head><title>Just a moment...</title></head>
<body><h1>Checking your browser before accessing this site.</h1><p>Enable JavaScript and cookies to continue.</p>
</body></html>"""
BLOCKED = """<!DOCTYPE html><html lang="en"><head><title>Access denied</title></head><body><h1>Access denied</h1>
<p>This service is not available in your region.</p></body></html>"""
ERROR = """<html><head><title>{code} {reason}</title></head><body><center><h1>{code} {reason}</h1></center>
<hr><center>gateway</center></body></html>"""


def challenge() -> Reply:
    """Reply with an HTML page for browsers and status 200."""
    return Reply.text(CHALLENGE, 200, HTML)


def barred_reply(code: int) -> Reply:
    return Reply.text(BLOCKED, code, HTML)


def unauthorized_reply() -> Reply:
    return Reply.json({"error": "unauthorized", "message": "Missing or invalid API key"}, 401)


def limited_reply(retry_after_s: int) -> Reply:
    return Reply.json({"error": "Too Many Requests"}, 429, headers={"Retry-After": str(retry_after_s)})


def error_in_200() -> Reply:
    return Reply.json({"error": {"code": 400, "message": "Unable to complete operation"}})


def unresolved_reply() -> Reply:
    """Return the reply for a name that does not resolve. Readers of the simulated world treat 599 as no connection."""
    return Reply.json({"error": "name not resolved"}, 599)


def error(code: int, retry_after_s: int | None = None) -> Reply:
    """Reply with a gateway's page for 5xx, and with a line of JSON for every other status."""
    headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
    reason = reason_of(code)
    if code >= 500:
        return Reply.text(ERROR.format(code=code, reason=reason), code, HTML, headers=headers)
    if code in (204, 304):
        return Reply(b"", code, headers=headers)
    return Reply.json({"error": reason, "status": code}, code, headers=headers)


def reason_of(code: int) -> str:
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return ""


# --- what a fault does to a body ---


KEPT = {"id", "jsonrpc", "status", "status_code", "code", "retcode", "error_code", "version", "api"}
"""Members that describe an answer rather than its content. `zeros` and `jump` do not change them."""

TIMES_WITHIN_S = 400 * 86_400
JUNK = b'{,}<"{'  # cannot end a JSON value or a table cell

SCRIPT = '<script>document.title="broken"</script><img src=x onerror="document.title=\'broken\'">'
LINK = "[click](javascript:alert(1)) javascript:alert(1)"
BIDI = "\u202etxt.exe\u2066 \u200bturned\u2069"
LONG = "w" * 10_000
TEXTS = (f"{SCRIPT} a", f"{LINK} b", f"{BIDI} c", "{{7*7}} ${7*7} <b>\"' d")
ADDRESS = "javascript:document.title='broken'"
LONG_ONES = 6  # per body: more of them would only exceed the size that its reader accepts

_NAMES = frozenset(
    "title name description summary headline place text message content excerpt full_name mission question author"
    " location areadesc event instruction body subtitle label news".split()
)
_LINKS = frozenset("url link href html_url wiki_url web_url info_url".split())
_TAGGED = re.compile(r"(?s)(<(title|description|summary|content|name)(?: [^>]*)?>)(.*?)(</\2>)")
_CODE = re.compile(r"[\w.:/+-]*\d[\w.:/+-]*|https?:.*|[\d\s.,:TZ+-]+")  # an id, a time or an address, not text


def zeros(reply: Reply, now: float, keep_times: bool = False) -> Reply:
    """Set every number to 0, as some upstreams do for an unknown symbol."""

    def change(value: float, name: str) -> float:
        return value if name.lower() in KEPT or (keep_times and is_time(value, now)) else 0

    return replace(reply, body=bodies.change_numbers(reply.body, change))


def jump(reply: Reply, now: float, factor: float) -> Reply:
    """Multiply every number that is not a time."""

    def change(value: float, name: str) -> float:
        return value if name.lower() in KEPT or is_time(value, now) else value * factor

    return replace(reply, body=bodies.change_numbers(reply.body, change))


def is_time(value: float, now: float) -> bool:
    """Return True if a number looks like an instant near now, as epoch s, ms, µs or ns."""
    return any(abs(value / scale - now) < TIMES_WITHIN_S for scale in (1, 1e3, 1e6, 1e9))


def empty(reply: Reply) -> Reply:
    return replace(reply, body=bodies.empty_body(reply.body))


def damage(reply: Reply, fraction: float) -> Reply:
    """Return a well-framed but malformed body: cut off and closed with characters that fit no syntax."""
    return replace(reply, body=reply.body[: math.floor(len(reply.body) * fraction)] + JUNK)


def oversize(reply: Reply, mib: float) -> Reply:
    """Pad the body with blanks, so that only its size is wrong."""
    missing = math.ceil(mib * 1024 * 1024) - len(reply.body)
    return replace(reply, body=reply.body + b" " * max(0, missing))


def drift(reply: Reply, form: str | None) -> Reply:
    """Return the same facts in another wire form: `form`, or added and reordered members."""
    return FORMS.get(form or "extra", _extra)(reply)


def _json(reply: Reply, change: Callable[[Any], Any]) -> Reply:
    try:
        value, dump = bodies.load(reply.body)
    except bodies.NotJson:
        return reply
    return replace(reply, body=dump(change(value)))


def _extra(reply: Reply) -> Reply:
    try:
        value, dump = bodies.load(reply.body)
    except bodies.NotJson:
        markup = bodies.is_markup(reply.body[:200].decode("latin-1"))
        return replace(reply, body=(bodies.member_added if markup else bodies.columns_moved)(reply.body))
    return replace(reply, body=dump(_more_members(value)))


def _more_members(value: Any) -> Any:
    """Reverse the keys and add one to each record, but not to a map (values all alike), where it would be an item."""
    if isinstance(value, list):
        return [_more_members(v) for v in value]
    if not isinstance(value, dict):
        return value
    turned = {k: _more_members(v) for k, v in reversed(value.items())}
    return turned if len({type(v) for v in value.values()}) < 2 else turned | {"added_member": "new"}


def _strings(value: Any) -> Any:
    """Write numbers as strings."""
    if isinstance(value, dict):
        return {k: _strings(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_strings(v) for v in value]
    return bodies.compact(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _numbers(value: Any) -> Any:
    """Write numeric strings as numbers."""
    if isinstance(value, dict):
        return {k: _numbers(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_numbers(v) for v in value]
    if isinstance(value, str) and bodies.NUMBER.fullmatch(value):
        return float(value) if any(c in value for c in ".eE") else int(value)
    return value


def _renamed(value: Any) -> Any:
    """Rename every member, so that no reader can recognise one."""
    if isinstance(value, dict):
        return {f"{k}_v2": _renamed(v) for k, v in value.items()}
    return [_renamed(v) for v in value] if isinstance(value, list) else value


def _utf16(reply: Reply) -> Reply:
    try:
        value, _ = bodies.load(reply.body)
    except bodies.NotJson:
        return reply
    return replace(reply, body=codecs.BOM_UTF16_BE + bodies.compact(value).encode("utf-16-be"))


def _bom(reply: Reply) -> Reply:
    return replace(reply, body=codecs.BOM_UTF8 + reply.body.removeprefix(codecs.BOM_UTF8))


def spoil(reply: Reply, links: bool = False) -> Reply:
    """Put hostile text into every text of a JSON body or a feed. With `links`, addresses run scripts too."""
    try:
        value, dump = bodies.load(reply.body)
    except bodies.NotJson:
        head = reply.body[:200].decode("latin-1")
        return replace(reply, body=_spoil_markup(reply.body)) if bodies.is_markup(head) else reply
    return replace(reply, body=dump(_Spoiler(links).walk(value, "")))


class _Spoiler:
    """Takes the texts in turn, so that each field of a list gets each of them."""

    def __init__(self, links: bool) -> None:
        self._links, self._turn = links, count()

    def walk(self, value: Any, name: str) -> Any:
        if isinstance(value, dict):
            return {key: self.walk(member, key) for key, member in value.items()}
        if isinstance(value, list):
            return [self.walk(member, name) for member in value]
        if not isinstance(value, str):
            return value
        if self._links and name.lower() in _LINKS and value.startswith("http"):
            return ADDRESS
        return hostile_text(next(self._turn)) if is_prose(value, name) else value


def hostile_text(turn: int) -> str:
    """Return the text of a turn. The first texts of a body end with a word of 10,000 letters."""
    text = TEXTS[turn % len(TEXTS)]
    return f"{text} {LONG}" if turn < LONG_ONES else text


def is_prose(value: str, name: str) -> bool:
    """Return True if a string is text for people, by its member's name or because it has at least three words."""
    if _CODE.fullmatch(value) or not value.strip():
        return False
    return name.lower() in _NAMES or len(value.split()) >= 3


def _spoil_markup(body: bytes) -> bytes:
    turn = count()

    def change(element: re.Match[str]) -> str:
        return element[1] + escape(hostile_text(next(turn))) + element[4]

    try:
        return _TAGGED.sub(change, body.decode()).encode()
    except UnicodeDecodeError:
        return body


FORMS: dict[str, Callable[[Reply], Reply]] = {
    "extra": _extra,
    "strings": lambda reply: _json(reply, _strings),
    "numbers": lambda reply: _json(reply, _numbers),
    "renamed": lambda reply: _json(reply, _renamed),
    "columns": lambda reply: replace(reply, body=bodies.columns_moved(reply.body)),
    "utf16": _utf16,
    "bom": _bom,
}
