"""Ranks tools by how well they fit a question in everyday words.

Each tool is a short text of its name, title, search hint, description and arguments, where a word counts by where it
stands. Between equals the free tool comes before the priced one, and the core before the others.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolserver.core.text_search import TextIndex, count_words, split_words
from toolserver.registry.json_schema import Schema
from toolserver.registry.placement import place_arguments
from toolserver.registry.registry import Operation, Tier

# How much a word counts by where it stands.
NAME, TITLE, HINT, DESCRIPTION, ARGUMENT = 3.0, 2.0, 3.0, 1.0, 0.5
WHOLE_NAME = 1.25  # how much more a tool counts if the query has every word of its name
FREE = 1.15  # how much more a free tool counts than one that has a price or acts for the owner of a token
INDEXED = 512  # tools whose words are remembered, as another index of the same tools has the same


class ToolIndex:
    """The tools of one service, which are made ready to be searched when somebody first does."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._operations = list(operations)

    @functools.cached_property
    def _index(self) -> TextIndex:
        return TextIndex([_count_words(operation) for operation in self._operations])

    def search(self, query: str, limit: int) -> list[Operation]:
        """Return up to `limit` tools that share a word with the query, best first; without words, the first tools."""
        words = self._index.read(query)
        if not words:
            return self._operations[:limit]
        scored = [
            (score * self._prefer(position, words), position) for position, score in self._index.score(words).items()
        ]
        best = sorted(scored, key=lambda each: (-each[0], each[1]))[:limit]
        return [self._operations[position] for _, position in best]

    def describe(self, query: str, limit: int) -> list[dict[str, Any]]:
        """Return what `search` finds as whole definitions: what each tool takes, costs, and how it is called."""
        return [describe_tool(operation) for operation in self.search(query, limit)]

    def _prefer(self, position: int, words: dict[str, float]) -> float:
        """Return how much more a tool counts than its words alone: where it is named, and where it is free."""
        operation = self._operations[position]
        is_named = all(word in words for word in split_words(operation.name.replace("_", " ")))
        return (WHOLE_NAME if is_named else 1) * (FREE if operation.tier is Tier.FREE else 1)


def describe_tool(operation: Operation) -> dict[str, Any]:
    """Return all that a caller needs who has no other list of tools."""
    by_name = f"tools/call {operation.name}"
    if operation.tier is Tier.FREE and not operation.runs_tools:
        call = f'{{"name": "{operation.name}", "arguments": {{…}}}}'
        elsewhere = f"where it is not listed: find_tools with `call` {call}"
    else:
        elsewhere = "where it is not listed: add ?toolset=all to the address"
    return {
        "name": operation.name,
        "title": operation.title,
        "description": operation.description,
        "tier": operation.tier.value,
        "cost_credits": operation.credits,
        "input_schema": operation.input_schema,
        "rest": f"{operation.method} {operation.path}",
        "arguments_in": place_arguments(operation),
        "mcp": f"{by_name}; {elsewhere}",
    }


@functools.lru_cache(INDEXED)
def _count_words(operation: Operation) -> Mapping[str, float]:
    """Return the words of a tool, each with how much it counts."""
    names = " ".join((operation.name, *operation.aliases)).replace("_", " ")
    return count_words(
        [
            (NAME, names),
            (TITLE, operation.title),
            (HINT, operation.search_hint),
            (DESCRIPTION, operation.description),
            (ARGUMENT, " ".join(_argument_words(operation.input_schema))),
        ]
    )


def _argument_words(schema: Schema) -> Iterator[str]:
    for name, argument in schema["properties"].items():
        yield name.replace("_", " ")
        yield str(argument.get("description", ""))
