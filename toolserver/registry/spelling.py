"""Matches names from callers, ignoring case and surrounding blanks, and returns them in the standard spelling."""

import typing
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator


def find_word(name: str, words: Iterable[str]) -> str | None:
    """Return the word in its standard spelling, or None if there is no such word in any case."""
    plain = name.strip().casefold()
    return next((word for word in words if word.casefold() == plain), None)


def accept_any_case(hint: Any) -> Any:
    """Return a type hint that accepts the words of its `Literal` in any case. Other hints are returned unchanged."""
    words = _words_of(hint)
    if not words:
        return hint

    def spell(word: Any) -> Any:
        return (find_word(word, words) or word) if isinstance(word, str) else word

    return Annotated[hint, BeforeValidator(spell)]


def _words_of(hint: Any) -> tuple[str, ...]:
    """Return the strings of a `Literal`, alone, annotated, or in a union with other types."""
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) is Literal:
        return tuple(word for word in arguments if isinstance(word, str))
    if typing.get_origin(hint) is Annotated:
        return _words_of(arguments[0])
    if isinstance(hint, type) or typing.get_origin(hint) in (list, dict, tuple):
        return ()
    return tuple(word for arm in arguments for word in _words_of(arm))
