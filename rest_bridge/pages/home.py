"""The home page: what this is, how to connect, every tool at a glance."""

from collections.abc import Sequence
from itertools import groupby

from rest_bridge.pages.html import Html, joined, prose, table, tag
from rest_bridge.pages.layout import link, page
from toolserver.documents import TIER_HEADINGS, Document, Facts, Snippet, auth, duration, price, sells
from toolserver.registry import Operation, Registry

_PROMISES = (
    "Every answer names its sources, when each was read, and under which licence.",
    "When a source is down, another takes its place; when none answers, you get the last good data, marked `stale`.",
    "A missing value is `null` with a warning. A number is never invented, and a failure never looks like a calm day.",
    "Within the freshness of a tool every call gets the same bytes: cheap to poll, with `ETag` and `304`.",
    "The same JSON over MCP and REST; definitions for function calling come from the same registry.",
)


def home(registry: Registry, facts: Facts, snippets: Sequence[Snippet] = ()) -> Document:
    """`snippets`: what to paste where, one per program and transport."""
    return page(
        registry,
        facts,
        "/",
        "Live data for AI agents",
        tag("h1", "Live data for AI agents"),
        tag("p", f"{len(registry)} typed tools over MCP, REST and function calling. {_keys(registry)}", class_="lead"),
        _try(registry, facts),
        _connect(facts, snippets),
        tag("h2", "Tools", id="tools"),
        *_tools(registry, facts, priced=sells(registry)),
        tag("h2", "What you can rely on"),
        tag("ul", *(tag("li", prose(promise)) for promise in _PROMISES)),
        _limits(facts),
    )


def _keys(registry: Registry) -> str:
    return "The free ones need no key." if sells(registry) else "No key needed."


def _try(registry: Registry, facts: Facts) -> Html:
    """A call to copy: the first tool that needs no arguments and no token."""
    easy = [o for o in registry if o.reads_only and auth(o) == "none" and not o.input_schema.get("required")]
    if not easy:
        return Html("")
    sourced = [o for o in easy if o.sources and o.toolset == "core"] or easy
    return joined([tag("h2", "Try it"), tag("pre", tag("code", f"curl {facts.url(sourced[0].path)}"))])


def _connect(facts: Facts, snippets: Sequence[Snippet]) -> Html:
    if not snippets:
        return Html("")
    hosts = [(host, list(listed)) for host, listed in groupby(snippets, key=lambda snippet: snippet.host)]
    told = ("The MCP address is ", tag("code", facts.url("/api/mcp")), "; it also runs on your machine over stdio.")
    shown = (_host(host, listed, first=index == 0) for index, (host, listed) in enumerate(hosts))
    return joined([tag("h2", "Connect", id="connect"), tag("p", *told), *shown])


def _host(host: str, snippets: Sequence[Snippet], *, first: bool) -> Html:
    shown = [part for snippet in snippets for part in _snippet(snippet)]
    return tag("details", tag("summary", host), *shown, open=first)


def _snippet(snippet: Snippet) -> list[Html]:
    how = "Over HTTP" if snippet.transport == "http" else "On your machine (stdio)"
    install = [" · ", tag("a", "install with one click", href=snippet.link)] if snippet.link else []
    return [tag("p", f"{how}: {snippet.where}", *install), tag("pre", tag("code", snippet.text))]


def _tools(registry: Registry, facts: Facts, *, priced: bool) -> list[Html]:
    """A table per tier; without a column for the price where everything is free."""
    headings = ("Tool", "What you get", *(("Price",) if priced else ()), "Fresh for", "REST")
    shown = []
    for tier, heading in TIER_HEADINGS.items():
        listed = [operation for operation in registry if operation.tier is tier]
        if listed:
            rows = (_row(operation, facts, priced=priced) for operation in listed)
            shown += [tag("h3", heading), table(headings, rows)]
    return shown


def _row(operation: Operation, facts: Facts, *, priced: bool) -> list[object]:
    call = f"{operation.method} {operation.path}"
    live = operation.reads_only and auth(operation) == "none" and not operation.input_schema.get("required")
    return [
        link(facts, f"/docs#{operation.name}", operation.name),
        operation.description,
        *([price(operation)] if priced else []),
        tag("span", duration(operation.longest_ttl), class_="short") if operation.longest_ttl else "",
        link(facts, operation.path, operation.path) if live else tag("code", call),
    ]


def _limits(facts: Facts) -> Html:
    figures = facts.limits
    return tag(
        "p",
        f"Free tools: {figures.free_per_day:,} calls a day, and one call per endpoint every {figures.free_spacing_s} s."
        " Asking more often brings the same data.",
        class_="soft",
    )
