"""Writes what each licence policy removes from premium tools: the sections of each tool without a source."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

LicenceTable: TypeAlias = Mapping[str, Mapping[str, Sequence[str]]]
"""The lost sections by policy and tool."""
POLICIES = ("any", "no_forbidden", "commercial")
WHAT = {
    "any": "every source is used; the operator decides whether its terms allow that",
    "no_forbidden": "without sources whose terms prohibit redistribution",
    "commercial": "only sources whose terms allow commercial use",
}
NOTHING = "nothing lost"


def write_plain_table(table: LicenceTable) -> str:
    """Return the table for a terminal: a paragraph per policy, a line per tool."""
    blocks = []
    for policy in POLICIES:
        lost = table.get(policy, {})
        lines = [f"  {tool:28} {_say(sections)}" for tool, sections in lost.items()]
        blocks.append("\n".join([f"sources.licence_policy={policy}: {WHAT[policy]}", *lines]))
    return "\n\n".join(blocks)


def write_markdown_table(table: LicenceTable) -> str:
    """Return the table as Markdown: a row per tool, a column per policy that excludes sources."""
    policies = POLICIES[1:]
    head = ["| Tool | " + " | ".join(f"lost with `{policy}`" for policy in policies) + " |", "|---|---|---|"]
    tools = dict.fromkeys(tool for policy in policies for tool in table.get(policy, {}))
    rows = [
        f"| `{tool}` | " + " | ".join(_say(table[policy].get(tool, ())) for policy in policies) + " |" for tool in tools
    ]
    return "\n".join([*head, *rows])


def _say(sections: Sequence[str]) -> str:
    return ", ".join(sections) or NOTHING
