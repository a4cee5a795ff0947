"""Quotes of the three large index funds and the VIX, and the broad dollar index: the chains of providers."""

import datetime as dt
from typing import Literal, NamedTuple

from tools.shared.commodities import fred_daily
from tools.shared.macro import Sourced, sourced
from tools.shared.market_hours import CLOSES, from_new_york
from tools.shared.numbers import change_percent, price, within
from tools.shared.series import Series, newest, previous
from tools.sources import cboe, yahoo
from tools.sources.cboe import DELAYED_QUOTE, VIX_HISTORY
from tools.sources.cnbc import QUOTES, Quote, Symbols
from tools.sources.federal_reserve import BROAD_DOLLAR_INDEX
from tools.sources.fred import GRAPH_CSV, OBSERVATIONS
from tools.sources.yahoo import SPARK
from toolserver.context import Leg, via

MARKET_SOURCES = (QUOTES, SPARK, DELAYED_QUOTE)
VIX_SOURCES = (*MARKET_SOURCES, VIX_HISTORY)
DOLLAR_SOURCES = (OBSERVATIONS, GRAPH_CSV, BROAD_DOLLAR_INDEX)

Freshness = Literal["delayed", "real_time", "previous_close"]
MARKET = Symbols(("SPY", "DIA", "QQQ", "VIX"))  # one question for all of them
VIX_RANGE = (5, 200)


class IndexQuote(NamedTuple):
    """A last price and how far it is from the close before. `as_of` is None where the provider does not tell."""

    price: float
    change: float
    change_percent: float
    as_of: dt.datetime | None
    source: str
    freshness: Freshness


def market_legs(symbol: str) -> tuple[Leg[IndexQuote], ...]:
    """One of the four symbols of MARKET; the VIX has its published closes as a last resort."""
    legs = (
        via(QUOTES, MARKET, lambda quotes: from_quote(quotes[symbol], f"cnbc:{symbol}")),
        via(SPARK, MARKET, lambda quotes: from_quote(quotes[symbol], f"yahoo:{yahoo.theirs(symbol)}")),
        via(DELAYED_QUOTE, symbol, lambda quote: _from_cboe(quote, symbol)),
    )
    return (*legs, via(VIX_HISTORY, None, from_closes)) if symbol == "VIX" else legs


def vix_legs() -> tuple[Leg[IndexQuote], ...]:
    return market_legs("VIX")


def from_quote(quote: Quote, source: str) -> IndexQuote:
    """The change is always computed: providers' own contradict their prices at times."""
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


def _from_cboe(quote: Quote | None, symbol: str) -> IndexQuote:
    if quote is None:
        raise LookupError(symbol)
    return from_quote(quote, f"cboe:{cboe.INDICES.get(symbol, (symbol,))[0]}")


def from_closes(closes: Series) -> IndexQuote:
    """The newest close against the one before. Raises LookupError without both."""
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


def dollar_index_legs(today: dt.date) -> tuple[Leg[Sourced], ...]:
    """The trade-weighted index against a broad group of currencies, daily values out once a week."""
    release = via(BROAD_DOLLAR_INDEX, None, lambda found: sourced(found, "federalreserve:H10/JRXWTFB_N.B"))
    return *fred_daily("DTWEXBGS", today), release
