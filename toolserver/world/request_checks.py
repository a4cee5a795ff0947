"""Read a control request: every member must have a known name, type and range, or the request is refused."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

LATEST = 4_102_444_800.0  # 2100-01-01: the end of simulated time


class ControlRefused(Exception):
    """A control request that cannot be carried out. The text is written for its sender."""

    def __init__(self, detail: str, status: int = 400) -> None:
        super().__init__(detail)
        self.status = status


def an_object(body: Any, what: str) -> dict[str, Any]:
    if isinstance(body, dict):
        return body
    raise ControlRefused(f"{what} must be a JSON object")


def members(body: Any, allowed: set[str], what: str) -> dict[str, Any]:
    """Return the body as an object that has only the allowed members."""
    members = an_object(body, what)
    if unknown := sorted(set(members) - allowed):
        raise ControlRefused(
            f"{what} has no member {', '.join(map(repr, unknown))}; it has {', '.join(sorted(allowed))}"
        )
    return members


def number(value: Any, name: str, low: float = -1e300, high: float = 1e300) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ControlRefused(f"{name} must be a number")
    if not low <= value <= high:
        raise ControlRefused(f"{name} must be between {low:g} and {high:g}")
    return value


def whole(value: Any, name: str, low: int, high: int) -> int:
    parsed = number(value, name, low, high)
    if parsed != int(parsed):
        raise ControlRefused(f"{name} must be a whole number")
    return int(parsed)


def flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise ControlRefused(f"{name} must be true or false")
    return value


def text(value: Any, name: str, longest: int = 300) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= longest:
        raise ControlRefused(f"{name} must be a text of 1 to {longest} characters")
    return value


def choice(value: Any, name: str, options: Mapping[str, Any] | set[str]) -> str:
    if not isinstance(value, str) or value not in options:
        raise ControlRefused(f"{name} must be one of {', '.join(sorted(options))}")
    return value


def instant(value: Any, name: str) -> float:
    """Return epoch seconds from a number or an ISO 8601 text (UTC when it names no zone)."""
    if not isinstance(value, str):
        return number(value, name, 0, LATEST)
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        raise ControlRefused(f"{name} must be epoch seconds or an ISO 8601 time") from None
    aware = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    return number(aware.timestamp(), name, 0, LATEST)
