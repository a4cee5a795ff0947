"""Binance spot market data from its public data host (JSON, no key; redistribution is barred, some countries are too).

https://developers.binance.com/docs/binance-spot-api-docs/rest-api/market-data-endpoints
"""

from datetime import datetime
from typing import Any, Literal, NamedTuple

from tools.shared.numbers import number, within
from tools.shared.text import clean
from tools.shared.times import from_epoch_ms
from tools.sources import coinbase
from tools.sources.coinbase import JUMP, Candle, candle, traded
from tools.sources.hosts import EXCHANGES
from toolserver.errors import SourceChanged, SourceLimited, SourceRefused
from toolserver.upstream.source import MIB, Gauge, Get, Keys, Licence, Source

API = "https://data-api.binance.vision/api/v3"
LICENCE = Licence("no", "Binance", "https://www.binance.com/en/terms")
GEO, BANNED = 0, -1003  # values of `code`: 0 is an error here
LENGTHS_S = {"1h": 3600, "1d": 86400}
PRICES = ("lastPrice", "highPrice", "lowPrice")

Interval = Literal["1h", "1d"]


class Ticker(NamedTuple):
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


def parse(body: Any, symbol: str) -> Ticker:
    """The symbol's statistics."""
    refuse_error(body)
    if body["symbol"] != symbol:
        raise SourceChanged(f"{body['symbol']!r:.20} for {symbol}")
    return _ticker(body)


def request_all(query: None, keys: Keys) -> Get:
    return Get(f"{API}/ticker/24hr")


def parse_all(body: Any, query: None) -> tuple[Ticker, ...]:
    """All symbols that were traded; a halted one has zeros, or a last price and nothing else."""
    refuse_error(body)
    return tuple(_ticker(row) for row in body if all(number(row[name]) > 0 for name in PRICES))


def refuse_error(body: Any) -> None:
    """Errors are objects with `code` and `msg`, also where a list is the answer."""
    if not isinstance(body, dict) or "code" not in body:
        return
    if body["code"] == BANNED:
        raise SourceLimited("too many requests")
    text = clean(str(body.get("msg")), 80)
    raise (SourceRefused if body["code"] == GEO else SourceChanged)(text)


def _ticker(row: dict[str, Any]) -> Ticker:
    high, low = traded(row["highPrice"]), traded(row["lowPrice"])
    return Ticker(
        symbol=clean(row["symbol"], 40),
        last=traded(row["lastPrice"]),
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
    """Every row, oldest first; the last one is still open."""
    refuse_error(body)
    return tuple(candle(from_epoch_ms(row[0]), *row[1:6]) for row in body)


def _gauged(tickers: tuple[Ticker, ...]) -> dict[str, float]:
    return {f"{t.symbol[:3]}-USD": t.last for t in tickers if t.symbol in ("BTCUSDT", "ETHUSDT")}


def newest(tickers: tuple[Ticker, ...]) -> datetime | None:
    return max((ticker.closed_at for ticker in tickers), default=None)


TICKER_24H = Source(
    "Binance.ticker_24h",
    request,
    parse,
    licence=LICENCE,
    hosts=EXCHANGES,
    fresh_s=30,
    keep_s=86400,
    timeout_s=8,
    newest=lambda ticker: ticker.closed_at,
    newest_max_s=300,
    gauge=Gauge(lambda ticker: _gauged((ticker,)), JUMP),
    probe="BTCUSDT",
)

TICKERS_24H = Source(
    "Binance.ticker_24h",
    request_all,
    parse_all,
    licence=LICENCE,
    hosts=EXCHANGES,
    fresh_s=30,
    keep_s=86400,
    timeout_s=8,
    max_bytes=6 * MIB,
    newest=newest,
    newest_max_s=300,
    least=20,
    untrusted=True,
    gauge=Gauge(_gauged, JUMP),
)


def klines(interval: Interval) -> Source[KlineQuery, tuple[Candle, ...]]:
    """The candles of one length: one public name, and the age that this length allows."""
    return Source(
        "Binance.klines",
        klines_request,
        parse_klines,
        licence=LICENCE,
        hosts=EXCHANGES,
        fresh_s=300,
        keep_s=86400,
        timeout_s=8,
        newest=coinbase.newest,
        newest_max_s=2 * LENGTHS_S[interval],
        least=30,
        probe=KlineQuery(interval),
    )


KLINES_HOUR = klines("1h")
KLINES_DAY = klines("1d")
