"""Chooses sections of the style sheet, for what carries its rules itself: the first pages, and the views of MCP Apps.

A section begins with a comment at the start of a line, whose first words name it. The tokens stand before all.
"""

import functools
import re

from rest_bridge.static_files import TOKENS, read_static_files

FRAME = (
    "Every page",
    "frame",
    "text",
    "controls",
    "tables",
    "cards",
    "pictures",
    "narrow windows",
    "what works with scripts",
)
"""What every page needs."""
HOME = (*FRAME, "the home page", "what is below", "maps")
TOOL = (*FRAME, "maps", "the page of a tool")

STYLE = "css/style.css"
_REMARK = re.compile(r" */\*.*?\*/\n?")  # also at the end of a line
_SPACE = re.compile(r"""("[^"]*")|(?<=[:;,{}>]) +|\n *| +(?=[{}>])""")  # outside of strings


def choose_sections(names: tuple[str, ...]) -> str:
    """Return the tokens and the named sections, in the order of the style sheet, without their comments.

    Raises ValueError for a name that no section has.
    """
    sections = re.split(r"^/\*", _read(STYLE), flags=re.MULTILINE)[1:]
    if missing := [name for name in names if not any(section.lstrip().startswith(name) for section in sections)]:
        raise ValueError(f"The style sheet has no section {missing}.")
    chosen = [section.partition("*/")[2] for section in sections if section.lstrip().startswith(names)]
    return _REMARK.sub("", _read(TOKENS)) + _REMARK.sub("", "".join(chosen))


@functools.cache
def write_style(names: tuple[str, ...]) -> str:
    """Return the named sections as a page carries them: without the spaces that only people need."""
    return _SPACE.sub(lambda found: found[1] or "", choose_sections(names))


def _read(name: str) -> str:
    return read_static_files()[name].body.decode()
