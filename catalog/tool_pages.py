"""Writes the registry as Markdown files: one page per tool, and the table of sources."""

import json
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from toolserver.registry.field_table import Row, payload_rows, rows
from toolserver.registry.meaning import Meaning
from toolserver.registry.registry import Operation, Registry, Tier
from toolserver.registry.response_schema import frame_of
from toolserver.registry.site_facts import TIER_HEADINGS, auth, duration, price
from toolserver.registry.source_facts import FactsByName
from toolserver.upstream.source import Source

_KINDS = {
    "yes": "free",
    "attribution": "free with credit",
    "non_commercial": "non-commercial",
    "unclear": "unclear",
    "no": "bars redistribution",
}


def tool_page(operation: Operation, example: dict[str, Any] | None) -> str:
    """Return the page of one tool for people: arguments, answer, an example, sources, freshness, errors."""
    return "\n".join([*_page(operation, example), ""])


def _page(operation: Operation, example: dict[str, Any] | None) -> Iterator[str]:
    yield f"# {operation.name}"
    for paragraph in operation.text.split("\n\n"):
        yield ""
        yield from paragraph.splitlines()
    yield ""
    token = ", with a bearer token" if auth(operation) == "bearer" else ""
    yield f"`{operation.method} {operation.path}`, or the MCP tool `{operation.name}`; {price(operation)}{token}."
    if operation.longest_ttl:
        yield f"The answer stays the same bytes for {duration(operation.longest_ttl)}."
    yield from _table("Arguments", rows(operation.input_schema), required=True)
    beside = ", ".join(f"`{name}`" for name in frame_of(operation).names)
    yield from _table("Answer", payload_rows(operation), required=False, note=f"In addition: {beside}.")
    if example is not None:
        yield "\n## Example\n\nFrom the simulated world; lists are shortened.\n\n```json"
        yield json.dumps(example, indent=2, ensure_ascii=False)
        yield "```"
    if operation.sources:
        yield "\n## Sources, in order of use\n"
        for source in _once([*operation.sources, *operation.shipped]):
            yield f"- [`{source.name}`](../sources.md): {source.licence.attribution}, {_KINDS[source.licence.kind]}"
    yield "\n## Errors\n"
    yield from _errors(operation)


def tools_page(registry: Registry) -> str:
    """Return every tool in one table per tier, in registry order."""
    return "\n".join([*_tools(registry), ""])


def _tools(registry: Registry) -> Iterator[str]:
    yield "# Tools\n"
    yield "Call a tool over MCP by its name, and over REST by its path. The price is for one call; every caller gets"
    yield "the same answer for the time under `cache`. By default an agent sees the tools marked `*`; with"
    yield "`toolset=all` it sees the others too."
    for tier, heading in TIER_HEADINGS.items():
        listed = [operation for operation in registry if operation.tier is tier]
        if listed:
            yield f"\n## {heading}\n"
            yield "| tool | REST | price | cache | what |\n|---|---|---|---|---|"
            yield from map(_tool_row, listed)


def _tool_row(operation: Operation) -> str:
    core = " *" if operation.toolset == "core" else ""
    cached = duration(operation.longest_ttl) if operation.longest_ttl else "none"
    name, call = operation.name, f"`{operation.method} {operation.path}`"
    return f"| [`{name}`](tools/{name}.md){core} | {call} | {price(operation)} | {cached} | {operation.title} |"


def _table(heading: str, listed: list[Row], *, required: bool, note: str = "") -> Iterator[str]:
    yield f"\n## {heading}\n"
    if note:
        yield f"{note}\n"
    if not listed:
        yield "None."
        return
    yield "| name | type | meaning |\n|---|---|---|"
    for row in listed:
        default = "" if row.default is None else f"; default `{row.default}`"
        needed = " (required)" if required and row.required else ""
        kind, meaning = (text.replace("|", "\\|") for text in (row.kind, row.description))
        yield f"| `{row.path}` | {kind}{default}{needed} | {meaning} |"


def _errors(operation: Operation) -> Iterator[str]:
    yield "- [`invalid_arguments`](../errors.md) if an argument is not valid; nothing is run."
    if operation.tier is Tier.FREE:
        if operation.spaced:
            yield "- [`rate_limited`](../errors.md) if the same client calls again too soon."
        if operation.sources:
            yield (
                "- If a source is down: the next source, otherwise the last good answer with `stale: true`,"
                " otherwise null with a `warning`. The status is 200 in each case."
            )
    if operation.tier is Tier.PREMIUM:
        yield "- The [402 codes](../errors.md) without a token or credits."
        yield "- A section whose source is down is null and named in `warning`; a stale or empty answer is not charged."
        yield "- [`upstream_unavailable`](../errors.md) if nothing could be composed; not charged."


