"""Make third-party text safe to pass on: it is cleaned and cut, never rewritten."""

import html
import re
import unicodedata
from urllib.parse import urlsplit

from toolserver import INVISIBLE

TITLE, NAME, DESCRIPTION = 200, 120, 500  # maximum lengths, in characters

_TAGS = re.compile(r"<[^<>]{0,1000}>")


def clean(text: str, cap: int = TITLE, *, is_html: bool = False) -> str:
    """Remove invisible characters (control, zero-width, bidi, tags), collapse white space, apply NFC and cut at `cap`.

    Entities are decoded once; with `is_html`, tags are dropped first. Words are never changed or reordered.
    """
    if is_html:
        text = _TAGS.sub(" ", text)
    text = INVISIBLE.sub("", html.unescape(text))
    text = unicodedata.normalize("NFC", " ".join(text.split()))
    return text if len(text) <= cap else text[: cap - 1].rstrip() + "…"


def clean_or_none(text: object, cap: int = TITLE, *, is_html: bool = False) -> str | None:
    """Return the cleaned text, or None when nothing is left to show."""
    return (clean(text, cap, is_html=is_html) or None) if isinstance(text, str) else None


def web_url(url: object) -> str | None:
    """Return the URL if it is http(s), has a host and at most 2,000 characters; otherwise None."""
    if not isinstance(url, str) or len(url) > 2000:
        return None
    url = url.strip()
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    ok = parts.scheme in ("http", "https") and parts.hostname and not INVISIBLE.search(url) and " " not in url
    return url if ok else None
