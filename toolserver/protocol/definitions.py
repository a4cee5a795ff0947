"""What `tools/list` says: the registry's operations as MCP tools, and a client's choice among them, ready as bytes."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

from cachetools import LRUCache

from toolserver.answers import key_of
from toolserver.envelopes import answer_schema
from toolserver.errors import InvalidArguments
from toolserver.pipeline import Pipeline
from toolserver.protocol.wire import LIST_TTL_MS, encode
from toolserver.registry import Operation, Registry, Tier

CHOICES = 64  # listings kept; one is made in a few milliseconds
_LIST_HINTS = b',"ttlMs":%d,"cacheScope":"public"' % LIST_TTL_MS
_WRITTEN_KEYS, _WRITTEN_BYTES = 256, 512  # spellings of arguments remembered per tool, and their length


def definition(operation: Operation, *, output_schema: bool = True) -> dict[str, Any]:
    """One entry of `tools/list`."""
    entry: dict[str, Any] = {
        "name": operation.name,
        "title": operation.title,
        "description": operation.description,
        "inputSchema": operation.input_schema,
    }
    if output_schema:
        entry["outputSchema"] = answer_schema(operation)
    entry["annotations"] = annotations(operation)
    if operation.credits:
        entry["_meta"] = {"toolserver/tier": operation.tier, "toolserver/cost_credits": operation.credits}
    return entry


def annotations(operation: Operation) -> dict[str, bool]:
    """All four hints, because their defaults say the worst. A priced read is not idempotent: it charges each time."""
    reads = operation.reads_only or operation.tier is Tier.FREE
    return {
        "readOnlyHint": reads,
        "destructiveHint": operation.method == "DELETE",
        "idempotentHint": (reads and not operation.credits) or operation.method in ("PUT", "DELETE"),
        "openWorldHint": bool(operation.sources) or not reads,
    }


class Route:
    """One tool a client may call: its operation, and the keys of its answers without and with arguments seen before."""

    __slots__ = ("default_key", "free", "keys", "operation")

    def __init__(self, operation: Operation, pipeline: Pipeline) -> None:
        self.operation = operation
        self.free = operation.tier is Tier.FREE and operation.reads_only
        self.default_key = self._default(pipeline) if self.free else None
        self.keys: dict[bytes, Hashable] = {}

    def _default(self, pipeline: Pipeline) -> Hashable | None:
        try:
            return key_of(self.operation, pipeline.check(self.operation, {}))
        except InvalidArguments:
            return None

    def remember(self, written: bytes, key: Hashable) -> None:
        """Arguments written like this have this key: they need not be checked again."""
        if not self.free or self.operation.distinct is not None or len(written) > _WRITTEN_BYTES:
            return  # where distinct arguments are counted, each call has to pass the count
        if len(self.keys) >= _WRITTEN_KEYS:
            self.keys.clear()
        self.keys[written] = key


class Choice:
    """What one client sees: tools by name and alias, and the list of them as bytes, modern or not.

    `fixed` holds the cores of results that never change; only conformance fixtures have one.
    """

    __slots__ = ("definitions", "fixed", "listed", "routes")

    def __init__(
        self, routes: Mapping[str, Route], definitions: list[dict[str, Any]], fixed: Mapping[str, bytes]
    ) -> None:
        self.routes, self.definitions, self.fixed = routes, definitions, fixed
        tools = b'{"tools":' + encode(definitions)
        self.listed = {True: tools + _LIST_HINTS, False: tools}


class UnknownChoice(Exception):
    """The client asked for a toolset or a tool that there is not. `data` names the valid ones."""

    def __init__(self, message: str, data: dict[str, Any]) -> None:
        super().__init__(message)
        self.data = data


class Choices:
    """All choices of one registry. `extra` are the definitions of tools outside it, which are in every choice."""

    def __init__(
        self,
        registry: Registry,
        pipeline: Pipeline,
        *,
        extra: Sequence[dict[str, Any]] = (),
        fixed: Mapping[str, bytes] | None = None,
    ) -> None:
        self._registry, self._extra, self._fixed = registry, extra, fixed or {}
        self._routes = {operation.name: Route(operation, pipeline) for operation in registry}
        self._made: LRUCache[Hashable, Choice] = LRUCache(CHOICES)

    def choose(
        self, *, toolset: str | None = None, tools: Iterable[str] | None = None, output_schema: bool = True
    ) -> Choice:
        """The choice of a toolset or of named tools.

        Raises:
            UnknownChoice: with the valid names.
        """
        try:
            operations = self._registry.chosen(toolset=toolset, tools=tools)
        except KeyError as unknown:
            what = "toolset" if unknown.args[0] == toolset else "tool"
            raise UnknownChoice(
                f"There is no {what} called {str(unknown.args[0])[:64]!r}.",
                {"toolsets": ["core", "all"], "tools": [operation.name for operation in self._registry]},
            ) from None
        key = (*(operation.name for operation in operations), output_schema)
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._make(operations, output_schema=output_schema)
        return made

    def _make(self, operations: list[Operation], *, output_schema: bool) -> Choice:
        routes = {
            name: self._routes[operation.name]
            for operation in operations
            for name in (operation.name, *operation.aliases)
        }
        definitions = [definition(operation, output_schema=output_schema) for operation in operations]
        return Choice(routes, [*definitions, *self._extra], self._fixed)

    def asked(self, query: bytes, toolset: bytes | None = None, tools: bytes | None = None) -> Choice:
        """The choice that a URL's query and the headers X-MCP-Toolset and X-MCP-Tools make; the query wins.

        Raises:
            UnknownChoice: with the valid names.
        """
        headers = {"toolset": toolset, "tools": tools}
        given = {name: value.decode("latin-1") for name, value in headers.items() if value is not None}
        given |= parse_qsl(query.decode("latin-1"), keep_blank_values=True)
        named = given.get("tools")
        switch = given.get("output_schema", "on")
        if switch not in ("on", "off"):
            raise UnknownChoice("`output_schema` is on or off.", {"output_schema": ["on", "off"]})
        names = [name.strip() for name in named.split(",") if name.strip()] if named is not None else None
        return self.choose(toolset=given.get("toolset"), tools=names, output_schema=switch == "on")
