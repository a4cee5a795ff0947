"""Describe what is known of the terms of a publisher: what they say, how that was learnt, and when.

A `TermsReading` stands beside the tools that read the publisher. `docs/selling-credits.md` is written from them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Literal

from toolserver.registry.meaning import find_declared

Evidence = Literal["read", "read in part", "second hand", "not re-checked", "none found"]
"""The document itself; an excerpt of it; a dated reading of someone else; from memory; no terms about data."""


@dataclass(frozen=True, slots=True)
class TermsReading:
    """What the terms of a publisher say about selling its data on, by `evidence` of a day."""

    publisher: str
    evidence: Evidence
    read_on: date
    says: str


def find_readings(packages: Iterable[str]) -> dict[str, TermsReading]:
    """Return the readings in every module of the packages, by publisher. Imports those modules."""
    return {reading.publisher: reading for reading in find_declared(packages, TermsReading)}
