"""Read Cboe: delayed quotes by symbol, and the history of the VIX (JSON and CSV, no key, redistribution barred).

https://www.cboe.com/delayed_quotes/
"""

import json
from datetime import datetime
from typing import Any

from tools.parsing.fields import number, optional, positive
from tools.parsing.market_hours import from_new_york
from tools.parsing.series import Series, calendar_date, newest_at, series, table
from tools.parsing.stock_quotes import StockQuote
from tools.sources.hosts import CBOE, DAY, HOUR, WEEK
from toolserver import Get, Keys, Licence, Source, SourceChanged, read_rows

API = "https://cdn.cboe.com/api/global"
LICENCE = Licence("no", "Cboe Exchange, Inc.", "https://www.cboe.com/delayed_quotes/")
INDICES = {"SPX": ("_SPX", 1), "DJI": ("_DJX", 100), "RUT": ("_RUT", 1), "VIX": ("_VIX", 1)}
"""Our symbol: theirs, and how many of theirs one of ours is. There is no Nasdaq Composite."""
RECENT = 500  # rows of the history that are read


def quote_request(query: str, keys: Keys) -> Get:
    name = INDICES.get(query, (query, 1))[0]
    return Get(f"{API}/delayed_quotes/quotes/{name}.json", decode="bytes")


def parse_quote(body: bytes, query: str) -> StockQuote | None:
    """Return the quote; None for a symbol that Cboe does not have, for which it answers "forbidden"."""
    if b"<Code>AccessDenied</Code>" in body:
        return None
    data = json.loads(body)["data"]
    price, change = number(data["current_price"]), number(data["price_change"])
    scale = INDICES.get(query, (query, 1))[1]
    return StockQuote(
        symbol=query,
        price=positive(price) * scale,
        previous_close=positive(price - change) * scale,  # after the close, Cboe's previous close is today's
        as_of=optional(_instant, data.get("last_trade_time")),
        delayed=True,
    )


def _instant(text: Any) -> datetime:
    """Return the instant of a time that is given on New York's clock."""
    return from_new_york(datetime.fromisoformat(text).replace(tzinfo=None))


def parse_history(body: str, query: None) -> Series:
    """Return the newest daily closes. A last line without its end may be cut, even inside a number."""
    if not body.endswith("\n"):
        raise SourceChanged("the last line is cut")
    lines = body.splitlines()
    rows = table("\n".join([*lines[:1], *lines[1:][-RECENT:]]), "DATE", "CLOSE")
    return series(read_rows(rows, lambda row: (calendar_date(row["DATE"]), positive(row["CLOSE"]))))


DELAYED_QUOTE = Source(
    "Cboe.delayed_quote",
    quote_request,
    parse_quote,
    licence=LICENCE,
    hosts=CBOE,
    fresh_s=60,
    ageless="an untraded symbol keeps its last trade, whose time the quote carries",
    timeout_s=6,
    newest=lambda quote: quote.as_of if quote else None,
    also=frozenset({403}),
    user_input=True,
    probe="SPY",
)
VIX_HISTORY = Source(
    "Cboe.vix_history",
    Get(f"{API}/us_indices/daily_prices/VIX_History.csv", decode="text"),
    parse_history,
    licence=LICENCE,
    hosts=CBOE,
    fresh_s=HOUR,
    keep_s=WEEK,
    timeout_s=10,
    conditional=True,
    newest=newest_at,
    newest_max_s=6 * DAY,
)
