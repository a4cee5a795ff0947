"""What licence policies withhold from premium tools, and what brings it back: contracts and servers of the operator.

`toolserver docs` finds it by composing every premium answer on the simulated world; `catalog/licences.json` has the
result, by which the service says before a payment what an answer lacks.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from toolserver.registry.registry import Operation, Registry, Tier
from toolserver.registry.site_facts import price
from toolserver.registry.terms import TermsReading
from toolserver.upstream.rights import BARRED, Rights, publisher_of
from toolserver.upstream.source import Licence, Source

Route: TypeAlias = Sequence[str]
"""What an operator needs to get a section back, all of it: names of sources to have a contract for, or of settings."""

POLICIES = ("any", "no_forbidden", "commercial")
WHAT = {
    "any": "every source is used; the operator decides whether its terms allow that",
    "no_forbidden": "without sources whose terms prohibit redistribution",
    "commercial": "only sources whose terms allow commercial use",
}
NOTHING, WHOLE = "nothing lost", "the whole answer"
REDUCED = 1  # credits a call of a tool that lacks more than half of its sections


@dataclass(frozen=True, slots=True)
class LicenceTable:
    """The sections of each premium tool, and those lost by policy and tool, each with the routes that restore it."""

    sections: Mapping[str, Sequence[str]] = field(default_factory=dict)
    lost: Mapping[str, Mapping[str, Mapping[str, Sequence[Route]]]] = field(default_factory=dict)

    def find_lost(self, tool: str, rights: Rights) -> list[str]:
        """Return the sections that a tool lacks on a service with these rights."""
        return [
            section
            for section, routes in self.lost.get(rights.policy, {}).get(tool, {}).items()
            if not any(all(_has(rights, name) for name in route) for route in routes)
        ]

    def list_lost(self, rights: Rights) -> dict[str, list[str]]:
        """Return the sections that each tool lacks, for tools that lack any."""
        return {tool: lost for tool in self.sections if (lost := self.find_lost(tool, rights))}

    def say_lost(self, tool: str, lost: Sequence[str]) -> str:
        """Return the lost sections of a tool in words."""
        if lost and len(lost) == len(self.sections[tool]):
            return WHOLE
        return ", ".join(lost) or NOTHING


def _has(rights: Rights, name: str) -> bool:
    return name in rights.keys or rights.find_contract(name) is not None


def withhold(registry: Registry, table: LicenceTable, rights: Rights) -> Registry:
    """Return the registry as a service with these rights offers it.

    A tool that lacks sections says so in its description. If it lacks more than half of them,
    a call costs one credit; if it lacks all, no list contains it.
    """
    lost = {name: sections for name, sections in table.list_lost(rights).items() if registry.get(name)}
    if not lost:
        return registry
    changed = {name: _withhold(registry[name], table, sections) for name, sections in lost.items()}
    empty = [name for name, sections in lost.items() if len(sections) == len(table.sections[name])]
    return registry.replace(changed).unlist(empty)


def _withhold(operation: Operation, table: LicenceTable, sections: Sequence[str]) -> Operation:
    mostly = len(sections) > len(table.sections[operation.name]) / 2
    credits = min(operation.credits, REDUCED) if mostly else operation.credits
    return replace(operation, withheld=tuple(sections), credits=credits)


def write_plain_table(table: LicenceTable) -> str:
    """Return the table for a terminal: a paragraph per policy, a line per tool."""
    blocks = []
    for policy in POLICIES:
        lines = [
            f"  {tool:28} {table.say_lost(tool, table.find_lost(tool, Rights(policy)))}" for tool in table.sections
        ]
        blocks.append("\n".join([f"sources.licence_policy={policy}: {WHAT[policy]}", *lines]))
    return "\n\n".join(blocks)


def write_markdown_table(table: LicenceTable) -> str:
    """Return the table as Markdown: a row per tool, a column per policy that excludes sources."""
    policies = POLICIES[1:]
    head = ["| Tool | " + " | ".join(f"lost with `{policy}`" for policy in policies) + " |", "|---|---|---|"]
    rows = []
    for tool in table.sections:
        cells = [table.say_lost(tool, table.find_lost(tool, Rights(policy))) for policy in policies]
        rows.append(f"| `{tool}` | " + " | ".join(cells) + " |")
    return "\n".join([*head, *rows])


def write_routes(table: LicenceTable, registry: Registry, readings: Mapping[str, TermsReading]) -> str:
    """Return as Markdown what `commercial` withholds: a row per section, with what brings it back and on what terms."""
    return "\n".join(_write_routes(table, registry, readings))


def _write_routes(table: LicenceTable, registry: Registry, readings: Mapping[str, TermsReading]) -> Iterator[str]:
    sources = {source.name: source for source in registry.sources}
    yield "| Tool, price | Section | With a setting | With a contract about one of | Evidence, and its date |"
    yield "|---|---|---|---|---|"
    for operation in registry:
        sections = table.lost.get("commercial", {}).get(operation.name)
        if sections is None:
            continue
        offered = f"`{operation.name}`, {price(operation)}"
        kept = [f"`{name}`" for name in table.sections[operation.name] if name not in sections]
        yield f"| {offered} | {', '.join(kept) or 'none'} | not needed | not needed | [below](#evidence) |"
        for section, routes in sections.items():
            settings = [f"`{route[0]}`" for route in routes if route[0] not in sources]
            contracts = [
                " and ".join(_link(sources[name]) for name in route) for route in routes if route[0] in sources
            ]
            publishers = dict.fromkeys(publisher_of(name) for route in routes for name in route if name in sources)
            evidence = [_date(readings[name]) for name in publishers if name in readings]
            cells = (", ".join(cell) or "–" for cell in (settings, contracts, evidence))
            yield f"| `{operation.name}` | `{section}` | {' | '.join(cells)} |"


def write_readings(registry: Registry, readings: Mapping[str, TermsReading]) -> str:
    """Return as Markdown what is known of the terms of each publisher that a premium tool reads."""
    licences: dict[str, list[Licence]] = {}
    for source in Registry(list_premium(registry)).sources:
        licences.setdefault(publisher_of(source.name), []).append(source.licence)
    rows = ["| Publisher | Class | What its terms say | Evidence | Of |", "|---|---|---|---|---|"]
    for name in sorted(licences.keys() & readings.keys(), key=str.lower):
        reading, classes = readings[name], dict.fromkeys(licence.kind for licence in licences[name])
        terms = next((licence.terms_url for licence in licences[name] if licence.terms_url), None)
        linked = f"[{reading.evidence}]({terms})" if terms else reading.evidence
        rows.append(
            f"| {name} | {', '.join(classes).replace('_', '-')} | {reading.says} | {linked} | {reading.read_on} |"
        )
    return "\n".join(rows)


def _date(reading: TermsReading) -> str:
    return f"{reading.publisher}: {reading.evidence}, {reading.read_on}"


def _link(source: Source[Any, Any]) -> str:
    name, terms = f"`{source.name}`", source.licence.terms_url
    also = " (forbidden)" if source.licence.kind in BARRED["no_forbidden"] else ""
    return f"[{name}]({terms}){also}" if terms else f"{name}{also}"


def list_premium(registry: Registry) -> list[Operation]:
    """Return the tools that the table is about."""
    return [operation for operation in registry if operation.tier is Tier.PREMIUM]
