"""Prepare `tools/list`: the registry's operations as MCP tools, and a client's choice of them, as ready bytes."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl

from cachetools import LRUCache
from pydantic import BaseModel

from toolserver.calls.arguments import build_cache_key, validate_arguments
from toolserver.core.similar_names import find_similar
from toolserver.errors import InvalidArguments
from toolserver.mcp.call_arguments import CALL_RESULT, write_arguments
from toolserver.mcp.messages import LIST_TTL_MS, encode
from toolserver.registry.deprecations import DEPRECATIONS, Deprecation, deprecate_members, find_deprecations
from toolserver.registry.listed_schema import listed_schema
from toolserver.registry.registry import Operation, Registry, Tier

CHOICES = 64  # cached listings; making one takes a few milliseconds
_LIST_HINTS = b',"ttlMs":%d,"cacheScope":"private"' % LIST_TTL_MS
LONGEST_ENUM = 40  # words
_SCHEMAS = frozenset({"items", "anyOf", "additionalProperties"})
_CHECKED = frozenset({"pattern", "minLength", "maxLength"})
_HELPFUL = frozenset({"examples", "minimum", "maximum"})  # left out where a client asks for few bytes
_WRITTEN_KEYS, _WRITTEN_BYTES = 256, 512  # spellings of arguments remembered per tool, and their maximum length


def definition(
    operation: Operation,
    *,
    output_schema: bool = True,
    token_argument: bool = False,
    is_read: bool = False,
    deprecations: Sequence[Deprecation] = DEPRECATIONS,
) -> dict[str, Any]:
    """Return one entry of `tools/list`. `token_argument` writes it for connections that carry no token.

    What will go stands in `_meta`, and arguments that will go say so themselves.

    With `is_read` the hints call a priced tool a read, so that a host does not ask before it
    spends. Without output schemas, the entry has only what a model reads, and all four hints:
    some hosts do not ask about a tool without hints, and others take the worst for a missing
    one.
    """
    entry: dict[str, Any] = {"name": operation.name}
    if output_schema:
        entry["title"] = operation.title
    entry["description"] = operation.description
    left_out = _CHECKED if output_schema else _CHECKED | _HELPFUL
    arguments = write_arguments(operation, token_argument=token_argument)
    entry["inputSchema"] = _brief(deprecate_members(arguments, operation, "argument", deprecations), left_out)
    if output_schema:
        entry["outputSchema"] = _write_output(operation)
    entry["annotations"] = annotations(operation, is_read=is_read)
    meta = _describe_to_hosts(operation) if output_schema else {}
    if going := find_deprecations(operation, deprecations):
        meta["toolserver/deprecations"] = [each.as_json() for each in going]
    if meta:
        entry["_meta"] = meta
    return entry


def _write_output(operation: Operation) -> dict[str, Any]:
    """Return the output schema, with the members of an answer to `call` where a tool runs others."""
    schema = listed_schema(operation)
    if not operation.runs_tools:
        return schema
    return {**schema, "properties": {**schema["properties"], **CALL_RESULT}}


def _describe_to_hosts(operation: Operation) -> dict[str, Any]:
    """Return the `_meta` of a definition: the price, and what hosts that search tools by keywords read."""
    meta: dict[str, Any] = {}
    if operation.credits:
        meta |= {"toolserver/tier": operation.tier, "toolserver/cost_credits": operation.credits}
    if operation.search_hint:
        meta["anthropic/searchHint"] = operation.search_hint
    if operation.always_loaded:
        meta["anthropic/alwaysLoad"] = True
    if operation.longest_chars:
        meta["anthropic/maxResultSizeChars"] = operation.longest_chars
    return meta


def _brief(node: Any, left_out: frozenset[str]) -> Any:
    """Return a schema of arguments without what OpenAPI has and a model pays for in vain.

    These are patterns, lengths and long enumerations, which it cannot read or already knows,
    and closed objects: hosts that check arguments themselves say nothing useful of an unknown
    one, while our refusal names the nearest valid name. Calls are checked against the whole
    schema.
    """
    if isinstance(node, list):
        return [_brief(item, left_out) for item in node]
    if not isinstance(node, dict):
        return node
    brief = {key: value for key, value in node.items() if not _is_in_vain(key, value, left_out)}
    if "properties" in brief:
        brief["properties"] = {name: _brief(argument, left_out) for name, argument in brief["properties"].items()}
    return brief | {key: _brief(brief[key], left_out) for key in _SCHEMAS & brief.keys()}


def _is_in_vain(key: str, value: Any, left_out: frozenset[str]) -> bool:
    """Return True for a keyword of a schema that tool lists leave out."""
    if key == "additionalProperties":
        return value is False
    return key in left_out or (key == "enum" and len(value) > LONGEST_ENUM)


def annotations(operation: Operation, *, is_read: bool = False) -> dict[str, bool]:
    """Return all four hints, as defaults assume the worst.

    A priced tool spends at each call, so it is neither a read nor idempotent, and hosts ask
    before they call it. With `is_read` it counts as the read that it is otherwise. A quote
    costs and changes nothing.
    """
    reads = operation.reads_only or operation.tier is Tier.FREE
    spends = operation.credits > 0
    return {
        "readOnlyHint": operation.changes_nothing or (reads and (is_read or not spends)),
        "destructiveHint": operation.method == "DELETE",
        "idempotentHint": (reads and not spends) or operation.method in ("PUT", "DELETE"),
        "openWorldHint": spends or bool(operation.sources) or not reads,
    }


class ToolRoute:
    """A tool a client may call: its operation, and the keys of its answers without and with arguments seen before.

    `reachable` are the routes of the tools that this one may run on its connection, by name
    and alias; only a tool that runs others has them. What its arguments are by default is
    found with its first call, because the models of all arguments take 4 MB.
    """

    def __init__(self, operation: Operation, reachable: "Mapping[str, ToolRoute] | None" = None) -> None:
        self.operation = operation
        self.reachable = reachable
        self.free = operation.tier is Tier.FREE and operation.reads_only
        self.keys: dict[bytes, Hashable] = {}

    @cached_property
    def default_key(self) -> Hashable | None:
        """The key of a free answer without arguments; None if the tool requires some."""
        return self._default[1] if self.free and self._default else None

    @cached_property
    def sold(self) -> tuple[BaseModel, Hashable] | None:
        """The default arguments and the key of an answer that costs credits; None for other tools."""
        return self._default if self.operation.credits and self.operation.reads_only else None

    @cached_property
    def _default(self) -> tuple[BaseModel, Hashable] | None:
        """The default arguments and the key of their answer, or None if the tool requires arguments."""
        try:
            arguments = validate_arguments(self.operation, {})
        except InvalidArguments:
            return None
        return arguments, build_cache_key(self.operation, arguments)

    def remember(self, written: bytes, key: Hashable) -> None:
        """Remember the key of arguments with this spelling, so that they need not be checked again."""
        if not self.free or self.operation.distinct is not None or len(written) > _WRITTEN_BYTES:
            return  # where distinct arguments are counted, each call has to be counted
        if len(self.keys) >= _WRITTEN_KEYS:
            self.keys.clear()
        self.keys[written] = key


class ToolChoice:
    """What one client sees: tools by name and alias, and the listing as bytes for both eras.

    `fixed` holds the cores of results that never change; only an extension for tests has one.
    `hidden` maps each tool that cannot be called here to the toolset that has it. With
    `short_meta`, answers have a short `_meta`. `wants_views`: the client asked for views of
    tools by its address.
    """

    __slots__ = ("_names", "_viewed", "definitions", "fixed", "hidden", "listed", "routes", "short_meta", "wants_views")

    def __init__(
        self,
        routes: Mapping[str, ToolRoute],
        definitions: list[dict[str, Any]],
        fixed: Mapping[str, bytes],
        hidden: Mapping[str, str],
        *,
        short_meta: bool = False,
        wants_views: bool = False,
    ) -> None:
        self.short_meta = short_meta
        self.wants_views = wants_views
        self.routes = routes
        self.definitions = definitions
        self.fixed = fixed
        self.hidden = hidden
        self._names = [*routes, *hidden]
        self.listed = _write_list(definitions)
        self._viewed: dict[bool, bytes] | None = None

    def list_with_views(self, find_address: Callable[[str], str | None], *, modern: bool) -> bytes:
        """Return the listing with the addresses of views. They take a fifteenth more, so others do not get them."""
        if self._viewed is None:
            self._viewed = _write_list([add_view(entry, find_address(entry["name"])) for entry in self.definitions])
        return self._viewed[modern]

    def describe_unknown(self, name: str) -> tuple[str, list[str]]:
        """Return the message for a client that calls an unavailable tool, and the names that it may have meant."""
        name = name[:64]
        if name in self.hidden:
            where = f"connect with ?toolset={self.hidden[name]} or ?tools={name} to call it"
            return f"Unknown tool: {name} is not among the tools chosen for this connection; {where}.", [name]
        near = find_similar(name, self._names)
        meant = f" Did you mean {' or '.join(near)}?" if near else ""
        return f"Unknown tool: {name}.{meant} tools/list has the names.", near


def _write_list(definitions: list[dict[str, Any]]) -> dict[bool, bytes]:
    """Return the core of `tools/list` for both eras; the key says whether it is the modern one."""
    tools = b'{"tools":' + encode(definitions)
    return {True: tools + _LIST_HINTS, False: tools}


def add_view(entry: dict[str, Any], address: str | None) -> dict[str, Any]:
    """Return a definition with the URI of the tool's view (MCP Apps), which older hosts read at a place of its own."""
    if address is None:
        return entry
    return {**entry, "_meta": {**entry.get("_meta", {}), "ui": {"resourceUri": address}, "ui/resourceUri": address}}


