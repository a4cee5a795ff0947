"""Ranks texts by how well they fit a question in everyday words.

A text is a bag of words, where a word counts by where it stands. The ranking is BM25: a word
counts by how few texts have it, and its repetitions less and less. A word that no text has is
taken for the most similar ones, so that typing errors and other endings do not matter.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from toolserver.core.similar_names import find_similar

SATURATION, LENGTH = 1.2, 0.4  # BM25's k1 and b
SIMILAR, SIMILAR_WORDS = 0.8, 3  # the least similarity of a word in place of an unknown one, and how many replace it
SYNONYM = 0.7  # how much a word counts that was not written, but means what was
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


def count_words(parts: Iterable[tuple[float, str]]) -> dict[str, float]:
    """Return the words of a text from its parts, each with its weight. In a part a word counts once."""
    counts: defaultdict[str, float] = defaultdict(float)
    for weight, text in parts:
        for word in set(split_words(text)):
            counts[word] += weight
    return dict(counts)


class TextIndex:
    """Texts, ready to be searched. `synonyms` are words that mean others; the index knows their stems."""

    def __init__(
        self, texts: Sequence[Mapping[str, float]], synonyms: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._counts = texts
        lengths = [sum(counts.values()) for counts in texts]
        mean = sum(lengths) / max(1, len(lengths))
        self._norms = [SATURATION * (1 - LENGTH + LENGTH * length / mean) for length in lengths]
        holders = Counter(word for counts in texts for word in counts)
        total = len(texts)
        self._rarity = {word: math.log(1 + (total - n + 0.5) / (n + 0.5)) for word, n in holders.items()}
        self._synonyms = {stem(word): split_words(others) for word, others in synonyms.items()}
        self._vocabulary = sorted({*self._rarity, *self._synonyms})

    def read(self, query: str) -> dict[str, float]:
        """Return the words of a query that texts have, each with its weight: less than 1 for another word like it."""
        weights: dict[str, float] = {}
        for word in split_words(query):
            near = [word]
            if word not in self._rarity and word not in self._synonyms:
                near = []
                if len(word) >= SHORTEST_TYPO:
                    near = find_similar(word, self._vocabulary, most=SIMILAR_WORDS, least=SIMILAR)
            for one in near:
                weight = 1.0 if one == word else SIMILAR
                for other in self._synonyms.get(one, ()):
                    weights[other] = max(weights.get(other, 0.0), SYNONYM * weight)
                if one in self._rarity:
                    weights[one] = max(weights.get(one, 0.0), weight)
        return {word: weight for word, weight in weights.items() if word in self._rarity}

    def score(self, words: Mapping[str, float]) -> dict[int, float]:
        """Return the positions of the texts that have any of the words, each with its score."""
        return {
            position: self._score(position, words)
            for position, counts in enumerate(self._counts)
            if not words.keys().isdisjoint(counts)
        }

    def _score(self, position: int, words: Mapping[str, float]) -> float:
        counts, norm = self._counts[position], self._norms[position]
        return sum(
            weight * self._rarity[word] * counts[word] * (SATURATION + 1) / (counts[word] + norm)
            for word, weight in words.items()
            if word in counts
        )
