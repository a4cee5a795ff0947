"""Sixty questions as people type them, each with the tool that should answer it.

A question with `thread` was asked in that public issue thread, in these words. Those that are `held_out`
are not looked at while search hints are written: they tell whether hints are general or fitted.
"""

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class EverydayQuestion:
    """A question, the tool that answers it, and the `repository#number` of the thread that it stands in."""

    question: str
    tool: str
    thread: str | None = None
    held_out: bool = False


def read_everyday_questions() -> list[EverydayQuestion]:
    """Return the sixty questions in the order of the file."""
    return [EverydayQuestion(**row) for row in json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))]
