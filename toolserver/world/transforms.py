"""Apply a fault to a body if the upstream has no form of its own for it: another form, wrong numbers, hostile text."""

import codecs
import math
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any
from xml.sax.saxutils import escape

from toolserver.world import bodies
from toolserver.world.model import Reply

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
