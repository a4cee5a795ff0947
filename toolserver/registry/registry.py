"""Collects the tools of the service: typed async functions become operations.

A tool's signature is its input schema, its return model the output schema, and the first
paragraph of its docstring the description for models, with the price of a call and the
lifetime of an answer added in words. MCP, REST, catalog, OpenAPI, docs and the command line
are generated from this list.
"""

import importlib
import importlib.util
import inspect
import pkgutil
import typing
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from types import ModuleType
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, create_model

from toolserver.core.models import TopLevel
from toolserver.errors import ToolserverError
from toolserver.money.purchases.credit_price import ATOMIC, ATOMIC_PER_CREDIT
from toolserver.registry import json_schema
from toolserver.registry.display import CardValue, Picture
from toolserver.registry.event_kind import EventKind
from toolserver.registry.spelling import accept_any_case
from toolserver.upstream.source import Source

F = TypeVar("F", bound=Callable[..., Awaitable[BaseModel]])
Toolset = Literal["core", "all"]
TOOLSETS = typing.get_args(Toolset)

FREE_SIBLING = "free_sibling"
"""The tag of a premium tool that names its nearest free tool."""

HINT_WORDS = 12
"""The most words of a `search_hint`: every tool list repeats them."""

_MARK = "__operation__"


class Tier(StrEnum):
    FREE = "free"
    PREMIUM = "premium"
    PAYMENT = "payment"
    ACCOUNT = "account"


_ORDER = list(Tier)


