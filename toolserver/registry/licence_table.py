"""What each licence policy leaves of what is sold: for every premium tool the sections that have no source left."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

LicenceTable: TypeAlias = Mapping[str, Mapping[str, Sequence[str]]]
"""By policy and tool the sections that are lost."""
POLICIES = ("any", "no_forbidden", "commercial")
WHAT = {
    "any": "every source is used: whether its terms allow that is for the operator to decide",
    "no_forbidden": "without sources whose terms bar passing their data on",
    "commercial": "only sources whose terms allow commercial use",
}
NOTHING = "nothing lost"


def write_plain_table(table: LicenceTable) -> str:
    """The table for a terminal: a paragraph a policy, a line a tool."""
    blocks = []
    for policy in POLICIES:
        lost = table.get(policy, {})
        lines = [f"  {tool:28} {_say(sections)}" for tool, sections in lost.items()]
        blocks.append("\n".join([f"sources.licence_policy={policy}: {WHAT[policy]}", *lines]))
    return "\n\n".join(blocks)


def write_markdown_table(table: LicenceTable) -> str:
    """The table as Markdown: a row a tool, a column a policy that bars something."""
    policies = POLICIES[1:]
    head = ["| Tool | " + " | ".join(f"lost with `{policy}`" for policy in policies) + " |", "|---|---|---|"]
    tools = dict.fromkeys(tool for policy in policies for tool in table.get(policy, {}))
    rows = [
        f"| `{tool}` | " + " | ".join(_say(table[policy].get(tool, ())) for policy in policies) + " |" for tool in tools
    ]
    return "\n".join([*head, *rows])


def _say(sections: Sequence[str]) -> str:
    return ", ".join(sections) or NOTHING
