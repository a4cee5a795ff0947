"""Read Binance spot data from its public data host (JSON, no key; redistribution and some countries are barred).

https://developers.binance.com/docs/binance-spot-api-docs/rest-api/market-data-endpoints
"""

from datetime import datetime
from typing import Any, Literal, NamedTuple

from tools.parsing.candles import Candle, candle, candle_source
from tools.parsing.fields import PRICE_JUMP, clean, from_epoch_ms, number, traded_price, within
from tools.parsing.providers import BINANCE_LICENCE, refuse_binance_error
from tools.sources.hosts import EXCHANGES, MINUTE
from toolserver import MIB, Gauge, Get, Keys, Source, SourceChanged, read_rows

API = "https://data-api.binance.vision/api/v3"
LENGTHS_S = {"1h": 3600, "1d": 86400}
PRICES = ("lastPrice", "highPrice", "lowPrice")

Interval = Literal["1h", "1d"]


class BinanceTicker(NamedTuple):
    """A symbol's last 24 hours; prices and `quote_volume` in the quote currency, which for BTCUSDT is USDT."""

    symbol: str
    last: float
    change_percent: float
    high: float
    low: float
    quote_volume: float
    trades: int
    closed_at: datetime


class KlineQuery(NamedTuple):
    """The 32 newest BTCUSDT candles."""

    interval: Interval


def request(symbol: str, keys: Keys) -> Get:
    return Get(f"{API}/ticker/24hr", params={"symbol": symbol})


def parse(body: Any, symbol: str) -> BinanceTicker:
    """Return the symbol's statistics."""
    refuse_binance_error(body)
    if body["symbol"] != symbol:
        raise SourceChanged(f"{body['symbol']!r:.20} for {symbol}")
    return _ticker(body)


def parse_all(body: Any, query: None) -> tuple[BinanceTicker, ...]:
    """Return all traded symbols. A halted one has zeros, or a last price without other figures, and is left out."""
    refuse_binance_error(body)
    return read_rows(body, lambda row: _ticker(row) if all(number(row[name]) > 0 for name in PRICES) else None)


def _ticker(row: dict[str, Any]) -> BinanceTicker:
    high, low = traded_price(row["highPrice"]), traded_price(row["lowPrice"])
    return BinanceTicker(
        symbol=clean(row["symbol"], 40),
        last=traded_price(row["lastPrice"]),
        change_percent=within(number(row["priceChangePercent"]), -100, 1e9),
        high=high,
        low=within(low, 0, high),
        quote_volume=within(number(row["quoteVolume"]), 0, 1e18),
        trades=int(number(row["count"])),
        closed_at=from_epoch_ms(row["closeTime"]),
    )


def klines_request(query: KlineQuery, keys: Keys) -> Get:
    return Get(f"{API}/klines", params={"symbol": "BTCUSDT", "interval": query.interval, "limit": "32"})


def parse_klines(body: Any, query: KlineQuery) -> tuple[Candle, ...]:
    """Return every row, oldest first; the last candle is still open."""
    refuse_binance_error(body)
    return read_rows(body, lambda row: candle(from_epoch_ms(row[0]), *row[1:6]))


def _gauged(tickers: tuple[BinanceTicker, ...]) -> dict[str, float]:
    return {f"{t.symbol[:3]}-USD": t.last for t in tickers if t.symbol in ("BTCUSDT", "ETHUSDT")}


def newest(tickers: tuple[BinanceTicker, ...]) -> datetime | None:
    return max((ticker.closed_at for ticker in tickers), default=None)


TICKER_24H = Source(
    "Binance.ticker_24h",
    request,
    parse,
    licence=BINANCE_LICENCE,
    hosts=EXCHANGES,
    fresh_s=30,
    newest=lambda ticker: ticker.closed_at,
    newest_max_s=5 * MINUTE,
    gauge=Gauge(lambda ticker: _gauged((ticker,)), PRICE_JUMP),
    probe="BTCUSDT",
)

TICKERS_24H = Source(
    "Binance.ticker_24h",
    Get(f"{API}/ticker/24hr"),
    parse_all,
    licence=BINANCE_LICENCE,
    hosts=EXCHANGES,
    fresh_s=30,
    max_bytes=6 * MIB,
    newest=newest,
    newest_max_s=5 * MINUTE,
    least=20,
    untrusted=True,
    gauge=Gauge(_gauged, PRICE_JUMP),
)


def klines(interval: Interval) -> Source[KlineQuery, tuple[Candle, ...]]:
    """Return the source of BTCUSDT candles of one length."""
    return candle_source(
        "Binance.klines",
        klines_request,
        parse_klines,
        KlineQuery(interval),
        licence=BINANCE_LICENCE,
        hosts=EXCHANGES,
        length_s=LENGTHS_S[interval],
    )


KLINES_HOUR = klines("1h")
KLINES_DAY = klines("1d")
