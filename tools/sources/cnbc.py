"""Read CNBC quotes: shares, funds and indices, all in one request (JSON, no key, redistribution barred).

Every value is a string as it would be printed: "1,234.56", "+0.34%", "UNCH". There is no published documentation.
"""

from datetime import datetime
from typing import Any

from tools.parsing.fields import NAME, clean_or_none, from_iso, number_or_none, optional, positive
from tools.parsing.stock_quotes import Quotes, StockQuote, Symbols, gauged_prices, require_enough
from tools.sources.hosts import CNBC, DAY
from toolserver import Gauge, Get, HostGroup, Keys, Licence, Proof, Source, read_rows

API = "https://quote.cnbc.com/quote-html-webservice/restQuote/symbolType/symbol"
FIXED = {
    "requestMethod": "itv", "noform": "1", "partnerId": "2", "fund": "1", "exthrs": "1", "output": "json",
    "events": "1",
}  # fmt: skip
LICENCE = Licence("no", "CNBC", "https://www.nbcuniversal.com/terms")
INDICES = ("SPX", "DJI", "IXIC", "RUT", "VIX")  # CNBC's symbols for them begin with a dot


def request(query: Symbols, keys: Keys) -> Get:
    names = "|".join(f".{name}" if name in INDICES else name for name in query.names)
    return Get(API, params={"symbols": names, **FIXED})


def parse(body: Any, query: Symbols) -> Quotes:
    """Return the rows with a price; a single row may come without a list."""
    rows = body["FormattedQuoteResult"]["FormattedQuote"]
    read = read_rows(rows if isinstance(rows, list) else [rows], _quote)
    quotes = {quote.symbol: quote for quote in read if quote.symbol in query.names}
    return require_enough(quotes, query)


def _quote(row: dict[str, Any]) -> StockQuote | None:
    """Return a row's quote; None for an unknown symbol, and for one without data."""
    price, previous = _printed(row.get("last")), _printed(row.get("previous_day_closing"))
    if not price or not previous:
        return None
    status = row.get("curmktstatus")
    return StockQuote(
        symbol=str(row["symbol"]).lstrip("."),
        price=positive(price),
        previous_close=positive(previous),
        name=clean_or_none(row.get("name"), NAME),
        as_of=optional(_instant, row.get("last_time")),
        delayed={"true": False, "false": True}.get(str(row.get("realTime")).lower()),
        trading=None if status is None else status == "REG_MKT",
    )


def _printed(text: Any) -> float | None:
    return None if text is None else number_or_none(str(text).replace(",", "").removesuffix("%"))


def _instant(text: str) -> datetime:
    """Return an instant. Raises ValueError for a bare date: it marks a closing price, and the
    hour of the close is unknown.
    """
    if "T" not in text:
        raise ValueError(text)
    return from_iso(text)


def newest(quotes: Quotes) -> datetime | None:
    return max((quote.as_of for quote in quotes.values() if quote.as_of), default=None)


def _quotes(hosts: HostGroup, *, user_input: bool) -> Source[Symbols, Quotes]:
    return Source(
        "CNBC.quotes",
        request,
        parse,
        licence=LICENCE,
        hosts=hosts,
        fresh_s=15,
        timeout_s=6,
        newest=newest,
        newest_max_s=5 * DAY,  # a weekend with a holiday on either side
        least=0,
        proof=Proof.harmless("the query names the symbols, and those that are missing are counted in a warning"),
        user_input=user_input,
        untrusted=True,
        gauge=None if user_input else Gauge(gauged_prices, 0.4),
        probe=Symbols(("SPY",)),
    )


QUOTES = _quotes(CNBC, user_input=False)
QUOTES_ON_DEMAND = _quotes(HostGroup("cnbc-on-demand", 1, 15, 4, 60, reserve=0), user_input=True)
"""The same for symbols that a caller named: at most one request in 15 s for all callers together."""
