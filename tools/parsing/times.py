"""Read upstream times as aware datetimes. Times without a zone are UTC unless a source says otherwise."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from tools.parsing.numbers import number

_EARLIEST, _LATEST = 0, 4_102_444_800  # 1970 … 2100: anything else has the wrong unit


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
