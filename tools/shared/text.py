"""Third-party text made safe to carry: cleaned and cut, never rewritten."""

import html
import re
import unicodedata
from urllib.parse import urlsplit

TITLE, NAME, DESCRIPTION = 200, 120, 500  # caps, in characters

_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)
_TAGS = re.compile(r"<[^<>]{0,1000}>")


def clean(text: str, cap: int = TITLE, *, is_html: bool = False) -> str:
    """Text without control, zero-width and bidi characters, white space collapsed, NFC, at most `cap` characters.

    Entities are decoded once; with `is_html`, tags are dropped first. Words are never changed or reordered.
    """
    if is_html:
        text = _TAGS.sub(" ", text)
    text = _INVISIBLE.sub("", html.unescape(text))
    text = unicodedata.normalize("NFC", " ".join(text.split()))
    return text if len(text) <= cap else text[: cap - 1].rstrip() + "…"


def clean_or_none(text: object, cap: int = TITLE, *, is_html: bool = False) -> str | None:
    """`clean`, or None when there is nothing to show."""
    return (clean(text, cap, is_html=is_html) or None) if isinstance(text, str) else None


def web_url(url: object) -> str | None:
    """The URL if it is http(s), has a host and no more than 2,000 characters; otherwise None."""
    if not isinstance(url, str) or len(url) > 2000:
        return None
    url = url.strip()
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    ok = parts.scheme in ("http", "https") and parts.hostname and not _INVISIBLE.search(url) and " " not in url
    return url if ok else None