@dataclass(frozen=True, eq=False)
class Operation:
    """One tool: everything that a face needs to show it and the pipeline needs to run it.

    `ttl_s` is how long an answer stays the same bytes; it may depend on the arguments. `sla_s` is the age from which a
    used value counts as stale; for free tools it is the TTL. `distinct` is (arguments, quota, seconds): how many
    different values of the arguments that reach an upstream one client may request. `quotas` are (calls, seconds) that
    payment and account tools allow a client in addition to their shared limit. `warm` are reads that the service
    repeats automatically, one every ten minutes, so that no call has to wait for all of them. `follow_s` is the
    interval at which an answer is recomposed in the background, for ten minutes after the last call, so that changes
    between calls are seen. `shipped` are the sources of copies that come with the code: answers name them, but they are
    not queried. `status` is the HTTP status of a success; names in braces in `path` are arguments in the path.
    `headline` and `pictures` say how pages show an answer. `changes_nothing` says that a POST has no effect that a
    person would want to approve, such as a quote.

    `search_hint` are other words for what the tool answers, at most HINT_WORDS of them, for searches over many tools.
    `always_loaded` asks hosts that show models only what they searched for to show this tool always. `longest_chars` is
    the size of its longest answer, if hosts would take that for too long to show. `runs_tools` says that on MCP it
    takes an argument `call` and answers with the answer of another free tool. `withheld` are the sections that are
    always null on this service, because the licences of their sources do not allow it. `events` are the kinds of
    events to which clients of MCP Events can subscribe.
    """

    name: str
    title: str
    docstring: str
    function: Callable[..., Awaitable[BaseModel]]
    arguments: type[BaseModel]
    result: type[BaseModel]
    path: str
    method: str = "GET"
    tier: Tier = Tier.FREE
    credits: int = 0
    toolset: Toolset = "all"
    ttl_s: float | Callable[[Any], float] = 0
    sla_s: float | None = None
    stale_share: float = 0.0
    deadline_s: float = 12.0
    aliases: tuple[str, ...] = ()
    sources: tuple[Source[Any, Any], ...] = ()
    shipped: tuple[Source[Any, Any], ...] = ()
    spaced: bool = True
    follow_s: float | None = None
    distinct: tuple[tuple[str, ...], int, float] | None = None
    quotas: tuple[tuple[int, float], ...] = ()
    warm: tuple[tuple[Source[Any, Any], Any], ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    headline: CardValue | None = None
    pictures: tuple[Picture, ...] = ()
    changes_nothing: bool = False
    search_hint: str = ""
    always_loaded: bool = False
    longest_chars: int | None = None
    runs_tools: bool = False
    withheld: tuple[str, ...] = ()
    events: tuple[EventKind, ...] = ()

    @cached_property
    def endpoint(self) -> str:
        """The name in answers: the end of the path for free operations, the whole path for the others."""
        return self.path.removeprefix("/api/") if self.tier is Tier.FREE else self.path

    @property
    def enveloped(self) -> bool:
        """True if the result is inside `data`."""
        return self.tier is Tier.FREE and not issubclass(self.result, TopLevel)

    @property
    def reads_only(self) -> bool:
        return self.method == "GET"

    @property
    def takes_body(self) -> bool:
        """True if its arguments, except those in the path, are in the body of a request."""
        return self.method in ("POST", "PATCH")

    @property
    def personal(self) -> bool:
        """True if its answers are for one caller: never cached, and without an envelope."""
        return self.tier in (Tier.PAYMENT, Tier.ACCOUNT)

    @property
    def needs_token(self) -> bool:
        """True if it needs a bearer token: all tools except free ones and the two that buy a token."""
        return self.tier in (Tier.PREMIUM, Tier.ACCOUNT) or (self.tier is Tier.PAYMENT and self.reads_only)

    def ttl(self, arguments: BaseModel) -> float:
        """Return the seconds for which an answer to these arguments stays the same bytes."""
        return self.ttl_s(arguments) if callable(self.ttl_s) else self.ttl_s

    @property
    def longest_ttl(self) -> float:
        """The TTL for default arguments, for documents that show one number."""
        return self.ttl(self.arguments.model_construct()) if callable(self.ttl_s) else self.ttl_s

    @cached_property
    def fresh_s(self) -> tuple[float, float]:
        """The shortest and the longest TTL, in seconds, over the words that arguments may be."""
        properties = json_schema.input_schema(self.arguments)["properties"]
        words = [{name: word} for name, argument in properties.items() for word in argument.get("enum", ())]
        ttls = [self.ttl(self.arguments.model_construct(**chosen)) for chosen in ({}, *words)]
        return min(ttls), max(ttls)

    @cached_property
    def text(self) -> str:
        """The docstring, with the terms of a call in its first paragraph: before the summary if it costs credits."""
        summary, separator, rest = self.docstring.partition("\n\n")
        terms = describe_terms(self.tier, self.credits, *self.fresh_s)
        if self.withheld:
            terms += f" {self.lack}"
        return (f"{terms} {summary}" if self.credits else f"{summary} {terms}") + separator + rest

    @property
    def lack(self) -> str:
        """What is always null in the answer, as one sentence; empty if nothing is."""
        return f"Always null here, for licence reasons: {', '.join(self.withheld)}." if self.withheld else ""

    @cached_property
    def description(self) -> str:
        """The first paragraph of the text in one line: what models and people read first, and often alone."""
        return " ".join(self.text.partition("\n\n")[0].split())

    @cached_property
    def input_schema(self) -> json_schema.Schema:
        return json_schema.input_schema(self.arguments)

    @cached_property
    def data_schema(self) -> json_schema.Schema:
        """The schema of the function's result, without the envelope."""
        return json_schema.output_schema(self.result)


def tool(
    *,
    path: str,
    title: str,
    ttl_s: float | Callable[[Any], float] = 0,
    tier: Tier = Tier.FREE,
    sources: Iterable[Source[Any, Any]] = (),
    **more: Any,
) -> Callable[[F], F]:
    """Return a decorator that makes an async function an operation. `more` takes any other field of `Operation`.

    The function's first parameter is the context; the others, with their defaults and
    `Field`s, are the tool's arguments. An argument named like a Python keyword has an
    underscore at its end (`from_` takes `from`). The function returns a pydantic model: the
    `data` of a free answer, or a `TopLevel` payload.
    """

    def register(function: F) -> F:
        operation = Operation(
            name=function.__name__,
            title=title,
            docstring=inspect.cleandoc(function.__doc__ or ""),
            function=function,
            arguments=_arguments_model(function),
            result=typing.get_type_hints(function)["return"],
            path=path,
            tier=tier,
            ttl_s=ttl_s,
            sources=tuple(sources),
            **more,
        )
        setattr(function, _MARK, operation)
        return function

    return register


def describe_terms(tier: Tier, credits: int, shortest_s: float, longest_s: float) -> str:
    """Return the price of a call, and for how long an answer is fresh and stays the same, as one sentence.

    Hosts show models and people descriptions, and many of them nothing else of a definition.
    """
    terms = [_price(credits) if credits else "Free" if tier is Tier.FREE else "Costs no credits"]
    if longest_s:
        terms.append(f"fresh for {'' if shortest_s == longest_s else 'at most '}{_duration(longest_s)}")
    return f"{'; '.join(terms)}."


def _price(credits: int) -> str:
    usd = Decimal(credits * ATOMIC_PER_CREDIT) / ATOMIC
    cents = usd.quantize(Decimal("0.01"))
    return f"Costs {credits} credit{'' if credits == 1 else 's'} ({cents if cents == usd else usd} USD) a call"


def _duration(seconds: float) -> str:
    """Return a time in words, such as `60 seconds`, `5 minutes` or `1 hour`."""
    if seconds < 120 or seconds % 60:
        return f"{seconds:g} seconds"
    if seconds < 3600 or seconds % 3600:
        return f"{seconds / 60:g} minutes"
    return "1 hour" if seconds == 3600 else f"{seconds / 3600:g} hours"


def operation_of(function: Callable[..., Any]) -> Operation:
    """Return the operation of a decorated function."""
    return typing.cast("Operation", getattr(function, _MARK))


def _arguments_model(function: Callable[..., Any]) -> type[BaseModel]:
    hints = typing.get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {
        name.removesuffix("_"): (
            accept_any_case(hints[name]),
            ... if parameter.default is parameter.empty else parameter.default,
        )
        for name, parameter in list(inspect.signature(function).parameters.items())[1:]
    }
    config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True, defer_build=True)
    return create_model(f"{function.__name__}_arguments", __config__=config, **fields)


