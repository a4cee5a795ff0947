"""One name, one thing; and sentences that an English reader would have written."""

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.architecture.code import FILES, ROOT, modules

TWICE: dict[str, str] = {}  # class names that stand in several modules, at most five, and why
PHRASES = (
    "whoever",
    "at hand",
    "is told",
    "are told",
    "what became of",
    "of two minds",
    "be it",
    "came of it",
    "what came of",
    "told the same way",
)
TRANSLATED = re.compile("|".join(rf"\b{phrase}\b".replace(" ", r"\s+(?:#\s+)?") for phrase in PHRASES), re.IGNORECASE)


def test_a_class_name_exists_once():
    found: dict[str, list[str]] = defaultdict(list)
    for name, module in modules().items():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(name)
    twice = {name: places for name, places in found.items() if len(places) > 1}

    assert {name: places for name, places in twice.items() if name not in TWICE} == {}
    assert twice.keys() >= TWICE.keys(), "no longer twice"
    assert len(TWICE) <= 5


def texts() -> list[Path]:
    """Everything a person reads: the product's files (docstrings, messages, comments), the docs and the README."""
    return [
        *FILES.values(),
        *sorted((ROOT / "docs").glob("*.md")),
        *(ROOT / name for name in ("README.md", "SECURITY.md")),
    ]


def room(path: Path) -> str:
    """The folder that a file counts under."""
    return "/".join(path.relative_to(ROOT).parent.parts[:2]) or path.name


def phrases_by_room() -> Counter[str]:
    found: Counter[str] = Counter()
    for path in texts():
        found[room(path)] += len(TRANSLATED.findall(path.read_text(encoding="utf-8")))
    return +found


def test_no_text_reads_like_a_translation():
    assert phrases_by_room() == {}


@pytest.mark.parametrize("text", ["for whoever asks", "bytes at\n    hand", "the caller is told why", "a # be\n# it"])
def test_such_a_phrase_is_found(text):
    assert TRANSLATED.search(text)


def test_words_that_only_look_like_it_are_not_found():
    assert not TRANSLATED.search("Pipeline.at_hand, maybe it")
