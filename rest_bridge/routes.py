"""Finds the handler or operation for a path, and the methods of the path."""

import re
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from functools import cached_property
from typing import NamedTuple
from urllib.parse import unquote

from pydantic import BaseModel

from rest_bridge.asgi import ParsedRequest, PlainReply, Receive, Scope, Send
from toolserver.calls.arguments import build_cache_key
from toolserver.core.similar_names import find_similar
from toolserver.registry.registry import Operation, Tier

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
            if (match := pattern.fullmatch(path)) is not None:
                return MatchedPath(template, {name: unquote(value) for name, value in match.groupdict().items()})
        return MatchedPath(path, {})


def _pattern(template: str) -> re.Pattern[str]:
    parts = _PLACEHOLDER.split(template)
    names, texts = parts[1::2], parts[0::2]
    written = [re.escape(texts[0])]
    for name, text in zip(names, texts[1:], strict=True):
        written += [f"(?P<{name}>[^/]+)", re.escape(text)]
    return re.compile("".join(written))


Handler = Callable[[Scope, ParsedRequest], Awaitable[PlainReply]]
Mounted = Callable[[Scope, Receive, Send], Awaitable[None]]


class Endpoint:
    """One operation at its path, with the cache key of its answer to a call without arguments."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation

    @cached_property
    def arguments(self) -> BaseModel | None:
        """The arguments of such a call, made with the first one; None if there is none, or it has no cached answer."""
        operation = self.operation
        required = any(field.is_required() for field in operation.arguments.model_fields.values())
        cached = operation.tier in (Tier.FREE, Tier.PREMIUM) and operation.reads_only
        return operation.arguments() if cached and not required else None

    @cached_property
    def default_key(self) -> Hashable | None:
        return None if self.arguments is None else build_cache_key(self.operation, self.arguments)


class RouteTable:
    """Operations, pages and mounted apps by path.

    A page whose path ends in `/*` answers every longer path that has no other handler. Operations take precedence.
    """

    def __init__(
        self, operations: Iterable[Operation], pages: Mapping[str, Handler], mounted: Mapping[str, Mounted]
    ) -> None:
        self.mounted = dict(mounted)
        self.gets: dict[str, Endpoint] = {}
        self._others: dict[str, dict[str, Operation]] = {}
        for operation in operations:
            if operation.method == "GET":
                self.gets[operation.path] = Endpoint(operation)
            else:
                self._others.setdefault(operation.path, {})[operation.method] = operation
        self._pages = {path: page for path, page in pages.items() if not path.endswith("/*")}
        self._under = [(path[:-1], page) for path, page in pages.items() if path.endswith("/*")]
        self._templates = PathTemplates([*self.gets, *self._others])
        self._known = [*dict.fromkeys((*self.gets, *self._others, *self._pages, *self.mounted))]
        self.match = self._templates.match

    def methods(self, path: str) -> list[str]:
        """Return the methods that a path answers, or an empty list if nothing is served there."""
        methods = ["GET", "HEAD"] if path in self.gets or self.page(path) is not None else []
        methods += sorted(self._others.get(path, {}))
        return [*methods, "OPTIONS"] if methods else []

    def page(self, path: str) -> Handler | None:
        """Return the handler of a page, or of the `/*` page above the path."""
        page = self._pages.get(path)
        if page is not None or path in self.gets or path in self._others:
            return page
        return next((page for above, page in self._under if path.startswith(above) and len(path) > len(above)), None)

    def operation(self, path: str, method: str) -> Operation:
        """Return the operation for one of the methods that `methods` returned for the path."""
        if method in ("GET", "HEAD"):
            return self.gets[path].operation
        return self._others[path][method]

    def similar(self, path: str) -> list[str]:
        """Return at most three known paths that are similar to a wrong one."""
        return find_similar(path, self._known)
