"""Serve skills: short instructions for agents, one Markdown file each, by `skills/list`, `skills/get` and their URIs.

Digests cover the exact bytes that are served, so hosts can tell whether a file is the one that was listed.
"""

import hashlib
from collections.abc import Collection
from importlib.resources import files
from typing import Any, NamedTuple

FILE = "SKILL.md"
BUY_CREDITS, VERIFY_A_RECEIPT, WATCH_SOMETHING = "buy-credits", "verify-a-receipt", "watch-something"


class Skill(NamedTuple):
    """A skill: the text of its file, and what stands between the dashes at the file's top."""

    name: str
    text: str
    frontmatter: dict[str, str]

    @property
    def uri(self) -> str:
        """The URI of its file."""
        return f"skill://{self.name}/{FILE}"

    def describe(self) -> dict[str, Any]:
        """Return its entry of `skills/list`."""
        written = self.text.encode()
        digest = f"sha256:{hashlib.sha256(written).hexdigest()}"
        return {
            "uri": self.uri,
            "frontmatter": self.frontmatter,
            "resources": [{"uri": self.uri, "digest": digest, "size": len(written)}],
        }


def read_skills(names: Collection[str]) -> dict[str, Skill]:
    """Read the skills of these names from the package, by URI."""
    folder = files("toolserver.mcp").joinpath("agent_skills")
    skills = (_parse_skill(name, folder.joinpath(name, FILE).read_text(encoding="utf-8")) for name in names)
    return {skill.uri: skill for skill in skills}


def _parse_skill(name: str, text: str) -> Skill:
    lines = text.split("---\n")[1].splitlines()
    return Skill(name, text, dict(line.split(": ", 1) for line in lines))
