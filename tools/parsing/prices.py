"""Prices of exchanges: what is believed of one, and how far it may jump."""

from typing import Any

from tools.parsing.numbers import number, positive
from toolserver import SourceEmpty

JUMP = 0.4  # of a price, between two good answers


def traded_price(value: Any) -> float:
    """A price. Zero means that there was no trade: SourceEmpty. Raises ValueError below zero."""
    if number(value) == 0:
        raise SourceEmpty("the price is 0")
    return positive(value)