def sources_page(registry: Registry, facts: FactsByName = MappingProxyType({})) -> str:
    """Return the tables of sources: users, freshness, terms; and what is known of them outside our code."""
    return "\n".join([*_sources(registry), "", *_known(registry, facts), ""])


def _sources(registry: Registry) -> Iterator[str]:
    yield "# Sources\n"
    yield "Names are permanent: every answer has them in `_meta.sources[]`. `sources.licence_policy` selects sources:"
    yield "`any` all, `no_forbidden` all but those that prohibit redistribution, `commercial` only those free to use.\n"
    yield "| source | credit | terms | fresh | kept | used by |\n|---|---|---|---|---|---|"
    shipped = {source.name: source for operation in registry for source in operation.shipped}
    for source in sorted(_once([*registry.sources, *shipped.values()]), key=lambda source: source.name):
        users = [o for o in registry if any(source.name == used.name for used in (*o.sources, *o.shipped))]
        named = ", ".join(f"[{o.name}](tools/{o.name}.md)" for o in users)
        terms = _KINDS[source.licence.kind]
        linked = f"[{terms}]({source.licence.terms_url})" if source.licence.terms_url else terms
        fresh, usable = duration(source.fresh_s), duration(source.keep_s)
        if source.name in shipped:
            fresh, usable = "a copy that is shipped", "–"
        yield f"| `{source.name}` | {source.licence.attribution} | {linked} | {fresh} | {usable} | {named} |"


def _known(registry: Registry, facts: FactsByName) -> Iterator[str]:
    yield "## What is known of them\n"
    yield "The last proof that a source was alive is a body that somebody recorded, or a public report. A dash, or no"
    yield "row, means that nothing was found. `toolserver doctor` requests each source once and stores what it sees"
    yield "in the data directory; `/sources` then shows that as well. `alone` says why no other source can stand in.\n"
    yield "| source | last seen alive | by | announced, or no longer given | alone | note |\n|---|---|---|---|---|---|"
    names = {source.name for operation in registry for source in (*operation.sources, *operation.shipped)}
    for name in sorted(names & facts.keys()):
        of = facts[name]
        changes = [f"{each.kind}: {each.text}" for each in of.announced]
        changes += [f"`{each.member}`, last given {each.given_on}" for each in of.gone]
        day, by = (str(of.seen.on), of.seen.by) if of.seen else ("–", "–")
        cells = " | ".join(cell or "–" for cell in (day, by, "; ".join(changes), of.alone, of.note))
        yield f"| `{name}` | {cells} |"


def errors_page(problems: Mapping[str, Any]) -> str:
    """Return the table of error codes."""
    lines = ["# Errors", "", "Bodies are RFC 9457 problem documents; `error` has the code.", ""]
    lines += ["| code | status | meaning | what to do |", "|---|---|---|---|"]
    lines += [f"| `{p.code}` | {p.status} | {p.meaning} | {p.advice} |" for p in problems.values()]
    return "\n".join([*lines, ""])


def meanings_page(meanings: Iterable[Meaning]) -> str:
    """Return the table of who defines the words, classes and windows of answers, with their boundaries."""
    lines = [
        "# What words mean",
        "",
        "Who defines a word, class or window of an answer, and where each class begins. Every example is a row of a",
        "test. Where no publisher is named nobody defines all of it, and the choice is ours. A publisher without",
        "quoted words is known to define the rule, but we have no text of theirs. `toolserver docs` writes",
        "this table from the code that decides.",
        "",
        "| field | rule | defined by | examples |",
        "|---|---|---|---|",
    ]
    for m in meanings:
        rows = ", ".join(f"{_plain(given)} → {_plain(result)}" for given, result in m.rows)
        lines.append(f"| `{m.field}` | {m.rule} | {_defined_by(m)} | {rows} |")
    return "\n".join([*lines, ""])


def _defined_by(meaning: Meaning) -> str:
    """Return who defined a rule: with quoted words, without any, or ourselves."""
    by = meaning.definition
    if by is None:
        return "our choice"
    name = f"[{by.publisher}]({by.link})" if by.link else by.publisher
    return f'{name}, read {by.read_on}: "{by.words}"' if by.words else f"{name}, without a quotation"


def _plain(value: object) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _once(sources: Any) -> list[Source[Any, Any]]:
    """Return sources with each public name once."""
    by_name: dict[str, Source[Any, Any]] = {}
    for source in sources:
        by_name.setdefault(source.name, source)
    return list(by_name.values())
