"""Check prices of exchanges: which values are believed, and how far a price may jump."""

from typing import Any

from tools.parsing.numbers import number, positive
from toolserver import SourceEmpty

JUMP = 0.4  # as a share of a price, between two good answers


def traded_price(value: Any) -> float:
    """Return a price. Raises SourceEmpty for zero, which means that there was no trade, and ValueError below zero."""
    if number(value) == 0:
        raise SourceEmpty("the price is 0")
    return positive(value)
