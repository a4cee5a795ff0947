"""Rewrite dangerous addresses so that no program turns them into a link again."""

import re
from html import escape

from tools.parsing.fields import clean

INDICATOR = 300  # the longest indicator, in characters
_SCHEME = re.compile(r"http(?=s?:)", re.IGNORECASE)
_AUTHORITY = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*:[/\\]+)?(?P<host>[^/\\?#]*)(?P<rest>.*)", re.IGNORECASE | re.DOTALL
)


def defang(indicator: str, cap: int = INDICATOR) -> str:
    """Return a URL, host, address or mail address that is not a link any more: `hxxp://host[.]example/path`.

    `http` becomes `hxxp`, dots of the host `[.]`, every `@` `[@]`; hashes stay as they are.
    """
    match = _AUTHORITY.fullmatch(literal(indicator))
    assert match is not None  # every part may be empty
    scheme, host, rest = match["scheme"] or "", match["host"].replace(".", "[.]"), match["rest"]
    text = _SCHEME.sub("hxxp", f"{scheme}{host}{rest}").replace("@", "[@]")
    return text if len(text) <= cap else text[: cap - 1] + "…"


def literal(text: str, cap: int = 2000) -> str:
    """Clean a text that must keep every visible character, such as a URL: entities are not decoded."""
    return clean(escape(text, quote=False), cap)
