"""Read single values of an answer strictly: numbers, times, and texts.

Numbers are rounded to the digits that carry meaning. Times become aware datetimes; without a
zone they are UTC unless a source says otherwise. Third-party text is made safe to pass on: it
is cleaned and cut, never rewritten.
"""

import html
import math
import re
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

from toolserver import INVISIBLE, SourceEmpty

T = TypeVar("T")

LARGEST = 1e24  # larger than anything that is measured, counted or paid here
_MISSING = {"", ".", "-", "--", "N/D", "NA", "N/A", "null"}
_EARLIEST, _LATEST = 0, 4_102_444_800  # 1970 … 2100: anything else has the wrong unit
TITLE, NAME, DESCRIPTION = 200, 120, 500  # maximum lengths, in characters
_TAGS = re.compile(r"<[^<>]{0,1000}>")


def number(value: Any) -> float:
    """Return a float within LARGEST from a number or a numeric string. Raises ValueError
    otherwise (bool is not a number).
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"not a number: {value!r:.40}")
    if isinstance(value, str) and not value.isascii():
        raise ValueError(f"not a number: {value!r:.40}")
    if isinstance(value, str) and "_" in value:
        raise ValueError(f"not a number: {value!r:.40}")
    result = float(value)
    if not math.isfinite(result):
        raise ValueError(f"not finite: {value!r:.40}")
    if abs(result) > LARGEST:
        raise ValueError(f"too large: {value!r:.40}")
    return result


def number_or_none(value: Any) -> float | None:
    """Return a finite float, None for null and the usual marks of a missing value. Raises ValueError for the rest."""
    if value is None or (isinstance(value, str) and value.strip() in _MISSING):
        return None
    return number(value)


def positive(value: Any) -> float:
    """Return a finite float above zero. Raises ValueError otherwise."""
    result = number(value)
    if result <= 0:
        raise ValueError(f"not positive: {value!r:.40}")
    return result


def within(value: float, low: float, high: float) -> float:
    """Return the value if low <= value <= high. Raises ValueError otherwise."""
    if not low <= value <= high:
        raise ValueError(f"{value!r} is outside {low}…{high}")
    return value


def significant(value: float, digits: int = 6) -> float:
    """Round a value to a number of significant digits."""
    return float(f"{value:.{digits}g}")


def price(value: float) -> float:
    """Round a price: 2 decimals from 1 upwards, 6 significant digits below."""
    return round(value, 2) if abs(value) >= 1 else significant(value)


def percent(value: float) -> float:
    """Round a percentage to 2 decimals."""
    return round(value, 2) + 0.0  # + 0.0 turns -0.0 into 0.0


def change_percent(new: float, old: float) -> float:
    """Return (new - old) / old in percent, 2 decimals. Raises ZeroDivisionError when old is 0."""
    return percent((new - old) / old * 100)


def from_epoch(seconds: Any) -> datetime:
    """Read epoch seconds (number or numeric string). Raises ValueError outside 1970…2100."""
    value = number(seconds)
    if not _EARLIEST <= value <= _LATEST:
        raise ValueError(f"not epoch seconds: {value!r}")
    return datetime.fromtimestamp(value, UTC)


def from_epoch_ms(milliseconds: Any) -> datetime:
    """Read epoch milliseconds. Raises ValueError outside 1970…2100."""
    return from_epoch(number(milliseconds) / 1000)


def from_iso(text: str) -> datetime:
    """Read ISO 8601, with `T` or a blank; a time without an offset is UTC. Raises ValueError."""
    parsed = datetime.fromisoformat(text.strip())
    return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)


def from_rfc822(text: str) -> datetime:
    """Read an RFC 822 date; a bare `Z` and a missing zone are UTC. Raises ValueError."""
    text = text.strip()
    if text.endswith(" Z"):
        text = text[:-1] + "+0000"
    parsed = parsedate_to_datetime(text)
    return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)


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


def optional(read: Callable[[Any], T], value: Any) -> T | None:
    """Return `read(value)`, None when the value is absent, blank or not readable. Never use it for required members."""
    if value is None or value == "":
        return None
    try:
        return read(value)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None


PRICE_JUMP = 0.4  # as a share of a price, between two good answers


def traded_price(value: Any) -> float:
    """Return a price. Raises SourceEmpty for zero, which means that there was no trade, and ValueError below zero."""
    if number(value) == 0:
        raise SourceEmpty("the price is 0")
    return positive(value)
