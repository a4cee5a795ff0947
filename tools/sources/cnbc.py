"""CNBC quotes: shares, funds and indices, all in one request (JSON, no key, redistribution barred).

Every value is a string as it would be printed: "1,234.56", "+0.34%", "UNCH". There is no published documentation.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from tools.shared.numbers import number_or_none, positive
from tools.shared.optional import optional
from tools.shared.text import NAME, clean_or_none
from tools.shared.times import from_iso
from tools.sources.hosts import CNBC
from toolserver.errors import SourceEmpty
from toolserver.upstream.source import Gauge, Get, HostGroup, Keys, Licence, Source

API = "https://quote.cnbc.com/quote-html-webservice/restQuote/symbolType/symbol"
FIXED = {
    "requestMethod": "itv", "noform": "1", "partnerId": "2", "fund": "1", "exthrs": "1", "output": "json",
    "events": "1",
}  # fmt: skip
LICENCE = Licence("no", "CNBC", "https://www.nbcuniversal.com/terms")
INDICES = ("SPX", "DJI", "IXIC", "RUT", "VIX")  # CNBC writes them with a dot
USABLE = 0.6  # share of the symbols asked for
UNGAUGED = "VIX"  # it may double in a day


class Quote(NamedTuple):
    """A last price and the close it is compared with.

    `trading` says whether the market was open, `delayed` whether the price is, both as far as the provider tells.
    """

    symbol: str
    price: float
    previous_close: float
    name: str | None = None
    as_of: datetime | None = None
    delayed: bool | None = None
    trading: bool | None = None


Quotes: TypeAlias = Mapping[str, Quote]
"""Quotes by our symbol; what the provider does not have is absent."""


class Symbols(NamedTuple):
    """What to ask for. `known` says that all of them exist, so that many missing ones are the provider's fault."""

    names: tuple[str, ...]
    known: bool = True


def request(query: Symbols, keys: Keys) -> Get:
    names = "|".join(f".{name}" if name in INDICES else name for name in query.names)
    return Get(API, params={"symbols": names, **FIXED})


def parse(body: Any, query: Symbols) -> Quotes:
    """The rows that hold a price; a single one may stand without its list."""
    rows = body["FormattedQuoteResult"]["FormattedQuote"]
    read = [_quote(row) for row in (rows if isinstance(rows, list) else [rows])]
    found = {quote.symbol: quote for quote in read if quote and quote.symbol in query.names}
    return enough(found, query)


def enough(found: Quotes, query: Symbols) -> Quotes:
    """The quotes, unless too many of existing symbols are missing. Raises SourceEmpty."""
    if query.known and len(found) < USABLE * len(query.names):
        raise SourceEmpty(f"{len(found)} of {len(query.names)} quotes")
    return found


def _quote(row: dict[str, Any]) -> Quote | None:
    """A row's quote; None for an unknown symbol, and for one without data."""
    price, previous = _printed(row.get("last")), _printed(row.get("previous_day_closing"))
    if not price or not previous:
        return None
    status = row.get("curmktstatus")
    return Quote(
        symbol=str(row["symbol"]).lstrip("."),
        price=positive(price),
        previous_close=positive(previous),
        name=clean_or_none(row.get("name"), NAME),
        as_of=optional(_instant, row.get("last_time")),
        delayed={"true": False, "false": True}.get(str(row.get("realTime")).lower()),
        trading=None if status is None else status == "REG_MKT",
    )


def _printed(text: Any) -> float | None:
    return optional(number_or_none, str(text).replace(",", "").removesuffix("%")) if text is not None else None


def _instant(text: str) -> datetime:
    """A bare date is a closing price, of which the hour is not told."""
    if "T" not in text:
        raise ValueError(text)
    return from_iso(text)


def newest(found: Quotes) -> datetime | None:
    return max((quote.as_of for quote in found.values() if quote.as_of), default=None)


def prices(found: Quotes) -> dict[str, float]:
    """The prices by which providers are compared."""
    return {name: quote.price for name, quote in found.items() if name != UNGAUGED}


def _quotes(hosts: HostGroup, *, user_input: bool) -> Source[Symbols, Quotes]:
    return Source(
        "CNBC.quotes",
        request,
        parse,
        licence=LICENCE,
        hosts=hosts,
        fresh_s=15,
        keep_s=86400,
        timeout_s=6,
        newest=newest,
        least=0,
        user_input=user_input,
        untrusted=True,
        gauge=None if user_input else Gauge(prices, 0.4),
        probe=Symbols(("SPY",)),
    )


QUOTES = _quotes(CNBC, user_input=False)
QUOTES_ON_DEMAND = _quotes(HostGroup("cnbc-on-demand", 1, 15, 4, 60), user_input=True)
"""The same for symbols that a caller named: at most one request in 15 s, whoever asks."""
