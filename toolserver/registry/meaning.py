"""Describe who defines a word, class or window of an answer: the rule, the publisher's own words, and classified rows.

A `Meaning` stands beside the code that decides. `docs/meanings.md` is written from them, and a test feeds every row to
`decide`, so that rule and text cannot part.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Definition:
    """Who defined a rule: a publisher, at `link`, in `words` (a few, quoted), as read on `read_on`.

    Without words it is known who defines the rule, but not in which words.
    """

    publisher: str
    link: str = ""
    words: str = ""
    read_on: date | None = None


@dataclass(frozen=True, slots=True)
class Meaning:
    """What one field of an answer says.

    `field` is the short name of the endpoint and the member. Without a `definition` the choice is ours, and the docs
    say so. `rows` are inputs of `decide` with what it must return: boundaries, and rows that the publisher classified
    itself.
    """

    field: str
    rule: str
    decide: Callable[[Any], object] | None = None
    rows: tuple[tuple[Any, object], ...] = ()
    definition: Definition | None = None


def find_meanings(packages: Iterable[str]) -> list[Meaning]:
    """Return the meanings in every module of the packages, by field. Imports those modules."""
    return sorted(find_declared(packages, Meaning), key=lambda meaning: (meaning.field, meaning.rule))


def find_declared(packages: Iterable[str], kind: type[T]) -> list[T]:
    """Return the values of a kind that the modules of the packages have, alone or in a tuple. Imports those modules."""
    found: set[int] = set()
    declared = []
    for package in packages:
        root = importlib.import_module(package)
        for info in pkgutil.walk_packages(root.__path__, f"{package}."):
            for value in vars(importlib.import_module(info.name)).values():
                group = value if isinstance(value, tuple) else (value,)
                for each in (e for e in group if isinstance(e, kind) and id(e) not in found):
                    found.add(id(each))
                    declared.append(each)
    return declared
