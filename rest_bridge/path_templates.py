"""Matches the path of a request to a template with arguments, such as `/api/pro/subscribe/{id}`."""

import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import unquote

_PLACEHOLDER = re.compile(r"{(\w+)}")


class MatchedPath(NamedTuple):
    """The path by which operations are looked up, and the arguments that replaced its placeholders."""

    path: str
    arguments: dict[str, str]


class PathTemplates:
    """The templates among some paths. A path without braces matches only itself."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._patterns = [(path, _pattern(path)) for path in sorted(set(paths)) if "{" in path]

    def match(self, path: str) -> MatchedPath:
        """Return the template that a path fits, or the path itself if it fits none."""
        for template, pattern in self._patterns:
            if (found := pattern.fullmatch(path)) is not None:
                return MatchedPath(template, {name: unquote(value) for name, value in found.groupdict().items()})
        return MatchedPath(path, {})


def _pattern(template: str) -> re.Pattern[str]:
    parts = _PLACEHOLDER.split(template)
    names, texts = parts[1::2], parts[0::2]
    written = [re.escape(texts[0])]
    for name, text in zip(names, texts[1:], strict=True):
        written += [f"(?P<{name}>[^/]+)", re.escape(text)]
    return re.compile("".join(written))