class UnknownToolChoice(Exception):
    """The client chose a toolset or a tool that does not exist. `data` names the valid ones."""

    def __init__(self, message: str, data: dict[str, Any]) -> None:
        super().__init__(message)
        self.data = data


class ToolChoices:
    """All choices of one registry. `extra` has the definitions of tools outside it, which are in every choice."""

    def __init__(
        self,
        registry: Registry,
        *,
        extra: Sequence[dict[str, Any]] = (),
        fixed: Mapping[str, bytes] | None = None,
    ) -> None:
        self._registry, self._extra, self._fixed = registry, extra, fixed or {}
        self._routes = {operation.name: ToolRoute(operation) for operation in registry}
        self._choices: LRUCache[Hashable, ToolChoice] = LRUCache(CHOICES)

    def count(self, toolset: str) -> int:
        """Return the number of tools that a toolset lists."""
        return len(self._registry.chosen(toolset=toolset)) + len(self._extra)

    def choose(
        self,
        *,
        toolset: str | None = None,
        tools: Iterable[str] | None = None,
        output_schema: bool = True,
        short_meta: bool = False,
        token_argument: bool = False,
        is_read: bool = False,
        wants_views: bool = False,
    ) -> ToolChoice:
        """Return the choice of a toolset or of named tools. `token_argument`: the connection itself carries no token.

        `is_read` is that of `definition`, `wants_views` that of `ToolChoice`.

        Raises:
            UnknownToolChoice: the exception has the valid names.
        """
        try:
            operations = self._registry.chosen(toolset=toolset, tools=tools)
        except KeyError as unknown:
            what = "toolset" if unknown.args[0] == toolset else "tool"
            raise UnknownToolChoice(
                f"There is no {what} called {str(unknown.args[0])[:64]!r}.",
                {"toolsets": ["core", "all"], "tools": [operation.name for operation in self._registry]},
            ) from None
        is_open = toolset is None and tools is None
        listed = {"output_schema": output_schema, "token_argument": token_argument, "is_read": is_read}
        key = (*(operation.name for operation in operations), *listed.values(), is_open, short_meta, wants_views)
        choice = self._choices.get(key)
        if choice is None:
            own = {"short_meta": short_meta, "wants_views": wants_views}
            choice = self._make(operations, listed, own, is_open=is_open, is_named=tools is not None)
            self._choices[key] = choice
        return choice

    def _make(
        self,
        operations: list[Operation],
        listed: Mapping[str, Any],
        own: Mapping[str, bool],
        *,
        is_open: bool,
        is_named: bool,
    ) -> ToolChoice:
        """Make a choice with switches of its `own`.

        If the client made none (`is_open`), every tool can be called, whichever are listed.

        A tool that runs others reaches every tool, unless the client named the tools that it wants.
        """
        routes = self._list_routes(list(self._registry) if is_open else operations)
        reachable = routes if is_named else self._list_routes(self._registry)
        routes |= {
            name: ToolRoute(route.operation, reachable) for name, route in routes.items() if route.operation.runs_tools
        }
        hidden = {o.name: o.toolset for o in self._registry if o.name not in routes}
        definitions = [definition(operation, **listed) for operation in operations]
        return ToolChoice(routes, [*definitions, *self._extra], self._fixed, hidden, **own)

    def _list_routes(self, operations: Iterable[Operation]) -> dict[str, ToolRoute]:
        """Return the routes of tools by name and alias."""
        return {
            name: self._routes[operation.name]
            for operation in operations
            for name in (operation.name, *operation.aliases)
        }

    def choose_by_request(
        self, query: bytes, toolset: bytes | None = None, tools: bytes | None = None, *, token_argument: bool = False
    ) -> ToolChoice:
        """Return the choice made by a URL's query and the headers X-MCP-Toolset and X-MCP-Tools. The query wins.

        Raises:
            UnknownToolChoice: the exception has the valid names.
        """
        headers = {"toolset": toolset, "tools": tools}
        words = {name: value.decode("latin-1") for name, value in headers.items() if value is not None}
        words |= parse_qsl(query.decode("latin-1"), keep_blank_values=True)
        words = {name: value.strip().casefold() for name, value in words.items()}
        named = words.get("tools")
        is_full = _switched(words, "output_schema", ("on", "off"))
        short_meta = not _switched(words, "meta", ("full", "short"))
        names = [name.strip() for name in named.split(",") if name.strip()] if named is not None else None
        is_read = not _switched(words, "hints", ("spend", "read"))
        wants_views = _switched(words, "views", ("on", "auto"), default="auto")
        return self.choose(
            toolset=words.get("toolset"),
            tools=names,
            output_schema=is_full,
            short_meta=short_meta,
            token_argument=token_argument,
            is_read=is_read,
            wants_views=wants_views,
        )


def _switched(parameters: Mapping[str, str], name: str, words: tuple[str, str], *, default: str = "") -> bool:
    """Return True if a parameter has the first of its two values, which is the default of most. Raises
    UnknownToolChoice."""
    word = parameters.get(name, default or words[0])
    if word not in words:
        raise UnknownToolChoice(f"`{name}` must be {words[0]} or {words[1]}.", {name: list(words)})
    return word == words[0]