class ToolsMissing(ToolserverError):
    """A package of tools that the settings name, or an installed package announces, is not installed."""


class Registry:
    """Operations by name, alias and path, in one fixed order: tier, core first, name.

    Operations in `unlisted` can be called, but no list of tools contains them, because this
    service does not support them.
    """

    def __init__(self, operations: Iterable[Operation], *, unlisted: Iterable[str] = ()) -> None:
        self._unlisted = frozenset(unlisted)
        ordered = sorted(operations, key=lambda o: (_ORDER.index(o.tier), o.toolset != "core", o.name))
        self._by_name: dict[str, Operation] = {}
        self._by_alias: dict[str, Operation] = {}
        self.by_route: dict[tuple[str, str], Operation] = {}
        for operation in ordered:
            self._add(operation)

    @classmethod
    def load(cls, *packages: str) -> "Registry":
        """Import every module of the packages' tool groups, and return a registry of the decorated functions.

        Raises:
            ToolsMissing: there is no such package.
        """
        operations: dict[str, Operation] = {}
        for module in (m for package in packages for m in _tool_modules(package)):
            for value in vars(module).values():
                operation = getattr(value, _MARK, None)
                if isinstance(operation, Operation) and operation.function.__module__ == module.__name__:
                    operations[operation.name] = operation
        return cls(operations.values())

    def _add(self, operation: Operation) -> None:
        taken = [*self._by_name, *self._by_alias]
        for name in (operation.name, *operation.aliases):
            if name in taken:
                raise ValueError(f"two tools are called {name}")
        route = (operation.method, operation.path)
        if route in self.by_route:
            raise ValueError(f"two tools answer {operation.method} {operation.path}")
        self._by_name[operation.name] = operation
        self._by_alias |= dict.fromkeys(operation.aliases, operation)
        self.by_route[route] = operation

    def get(self, name: str) -> Operation | None:
        """Return the operation with that name or alias, or None."""
        return self._by_name.get(name) or self._by_alias.get(name)

    def chosen(self, *, toolset: str | None = None, tools: Iterable[str] | None = None) -> "list[Operation]":
        """Return the operations that a client sees: the named ones, a toolset, or the core, in registry order.

        Raises:
            KeyError: an unknown toolset or tool.
        """
        if toolset not in (None, *TOOLSETS):
            raise KeyError(toolset)
        if tools is not None:
            names = {self[name].name for name in tools}
            return [o for o in self if o.name in names]
        return [o for o in self.listed if toolset == "all" or o.toolset == "core"]

    @property
    def listed(self) -> list[Operation]:
        """Return the operations that lists of tools contain."""
        return [operation for operation in self if operation.name not in self._unlisted]

    def replace(self, changed: Mapping[str, Operation]) -> "Registry":
        """Return a registry of the same operations, with some of them changed, by name."""
        return Registry((changed.get(one.name, one) for one in self), unlisted=self._unlisted)

    def unlist(self, names: Iterable[str]) -> "Registry":
        """Return a registry of the same operations, with these unlisted too."""
        return Registry(self, unlisted=[*self._unlisted, *names])

    def __getitem__(self, name: str) -> Operation:
        operation = self.get(name)
        if operation is None:
            raise KeyError(name)
        return operation

    def __iter__(self) -> Iterator[Operation]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    @property
    def sources(self) -> list[Source[Any, Any]]:
        """Return every source that a tool names, each once, by public name."""
        by_identity = {id(source): source for operation in self for source in operation.sources}
        return sorted(by_identity.values(), key=lambda source: source.name)


def _tool_modules(package: str) -> Iterator[ModuleType]:
    """Yield the modules of a package's tool groups (`free`, `premium`, …), or of the package if it has none.

    Raises:
        ToolsMissing: there is no such package.
    """
    try:
        root = importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{package}.".startswith(f"{error.name}."):
            raise  # it is there, and imports something that is not
        raise ToolsMissing(
            f"there is no Python package {package}: install it beside toolserver, or correct the setting tools"
            " (TOOLSERVER_TOOLS)"
        ) from None
    tiers = [tier for tier in Tier if _exists(f"{package}.{tier}")]
    groups = [f"{package}.{tier}" for tier in tiers] if tiers else [root.__name__]
    for group in groups:
        module = importlib.import_module(group)
        yield module
        for info in pkgutil.iter_modules(getattr(module, "__path__", [])):
            yield importlib.import_module(f"{group}.{info.name}")


def _exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # its parent is a plain module
        return False
