"""Read the quote of one U.S. share from Finnhub (JSON, redistribution barred).

`FINNHUB_API_KEY` is needed. https://finnhub.io/docs/api/quote
"""

from typing import Any

from tools.parsing.fields import from_epoch, number, positive
from tools.parsing.stock_quotes import StockQuote
from tools.sources.hosts import FINNHUB
from toolserver import Get, Keys, Licence, Source, SourceRefused

API = "https://finnhub.io/api/v1/quote"
LICENCE = Licence("no", "Finnhub", "https://finnhub.io/terms-of-service")


def request(query: str, keys: Keys) -> Get | None:
    key = keys.get("FINNHUB_API_KEY")
    return Get(API, params={"symbol": query}, headers={"X-Finnhub-Token": key}) if key else None


def parse(body: Any, query: str) -> StockQuote | None:
    """Return the quote; None for an unknown symbol, for which Finnhub answers zeros."""
    if "error" in body:
        raise SourceRefused("error")
    if number(body["c"]) == 0 and number(body["t"]) == 0:
        return None
    return StockQuote(
        symbol=query,
        price=positive(body["c"]),
        previous_close=positive(body["pc"]),
        as_of=from_epoch(positive(body["t"])),
        delayed=False,
    )


QUOTE = Source(
    "Finnhub.quote",
    request,
    parse,
    licence=LICENCE,
    hosts=FINNHUB,
    fresh_s=60,
    ageless="an untraded symbol keeps its last trade, whose time the quote carries",
    timeout_s=6,
    newest=lambda quote: quote.as_of if quote else None,
    user_input=True,
    probe="SPY",
)
