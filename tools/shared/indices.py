"""Get quotes of the three large index funds and the VIX, and the broad dollar index: the chains of providers."""

import datetime as dt
from typing import Literal, NamedTuple

from tools.parsing.fields import change_percent, price, within
from tools.parsing.market_hours import CLOSES, from_new_york
from tools.parsing.series import Series, newest, previous
from tools.parsing.stock_quotes import StockQuote, Symbols
from tools.shared.commodities import fred_daily
from tools.shared.macro import Sourced, name_source
from tools.sources import cboe, yahoo
from tools.sources.cboe import DELAYED_QUOTE, VIX_HISTORY
from tools.sources.cnbc import QUOTES
from tools.sources.federal_reserve import BROAD_DOLLAR_INDEX
from tools.sources.fred import GRAPH_CSV, OBSERVATIONS
from tools.sources.yahoo import SPARK
from toolserver import Fallback, via

MARKET_SOURCES = (QUOTES, SPARK, DELAYED_QUOTE)
VIX_SOURCES = (*MARKET_SOURCES, VIX_HISTORY)
DOLLAR_SOURCES = (OBSERVATIONS, GRAPH_CSV, BROAD_DOLLAR_INDEX)

Freshness = Literal["delayed", "real_time", "previous_close"]
MARKET = Symbols(("SPY", "DIA", "QQQ", "VIX"))  # one request for all of them
VIX_RANGE = (5, 200)


class IndexQuote(NamedTuple):
    """A last price and its change from the previous close. `as_of` is None where the provider does not state it."""

    price: float
    change: float
    change_percent: float
    as_of: dt.datetime | None
    source: str
    freshness: Freshness


def market_fallbacks(symbol: str) -> tuple[Fallback[IndexQuote], ...]:
    """Return the fallbacks for one of the four symbols of MARKET; for the VIX, the published closes come last.

    Yahoo is the last one with current prices: it often refuses clients that are not browsers.
    """
    fallbacks = (
        via(QUOTES, MARKET, lambda quotes: from_quote(quotes[symbol], f"cnbc:{symbol}")),
        via(DELAYED_QUOTE, symbol, lambda quote: _from_cboe(quote, symbol)),
        via(SPARK, MARKET, lambda quotes: from_quote(quotes[symbol], f"yahoo:{yahoo.to_yahoo_symbol(symbol)}")),
    )
    return (*fallbacks, via(VIX_HISTORY, None, from_closes)) if symbol == "VIX" else fallbacks


def vix_fallbacks() -> tuple[Fallback[IndexQuote], ...]:
    return market_fallbacks("VIX")


def from_quote(quote: StockQuote, source: str) -> IndexQuote:
    """Return a quote with a computed change: the change that providers publish sometimes contradicts their prices."""
    if quote.symbol == "VIX":
        within(quote.price, *VIX_RANGE)
    return IndexQuote(
        price=price(quote.price),
        change=round(quote.price - quote.previous_close, 2) + 0.0,
        change_percent=change_percent(quote.price, quote.previous_close),
        as_of=quote.as_of,
        source=source,
        freshness="real_time" if quote.delayed is False else "delayed",
    )


def _from_cboe(quote: StockQuote | None, symbol: str) -> IndexQuote:
    if quote is None:
        raise LookupError(symbol)
    return from_quote(quote, f"cboe:{cboe.INDICES.get(symbol, (symbol,))[0]}")


def from_closes(closes: Series) -> IndexQuote:
    """Compare the newest close with the one before. Raises LookupError without both."""
    last, before = newest(closes), previous(closes)
    if before is None:
        raise LookupError("a single close")
    return IndexQuote(
        price=price(within(last.value, *VIX_RANGE)),
        change=round(last.value - before.value, 2) + 0.0,
        change_percent=change_percent(last.value, before.value),
        as_of=from_new_york(dt.datetime.combine(last.date, CLOSES)),
        source="cboe:VIX_History",
        freshness="previous_close",
    )


def dollar_index_fallbacks(today: dt.date) -> tuple[Fallback[Sourced], ...]:
    """Return the fallbacks for the trade-weighted index against a broad group of currencies: daily values, published
    weekly.
    """
    release = via(
        BROAD_DOLLAR_INDEX, None, lambda observations: name_source(observations, "federalreserve:H10/JRXWTFB_N.B")
    )
    return *fred_daily("DTWEXBGS", today), release
