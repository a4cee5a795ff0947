"""Read members that an answer can do without."""

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def optional(read: Callable[[Any], T], value: Any) -> T | None:
    """Return `read(value)`, None when the value is absent, blank or not readable. Never use it for required members."""
    if value is None or value == "":
        return None
    try:
        return read(value)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None
