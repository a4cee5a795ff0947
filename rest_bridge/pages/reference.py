"""/docs: every tool with its arguments, the fields of its answer, its sources and its freshness."""

from collections.abc import Iterable, Iterator
from typing import Any

from rest_bridge.pages.html import Html, joined, prose, table, tag
from rest_bridge.pages.layout import link, page
from toolserver.documents import (
    FREE_LICENCE,
    PREMIUM_LICENCE,
    TIER_HEADINGS,
    Document,
    Facts,
    auth,
    duration,
    paragraphs,
    price,
    sells,
)
from toolserver.fields import Row, payload_rows, rows
from toolserver.registry import Operation, Registry
from toolserver.upstream.source import Source

_ENVELOPE = (
    ("source", "The host name of this service, for attribution"),
    ("endpoint", "The name of the endpoint"),
    ("updated_at", "When the oldest part of the data was fetched; null when it never was"),
    ("data", "The payload, described with each tool; null only when no source has ever answered"),
    ("stale", "Whether a source could not be refreshed in time"),
    ("warning", "What is missing or older than it should be; absent when nothing is"),
    ("_meta", "Sources with status, times and licence; attribution; whether third-party text is inside"),
)
_LICENCE_WORDS = {
    "yes": "free to use",
    "attribution": "free to use with attribution",
    "non_commercial": "non-commercial use",
    "unclear": "terms not clear",
    "no": "redistribution not allowed",
}


def reference(registry: Registry, facts: Facts) -> Document:
    return page(
        registry,
        facts,
        "/docs",
        "Tool reference",
        tag("h1", "Tool reference"),
        tag("p", "Generated from the definitions that the service runs on. ", *_elsewhere(facts), class_="lead"),
        tag("ul", *(_entry(operation) for operation in registry), class_="columns"),
        tag("h2", "Reading an answer", id="answers"),
        tag("p", prose("Most free tools answer with these members. Times are ISO 8601 in UTC; members may be added.")),
        table(("Member", "Meaning"), ((tag("code", name), meaning) for name, meaning in _ENVELOPE)),
        *_sections(registry, facts),
        *_licence(registry),
    )


def _elsewhere(facts: Facts) -> Iterator[object]:
    yield "Also as "
    yield link(facts, "/openapi.json", "OpenAPI")
    yield ", "
    yield link(facts, "/api/llm-tools", "tool definitions")
    yield " and "
    yield link(facts, "/llms-full.txt", "text")
    yield "."


def _entry(operation: Operation) -> Html:
    return tag("li", tag("a", operation.name, href=f"#{operation.name}"))


def _sections(registry: Registry, facts: Facts) -> Iterator[Html]:
    for tier, heading in TIER_HEADINGS.items():
        listed = [operation for operation in registry if operation.tier is tier]
        if listed:
            yield tag("h2", heading, id=tier.value)
            yield from (_tool(operation, facts) for operation in listed)


def _tool(operation: Operation, facts: Facts) -> Html:
    return tag(
        "article",
        tag("h3", operation.name),
        *(tag("p", prose(paragraph)) for paragraph in paragraphs(operation)),
        tag("dl", *_facts_of(operation, facts)),
        *_arguments(rows(operation.input_schema)),
        _fields(payload_rows(operation)),
        _sources(operation.sources),
        id=operation.name,
    )


def _facts_of(operation: Operation, facts: Facts) -> Iterator[Html]:
    call = f"{operation.method} {facts.url(operation.path)}"
    told: dict[str, object] = {"Call": tag("code", call), "Price": _price(operation)}
    if operation.longest_ttl:
        told["Fresh for"] = f"{duration(operation.longest_ttl)}: until then every call gets the same answer"
    if operation.sla_s:
        told["Stale after"] = f"{duration(operation.sla_s)}; a stale answer is not charged"
    for name, value in told.items():
        yield tag("dt", name)
        yield tag("dd", value)


def _price(operation: Operation) -> str:
    return f"{price(operation)}, with a token" if auth(operation) == "bearer" else price(operation)


def _arguments(listed: list[Row]) -> Iterator[Html]:
    if listed:
        rows = ([tag("code", row.path), row.kind, _default(row), row.description] for row in listed)
        shown = table(("Name", "Kind", "Default", "Meaning"), rows)
        yield tag("details", tag("summary", f"Arguments ({len(listed)})"), shown, open=True)


def _default(row: Row) -> object:
    if row.default is None:
        return "required" if row.required else ""
    return tag("code", row.default)


def _fields(listed: list[Row]) -> Html:
    shown = table(("Name", "Kind", "Meaning"), ([tag("code", row.path), row.kind, row.description] for row in listed))
    return tag("details", tag("summary", f"Fields of the answer ({len(listed)})"), shown)


def _sources(sources: Iterable[Source[Any, Any]]) -> Html:
    """Where the data come from, in order of use."""
    found = {source.name: source for source in sources}
    if not found:
        return Html("")
    listed = (
        [tag("code", source.name), _credit(source), _LICENCE_WORDS[source.licence.kind], duration(source.fresh_s)]
        for source in found.values()
    )
    shown = table(("Source", "Attribution", "Licence", "Fresh for"), listed)
    return tag("details", tag("summary", f"Sources, in order of use ({len(found)})"), shown)


def _credit(source: Source[Any, Any]) -> object:
    licence = source.licence
    return tag("a", licence.attribution, href=licence.terms_url) if licence.terms_url else licence.attribution


def _licence(registry: Registry) -> list[Html]:
    texts = [FREE_LICENCE, *([PREMIUM_LICENCE] if sells(registry) else [])]
    return [tag("h2", "Licence of the data", id="licence"), joined(tag("p", prose(words)) for words in texts)]
