"""Read OKX spot tickers (JSON, no key; redistribution is barred).

https://www.okx.com/docs-v5/en/#order-book-trading-market-data-get-tickers
"""

from datetime import datetime
from typing import Any, NamedTuple

from tools.parsing.fields import PRICE_JUMP, clean, from_epoch_ms, number, number_or_none, traded_price, within
from tools.parsing.providers import OKX_API, OKX_LICENCE, check_okx_body
from tools.sources.hosts import EXCHANGES, MINUTE
from toolserver import Gauge, Get, Source, read_rows

PRICES = ("last", "open24h", "high24h", "low24h")


class SpotTicker(NamedTuple):
    """A pair's last 24 hours. `open` is the price 24 hours ago, `quote_volume` is in the quote currency."""

    base: str
    quote: str
    last: float
    open: float
    high: float
    low: float
    quote_volume: float
    at: datetime


def parse(body: Any, query: None) -> tuple[SpotTicker, ...]:
    """Return every traded pair; a new or halted one has empty prices or zeros."""
    rows = check_okx_body(body)
    return read_rows(rows, lambda row: _ticker(row) if all(number_or_none(row[name]) for name in PRICES) else None)


def _ticker(row: dict[str, Any]) -> SpotTicker:
    base, quote = clean(row["instId"], 40).split("-")
    high, low = traded_price(row["high24h"]), traded_price(row["low24h"])
    return SpotTicker(
        base=base,
        quote=quote,
        last=traded_price(row["last"]),
        open=traded_price(row["open24h"]),
        high=high,
        low=within(low, 0, high),
        quote_volume=within(number(row["volCcy24h"]), 0, 1e18),
        at=from_epoch_ms(row["ts"]),
    )


def newest(tickers: tuple[SpotTicker, ...]) -> datetime | None:
    return max((ticker.at for ticker in tickers), default=None)


def _gauged(tickers: tuple[SpotTicker, ...]) -> dict[str, float]:
    return {f"{t.base}-USD": t.last for t in tickers if t.quote == "USDT" and t.base in ("BTC", "ETH")}


SPOT_TICKERS = Source(
    "OKX.spot_tickers",
    Get(f"{OKX_API}/market/tickers", params={"instType": "SPOT"}),
    parse,
    licence=OKX_LICENCE,
    hosts=EXCHANGES,
    fresh_s=30,
    newest=newest,
    newest_max_s=5 * MINUTE,
    least=100,
    untrusted=True,
    gauge=Gauge(_gauged, PRICE_JUMP),
)
