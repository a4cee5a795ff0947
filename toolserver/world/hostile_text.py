"""Apply the fault `hostile`: replace texts of a body with attempts to break a page or a reader."""

import re
from dataclasses import replace
from itertools import count
from typing import Any
from xml.sax.saxutils import escape

from toolserver.world import bodies
from toolserver.world.model import Reply

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

    def change(found: re.Match[str]) -> str:
        return found[1] + escape(hostile_text(next(turn))) + found[4]

    try:
        return _TAGGED.sub(change, body.decode()).encode()
    except UnicodeDecodeError:
        return body
