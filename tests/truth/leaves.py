"""The numbers and texts of an answer by their paths, as they are compared."""

from collections.abc import Iterator
from typing import Any, TypeAlias

SHARE = 0.05
PERCENT, POINTS = ("change_24h_percent", "change_24h"), 1.5  # as near as a proved price is to the true one
COUNTERS, GROWN = ("likes", "downloads", "stars", "forks"), 0.3  # of a list whose members change by the day
UNKNOWN = "unknown"  # a text that says what null says

Leaves: TypeAlias = dict[str, list[Any]]


def leaves_of(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Numbers and texts by their path; lists are taken as a whole: what each row holds, whatever its place."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from leaves_of(member, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for row in value:
            yield from ((f"{where}[]", what) for where, what in leaves_of(row, path))
    elif value not in (None, UNKNOWN) and not isinstance(value, bool):
        yield path, value


def collect(value: Any) -> Leaves:
    """All values of each path."""
    found: Leaves = {}
    for path, leaf in leaves_of(value):
        found.setdefault(path, []).append(leaf)
    return found


def is_close(given: Any, true: Any, path: str = "") -> bool:
    """Whether two values are the same, numbers within a share; what is a share itself, within some points."""
    if isinstance(given, int | float) and isinstance(true, int | float):
        share = GROWN if path.endswith(COUNTERS) else SHARE
        return abs(given - true) <= share * abs(true) + (POINTS if path.endswith(PERCENT) else 1e-9)
    return bool(given == true)
