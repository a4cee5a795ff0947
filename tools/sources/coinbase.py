"""Coinbase market data: 24-hour statistics, candles and spot prices (JSON, no key; redistribution is barred).

https://docs.cdp.coinbase.com/exchange/reference/exchangerestapi_getproductstats
"""

from datetime import datetime
from typing import Any, NamedTuple

from tools.shared.numbers import number, positive, within
from tools.shared.times import from_epoch
from tools.sources.hosts import EXCHANGES
from toolserver.errors import SourceEmpty
from toolserver.upstream.source import Gauge, Get, Keys, Licence, Source

EXCHANGE = "https://api.exchange.coinbase.com"
LICENCE = Licence("no", "Coinbase", "https://www.coinbase.com/legal/market_data")
JUMP = 0.4  # of a price, between two good answers
LEEWAY = 1.001  # the day's high and low may lag behind the last trade


class Candle(NamedTuple):
    """One period of trading, which begins at `start`. `volume` is in the asset, not in money."""

    start: datetime
    open: float
    high: float
    low: float
    close: float
    volume: float


class ProductStats(NamedTuple):
    """A product's last 24 hours. `open` is the price 24 hours ago, `volume` is in the asset."""

    product: str
    open: float
    high: float
    low: float
    last: float
    volume: float


class SpotPrice(NamedTuple):
    """The price of one unit, in USD."""

    pair: str
    price: float


class CandleQuery(NamedTuple):
    """BTC-USD candles of so many seconds."""

    granularity_s: int


def traded(value: Any) -> float:
    """A price. Zero means that there was no trade: SourceEmpty. Raises ValueError below zero."""
    if number(value) == 0:
        raise SourceEmpty("the price is 0")
    return positive(value)


def candle(start: datetime, opened: Any, high: Any, low: Any, close: Any, volume: Any) -> Candle:
    """A candle from numbers or strings. Raises ValueError when open or close lie outside low…high."""
    top, bottom = traded(high), traded(low)
    first, last = (within(traded(value), bottom / LEEWAY, top * LEEWAY) for value in (opened, close))
    return Candle(start, first, top, bottom, last, within(number(volume), 0, 1e15))


def stats_request(product: str, keys: Keys) -> Get:
    return Get(f"{EXCHANGE}/products/{product}/stats")


def parse_stats(body: Any, product: str) -> ProductStats:
    """The statistics; all numbers are strings upstream."""
    last, high, low = traded(body["last"]), traded(body["high"]), traded(body["low"])
    return ProductStats(
        product=product,
        open=traded(body["open"]),
        high=high,
        low=low,
        last=within(last, low / LEEWAY, high * LEEWAY),
        volume=within(number(body["volume"]), 0, 1e15),
    )


def candles_request(query: CandleQuery, keys: Keys) -> Get:
    return Get(f"{EXCHANGE}/products/BTC-USD/candles", params={"granularity": str(query.granularity_s)})


def parse_candles(body: Any, query: CandleQuery) -> tuple[Candle, ...]:
    """Every row, oldest first (upstream: newest first). The last one is still open; quiet periods are missing."""
    found = [_row(*row[:6]) for row in body]
    return tuple(sorted(found, key=lambda each: each.start))


def _row(start: Any, low: Any, high: Any, opened: Any, close: Any, volume: Any) -> Candle:
    return candle(from_epoch(start), opened, high, low, close, volume)


def newest(candles: tuple[Candle, ...]) -> datetime | None:
    return max((each.start for each in candles), default=None)


def spot_request(pair: str, keys: Keys) -> Get:
    return Get(f"https://api.coinbase.com/v2/prices/{pair}/spot")


def parse_spot(body: Any, pair: str) -> SpotPrice:
    """The amount, a string upstream."""
    return SpotPrice(pair, traded(body["data"]["amount"]))


PRODUCT_STATS = Source(
    "Coinbase.product_stats",
    stats_request,
    parse_stats,
    licence=LICENCE,
    hosts=EXCHANGES,
    fresh_s=15,
    keep_s=86400,
    timeout_s=5,
    gauge=Gauge(lambda stats: {stats.product: stats.last}, JUMP),
    probe="BTC-USD",
)

SPOT_PRICE = Source(
    "Coinbase.spot_price",
    spot_request,
    parse_spot,
    licence=LICENCE,
    hosts=EXCHANGES,
    fresh_s=30,
    keep_s=86400,
    timeout_s=5,
    gauge=Gauge(lambda spot: {spot.pair: spot.price}, JUMP),
    probe="ETH-USD",
)


def candles(granularity_s: int) -> Source[CandleQuery, tuple[Candle, ...]]:
    """The candles of one length: one public name, and the age that this length allows."""
    return Source(
        "Coinbase.candles",
        candles_request,
        parse_candles,
        licence=LICENCE,
        hosts=EXCHANGES,
        fresh_s=300,
        keep_s=86400,
        timeout_s=8,
        newest=newest,
        newest_max_s=2 * granularity_s,
        least=25,
        probe=CandleQuery(granularity_s),
    )


CANDLES_HOUR = candles(3600)
CANDLES_DAY = candles(86400)
