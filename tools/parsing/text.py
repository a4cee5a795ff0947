"""Make third-party text safe to pass on: it is cleaned and cut, never rewritten."""

import html
import re
import unicodedata
from urllib.parse import urlsplit

TITLE, NAME, DESCRIPTION = 200, 120, 500  # maximum lengths, in characters

_INVISIBLE = re.compile(
    "["
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f"  # control characters other than white space
    "\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"  # joiners, bidi, soft hyphens
    "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\U00016fe4\U0001d159"  # letters and marks that draw nothing
    "\ufe00-\ufe0f\U000e0000-\U000e0fff"  # variation selectors, and the tags that spell hidden ASCII
    "\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # annotation, shorthand, music
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"  # code points that are not characters or not valid in UTF-8
    + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0x10000, 0x110000, 0x10000))
    + "]"
)
"""Unicode's Default_Ignorable_Code_Point, and what else can stand in a text and not be seen."""
_TAGS = re.compile(r"<[^<>]{0,1000}>")


def clean(text: str, cap: int = TITLE, *, is_html: bool = False) -> str:
    """Remove invisible characters (control, zero-width, bidi, tags), collapse white space, apply NFC and cut at `cap`.

    Entities are decoded once; with `is_html`, tags are dropped first. Words are never changed or reordered.
    """
    if is_html:
        text = _TAGS.sub(" ", text)
    text = _INVISIBLE.sub("", html.unescape(text))
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
    ok = parts.scheme in ("http", "https") and parts.hostname and not _INVISIBLE.search(url) and " " not in url
    return url if ok else None
