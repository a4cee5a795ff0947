"""Finnhub: the quote of one U.S. share (JSON, redistribution barred).

`FINNHUB_API_KEY` is needed. https://finnhub.io/docs/api/quote
"""

from typing import Any

from tools.shared.numbers import number, positive
from tools.shared.times import from_epoch
from tools.sources.cnbc import Quote
from tools.sources.hosts import FINNHUB
from toolserver.errors import SourceRefused
from toolserver.upstream.source import Get, Keys, Licence, Source

API = "https://finnhub.io/api/v1/quote"
LICENCE = Licence("no", "Finnhub", "https://finnhub.io/terms-of-service")


def request(query: str, keys: Keys) -> Get | None:
    key = keys.get("FINNHUB_API_KEY")
    return Get(API, params={"symbol": query}, headers={"X-Finnhub-Token": key}) if key else None


def parse(body: Any, query: str) -> Quote | None:
    """The quote; None for an unknown symbol, which is answered with zeros."""
    if "error" in body:
        raise SourceRefused("error")
    if number(body["c"]) == 0 and number(body["t"]) == 0:
        return None
    return Quote(
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
    keep_s=86400,
    timeout_s=6,
    newest=lambda quote: quote.as_of if quote else None,
    user_input=True,
    probe="SPY",
)
