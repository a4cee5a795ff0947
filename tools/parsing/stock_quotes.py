"""Describe quotes of shares, funds and indices of any provider."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple, TypeAlias

from toolserver import SourceEmpty

USABLE = 0.6  # share of the requested symbols
UNGAUGED = "VIX"  # the VIX may double in a day


class StockQuote(NamedTuple):
    """A last price and the close it is compared with.

    `trading` says whether the market was open, `delayed` whether the price is, both as far as the provider says.
    """

    symbol: str
    price: float
    previous_close: float
    name: str | None = None
    as_of: datetime | None = None
    delayed: bool | None = None
    trading: bool | None = None


Quotes: TypeAlias = Mapping[str, StockQuote]
"""Quotes by our symbol; what the provider does not have is absent."""


class Symbols(NamedTuple):
    """The symbols to request. `must_exist` says that all of them exist, so missing ones are the provider's fault."""

    names: tuple[str, ...]
    must_exist: bool = True


def require_enough(quotes: Quotes, query: Symbols) -> Quotes:
    """Return the quotes. Raises SourceEmpty when too many of the symbols that exist are missing."""
    if query.must_exist and len(quotes) < USABLE * len(query.names):
        raise SourceEmpty(f"{len(quotes)} of {len(query.names)} quotes")
    return quotes


def gauged_prices(quotes: Quotes) -> dict[str, float]:
    """Return the prices by which providers are compared."""
    return {name: quote.price for name, quote in quotes.items() if name != UNGAUGED}
