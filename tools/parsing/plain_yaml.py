"""Read the small part of YAML that leaderboards use: flat lists of mappings and nested mappings. Scalars stay text."""

import re
from collections.abc import Iterator
from typing import Any

_COMMENT = re.compile(r"(?:^|\s)#.*$")
_QUOTED = re.compile(r"""(["'])(.*?)\1(?:\s|$)""")


def rows(text: str) -> list[dict[str, str]]:
    """Return the mappings of a list: each starts with `- key: value`, with further keys below it."""
    found: list[dict[str, str]] = []
    for _, line in _lines(text):
        if line.startswith("- "):
            found.append({})
        pair = _pair(line.removeprefix("- "))
        if found and pair:
            found[-1][pair[0]] = pair[1]
    return found


def tree(text: str) -> dict[str, Any]:
    """Return nested mappings by indentation. Lists are left out."""
    root: dict[str, Any] = {}
    within = [(-1, root)]
    for indent, line in _lines(text):
        pair = None if line.startswith("-") else _pair(line)
        if pair is None:
            continue
        while indent <= within[-1][0]:
            within.pop()
        key, value = pair
        if value:
            within[-1][1][key] = value
        else:
            child = within[-1][1][key] = {}
            within.append((indent, child))
    return root


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the indentation and the text of each line that has content."""
    for line in text.splitlines():
        rest = line.strip()
        if rest and not rest.startswith("#"):
            yield len(line) - len(line.lstrip()), rest


def _pair(line: str) -> tuple[str, str] | None:
    key, colon, value = line.partition(":")
    if not colon:
        return None
    value = value.strip()
    quoted = _QUOTED.match(value)
    return key.strip().strip("\"'"), quoted[2] if quoted else _COMMENT.sub("", value).strip()
