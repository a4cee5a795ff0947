"""Price gold, oil, gas, the index funds, the VIX and the dollar: the chains of providers, and what each measures."""

import datetime as dt
from typing import Literal, NamedTuple

from tools.parsing.fields import change_percent, price, within
from tools.parsing.market_hours import CLOSES, from_new_york, to_new_york
from tools.parsing.series import Series, newest, previous
from tools.parsing.stock_quotes import StockQuote, Symbols
from tools.shared.macro import Sourced, name_source, require_young
from tools.sources import cboe, kraken, yahoo
from tools.sources.cboe import DELAYED_QUOTE, VIX_HISTORY
from tools.sources.chainlink import GOLD_FEED, Round
from tools.sources.cnbc import QUOTES
from tools.sources.datahub import HENRY_HUB_DAILY, WTI_DAILY
from tools.sources.federal_reserve import BROAD_DOLLAR_INDEX
from tools.sources.fred import GRAPH_CSV, OBSERVATIONS, Charts, GraphQuery, ObservationsQuery
from tools.sources.gold_api import XAU_SPOT, GoldPrice
from tools.sources.yahoo import SPARK
from toolserver import Fallback, FallbackReader, Source, convert_fallback, via

GOLD_SOURCES = (XAU_SPOT, kraken.TICKER, GOLD_FEED, yahoo.CHART)
OIL_SERIES_SOURCES = (OBSERVATIONS, GRAPH_CSV, WTI_DAILY)
OIL_SOURCES = (*OIL_SERIES_SOURCES, yahoo.CHART)
GAS_SOURCES = (OBSERVATIONS, GRAPH_CSV, HENRY_HUB_DAILY, yahoo.CHART)

Kind = Literal["spot", "token", "futures"]
DAILY_IDS = ("DCOILWTICO", "DHHNGSP", "DTWEXBGS")  # one chart for all daily series that are not rates
SINCE, OLDEST = dt.timedelta(days=120), dt.timedelta(days=16)
GOLD_RANGE, OIL_RANGE, GAS_RANGE = (500, 20_000), (-50, 500), (0, 200)

MARKET_SOURCES = (QUOTES, SPARK, DELAYED_QUOTE)
VIX_SOURCES = (*MARKET_SOURCES, VIX_HISTORY)
DOLLAR_SOURCES = (OBSERVATIONS, GRAPH_CSV, BROAD_DOLLAR_INDEX)

Freshness = Literal["delayed", "real_time", "previous_close"]
MARKET = Symbols(("SPY", "DIA", "QQQ", "VIX"))  # one request for all of them
VIX_RANGE = (5, 200)


class Gold(NamedTuple):
    """The price of a troy ounce, its time, its provider, and the form in which it was traded."""

    price_usd: float
    as_of: dt.datetime
    source: str
    kind: Kind


class Priced(NamedTuple):
    """The price on a day of a barrel of oil, or of a million Btu of gas."""

    price_usd: float
    date: dt.date
    source: str
    kind: Kind


def gold_fallbacks() -> tuple[Fallback[Gold], ...]:
    """Return the fallbacks: the spot price; a token for an ounce; the oracle's on-chain price; the nearest future."""
    return (
        via(XAU_SPOT, None, _from_spot),
        _from_token,
        via(GOLD_FEED, "XAU-USD", _from_oracle),
        via(yahoo.CHART, "GC=F", _from_future),
    )


def _from_spot(price: GoldPrice) -> Gold:
    return Gold(price.usd_per_ounce, price.updated_at, "goldapi:XAU", "spot")


async def _from_token(reading: FallbackReader) -> Gold:
    """Return the price of a token. The ticker has no timestamp, so the time of the fetch counts."""
    ticker = await reading.read(kraken.TICKER, "PAXGUSD")
    fetched_at = reading.notes[-1].fetched_at
    assert fetched_at is not None
    return Gold(within(ticker.last, *GOLD_RANGE), fetched_at, "paxg/kraken", "token")


def _from_oracle(oracle: Round) -> Gold:
    return Gold(within(oracle.price, *GOLD_RANGE), oracle.updated_at, "chainlink:XAU-USD", "spot")


def _from_future(chart: yahoo.Chart) -> Gold:
    return Gold(within(chart.price, *GOLD_RANGE), chart.at, "yahoo:GC=F", "futures")


def daily_chart(today: dt.date) -> GraphQuery:
    """Return the query for FRED's chart without a key: one request for oil, gas and the dollar."""
    return GraphQuery(DAILY_IDS, today - SINCE)


def fred_daily(series_id: str, today: dt.date) -> tuple[Fallback[Sourced], ...]:
    """Return the fallbacks for a daily series of FRED: with a key, and without. It is
    published once a week, a week late.
    """

    def named(charts: Charts) -> Sourced:
        return name_source(require_young(charts[series_id], today, OLDEST.days), f"fred:{series_id}")

    return (
        via(OBSERVATIONS, ObservationsQuery(series_id), named),
        via(GRAPH_CSV, daily_chart(today), named),
    )


def oil_series_fallbacks(today: dt.date) -> tuple[Fallback[Sourced], ...]:
    """Return the fallbacks for daily spot prices of West Texas Intermediate at Cushing, as EIA publishes them."""
    return *fred_daily("DCOILWTICO", today), _mirror(WTI_DAILY, "eia:RWTC")


def oil_fallbacks(today: dt.date) -> tuple[Fallback[Priced], ...]:
    """Return the fallbacks for the newest spot price of oil; the nearest future when no provider has it."""
    spot = tuple(
        convert_fallback(fallback, lambda sourced: _newest(sourced, OIL_RANGE))
        for fallback in oil_series_fallbacks(today)
    )
    return *spot, _future("CL=F", OIL_RANGE)


def gas_fallbacks(today: dt.date) -> tuple[Fallback[Priced], ...]:
    """Return the fallbacks for the newest spot price of natural gas at Henry Hub; the nearest
    future when no provider has it.
    """
    daily = (*fred_daily("DHHNGSP", today), _mirror(HENRY_HUB_DAILY, "eia:RNGWHHD"))
    return *(convert_fallback(fallback, lambda sourced: _newest(sourced, GAS_RANGE)) for fallback in daily), _future(
        "NG=F", GAS_RANGE
    )


def _mirror(source: Source[None, Series], name: str) -> Fallback[Sourced]:
    return via(source, None, lambda observations: name_source(observations, name))


def _newest(sourced: Sourced, plausible: tuple[float, float]) -> Priced:
    last = newest(sourced.series)
    return Priced(within(last.value, *plausible), last.date, sourced.source, "spot")


def _future(symbol: str, plausible: tuple[float, float]) -> Fallback[Priced]:
    def last(chart: yahoo.Chart) -> Priced:
        return Priced(within(chart.price, *plausible), to_new_york(chart.at).date(), f"yahoo:{symbol}", "futures")

    return via(yahoo.CHART, symbol, last)


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
    """Return the fallbacks for the trade-weighted index against a broad group of currencies:
    daily values, published weekly.
    """
    release = via(
        BROAD_DOLLAR_INDEX, None, lambda observations: name_source(observations, "federalreserve:H10/JRXWTFB_N.B")
    )
    return *fred_daily("DTWEXBGS", today), release
