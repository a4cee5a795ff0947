"""Ranks tools by how well they fit a question in everyday words.

Each tool is a short document of its name, title, search hint, description and arguments, where a word counts by where
it stands. The ranking is BM25: a word counts by how few tools have it, and its repetitions less and less. A word that
no tool has is taken for the most similar ones, so that typing errors and other endings do not matter. Between equals
the free tool comes before the priced one, and the core before the others.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from toolserver.core.similar_names import find_similar
from toolserver.registry.json_schema import Schema
from toolserver.registry.placement import place_arguments
from toolserver.registry.registry import Operation, Tier

# How much a word counts by where it stands.
NAME, TITLE, HINT, DESCRIPTION, ARGUMENT = 3.0, 2.0, 3.0, 1.0, 0.5
SATURATION, LENGTH = 1.2, 0.4  # BM25's k1 and b
WHOLE_NAME = 1.25  # how much more a tool counts if the query has every word of its name
FREE = 1.15  # how much more a free tool counts than one that has a price or acts for the owner of a token
SIMILAR, SIMILAR_WORDS = 0.8, 3  # the least similarity of a word in place of an unknown one, and how many replace it
SHORTEST_TYPO = 4  # letters; shorter words are too similar to others

_WORD = re.compile(r"[^\W_]+")
_STOP = frozenset(
    "a about again all also am an and any are as at be been but by can could did do does for from get give had has have"
    " he her here him his how i if in into is it its just like many may me might more most much my need no not of on or"
    " our out please right she should show so some tell than that the their them then there these they this to use used"
    " using want was we were what when where which while who whose why will with would you your s t m re ve ll d now"
    " current currently one ones called calls call".split()
)
_ENDINGS = ("ingly", "ings", "edly", "ing", "ies", "ers", "ed", "es", "er", "ly", "s", "e", "y")


def split_words(text: str) -> list[str]:
    """Return the words of a text that carry meaning, without their endings."""
    return [stem(word) for word in _WORD.findall(text.casefold()) if word not in _STOP]


def stem(word: str) -> str:
    """Return a word without its ending, so that `erupting`, `erupts` and `erupted` are one word."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            rest = word.removesuffix(ending)
            return rest[:-1] if len(rest) > 3 and rest[-1] == rest[-2] and ending[0] in "ie" else rest
    return word


class ToolIndex:
    """The tools of one service, ready to be searched."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._operations = list(operations)
        self._counts = [_count_words(operation) for operation in self._operations]
        lengths = [sum(counts.values()) for counts in self._counts]
        mean = sum(lengths) / max(1, len(lengths))
        self._norms = [SATURATION * (1 - LENGTH + LENGTH * length / mean) for length in lengths]
        holders = Counter(word for counts in self._counts for word in counts)
        total = len(self._operations)
        self._rarity = {word: math.log(1 + (total - n + 0.5) / (n + 0.5)) for word, n in holders.items()}
        self._vocabulary = sorted(self._rarity)

    def search(self, query: str, limit: int) -> list[Operation]:
        """Return up to `limit` tools that share a word with the query, best first; without words, the first tools."""
        words = self._read(query)
        if not words:
            return self._operations[:limit]
        scored = [
            (self._score(position, words), position)
            for position, counts in enumerate(self._counts)
            if not words.keys().isdisjoint(counts)
        ]
        best = sorted(scored, key=lambda each: (-each[0], each[1]))[:limit]
        return [self._operations[position] for _, position in best]

    def describe(self, query: str, limit: int) -> list[dict[str, Any]]:
        """Return what `search` finds as whole definitions: what each tool takes, costs, and how it is called."""
        return [describe_tool(operation) for operation in self.search(query, limit)]

    def _score(self, position: int, words: dict[str, float]) -> float:
        counts, norm = self._counts[position], self._norms[position]
        score = sum(
            weight * self._rarity[word] * counts[word] * (SATURATION + 1) / (counts[word] + norm)
            for word, weight in words.items()
            if word in counts
        )
        operation = self._operations[position]
        is_named = all(word in words for word in split_words(operation.name.replace("_", " ")))
        return score * (WHOLE_NAME if is_named else 1) * (FREE if operation.tier is Tier.FREE else 1)

    def _read(self, query: str) -> dict[str, float]:
        """Return the words of a query that tools have, each with its weight: less than 1 for a similar word."""
        weights: dict[str, float] = {}
        for word in split_words(query):
            if word in self._rarity:
                weights[word] = 1.0
            elif len(word) >= SHORTEST_TYPO:
                near = find_similar(word, self._vocabulary, most=SIMILAR_WORDS, least=SIMILAR)
                weights = {**dict.fromkeys(near, SIMILAR), **weights}
        return weights


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


def _count_words(operation: Operation) -> dict[str, float]:
    """Return the words of a tool, each with how much it counts."""
    counts: defaultdict[str, float] = defaultdict(float)
    names = " ".join((operation.name, *operation.aliases)).replace("_", " ")
    parts = [
        (NAME, names),
        (TITLE, operation.title),
        (HINT, operation.search_hint),
        (DESCRIPTION, operation.description),
        (ARGUMENT, " ".join(_argument_words(operation.input_schema))),
    ]
    for weight, text in parts:
        for word in set(split_words(text)):
            counts[word] += weight
    return counts


def _argument_words(schema: Schema) -> Iterator[str]:
    for name, argument in schema["properties"].items():
        yield name.replace("_", " ")
        yield str(argument.get("description", ""))
