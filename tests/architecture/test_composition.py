"""Tests run the service that the product runs: only `Service.build` puts its parts together."""

import ast
from pathlib import Path

from tests.architecture.code import ROOT

PARTS = {"Pipeline", "McpEndpoint", "Face"}
ALONE = {"tests/calls/test_sent_payments.py"}  # a pipeline with a seller of tickets, which no service has


def made_by_hand(text: str) -> list[str]:
    """The parts of a service that a source text makes itself, with their lines."""
    if not any(f"{part}(" in text for part in PARTS):
        return []  # most files; parsing all of them takes seconds
    calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    return [f"line {c.lineno}: {c.func.id}(" for c in calls if isinstance(c.func, ast.Name) and c.func.id in PARTS]


def python_files() -> list[Path]:
    """Our own test code: what clients install beside it (node_modules, environments of their own) is left out."""
    every = (path for folder in ("tests", "bench", "examples") for path in sorted((ROOT / folder).rglob("*.py")))
    return [path for path in every if not installed(path.relative_to(ROOT))]


def installed(path: Path) -> bool:
    return any(part.startswith(".") or part == "node_modules" for part in path.parts)


def test_no_test_wires_a_service_by_hand():
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in python_files()}
    found = {name: parts for name, text in texts.items() if (parts := made_by_hand(text))}

    assert found.keys() == ALONE, "use arrange_service of tests.arranged, or engine of tests.calls.parts"


def test_a_part_made_by_hand_is_seen():
    assert made_by_hand("app = Face(\n    registry, Pipeline(answers))") == ["line 1: Face(", "line 2: Pipeline("]
    assert made_by_hand("Interface(x); service.web_app()") == []
