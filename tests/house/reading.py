"""The walks of docs/reading-the-code.md: each stop is a link to a function, in the order in which a call reaches them.

`python -m tests.house --reading` points the links at the lines where the functions stand now.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.architecture.code import ROOT

PAGE = ROOT / "docs" / "reading-the-code.md"
MOST_STOPS = {"A free call": 9, "A paid call": 12, "A webhook": 12}
TRACED = {"A free call": "free, composed", "A paid call": "paid, composed", "A webhook": "webhook fire"}
STOP = re.compile(r"^\d+\. \[`(?P<name>[\w.]+)`\]\(\.\./(?P<place>[\w/]+\.py)#L(?P<line>\d+)\)", re.MULTILINE)


@dataclass(frozen=True)
class Stop:
    """One stop of a walk: the function that the page names, and the line to which its link points."""

    place: str
    name: str
    line: int


def read_walks(text: str) -> dict[str, list[Stop]]:
    """The stops of each walk, by the heading above them."""
    sections = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    walks = {
        heading: [Stop(stop["place"], stop["name"], int(stop["line"])) for stop in STOP.finditer(section)]
        for heading, section in zip(sections[::2], sections[1::2], strict=True)
    }
    return {heading: stops for heading, stops in walks.items() if stops}


def lines_of_functions(place: str) -> dict[str, int]:
    """Where each function of a file stands, by its qualified name."""

    def visit(node: ast.AST, prefix: str) -> Iterator[tuple[str, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield prefix + child.name, child.lineno
                yield from visit(child, f"{prefix}{child.name}.")

    return dict(visit(ast.parse((ROOT / place).read_text(encoding="utf-8")), ""))


def point_links() -> None:
    """Write the page with the lines where the functions stand now. Raises KeyError for a function that is gone."""

    def pointed(stop: re.Match[str]) -> str:
        line = lines_of_functions(stop["place"])[stop["name"]]
        return stop[0].removesuffix(f"{stop['line']})") + f"{line})"

    PAGE.write_text(STOP.sub(pointed, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
