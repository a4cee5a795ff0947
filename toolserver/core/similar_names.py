"""Finds names similar to a wrong one, for "did you mean".

Callers choose when this runs and on what, so it has to be cheap: rapidfuzz compares 200 names
in 20 µs, difflib in a millisecond. It is imported for the first wrong name.
"""

from collections.abc import Iterable

LONGEST = 200  # characters of a wrong name that are compared


def find_similar(wrong: str, names: Iterable[str], *, most: int = 3, least: float = 0.6) -> list[str]:
    """Return the names most similar to a wrong one, most similar first. The comparison is case-sensitive.

    `least` is the minimum similarity, from 0 to 1: twice the letters that both have in the
    same order, divided by the letters of both.
    """
    from rapidfuzz import fuzz, process

    candidates = names if isinstance(names, list | tuple) else list(names)
    matches = process.extract(wrong[:LONGEST], candidates, scorer=fuzz.ratio, limit=most, score_cutoff=least * 100)
    return [name for name, _, _ in matches]
