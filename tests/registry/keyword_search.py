"""How Claude Code searches deferred tools, as observed of version 2.1 from the npm registry: by keywords alone.

A query is cut at spaces, punctuation stays. For each word a tool scores 12 if the word is a part of its name or 6 if
it is within a part, 12 if it is the name of the server or the tool or 4 if it is within one, 4 if it stands in the
search hint, and 2 if it stands in the description. Equal scores keep the order of the list. Tools that are always
loaded are not searched: the model has them.
"""

import re
from collections.abc import Iterable

from toolserver.registry.registry import Operation

SERVER = "toolserver"
LONGEST = 2048  # characters of a description that are searched


def search_as_claude_code(query: str, operations: Iterable[Operation], limit: int = 5) -> list[str]:
    """Return the names of the deferred tools that score, best first."""
    deferred = sorted((o for o in operations if not o.always_loaded), key=lambda o: o.name)
    scored = [(sum(_score(word, o) for word in query.lower().split()), o.name) for o in deferred]
    return [name for score, name in sorted(scored, key=lambda each: -each[0]) if score > 0][:limit]


def _score(word: str, operation: Operation) -> int:
    names = (SERVER, operation.name)
    parts = [part for name in names for part in name.split("_")]
    score = 12 if word in parts else 6 if any(word in part for part in parts) else 0
    score += 12 if word in names else 4 if any(word in name for name in names) else 0
    whole = re.compile(rf"\b{re.escape(word)}\b", re.ASCII)
    score += 4 if whole.search(operation.search_hint.lower()) else 0
    return score + (2 if whole.search(operation.description[:LONGEST].lower()) else 0)
