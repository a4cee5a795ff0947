"""Read Coinbase market data: 24-hour statistics, candles, spot prices (JSON, no key; redistribution is barred).

https://docs.cdp.coinbase.com/exchange/reference/exchangerestapi_getproductstats
"""

from dataclasses import replace
from typing import Any, NamedTuple

from tools.parsing.candles import LEEWAY, Candle, candle, candle_source
from tools.parsing.fields import PRICE_JUMP, from_epoch, number, traded_price, within
from tools.sources.hosts import EXCHANGES
from toolserver import Gauge, Get, Keys, Licence, Source, read_rows

EXCHANGE = "https://api.exchange.coinbase.com"
LICENCE = Licence("no", "Coinbase", "https://www.coinbase.com/legal/market_data")


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
    """BTC-USD candles of a length in seconds."""

    granularity_s: int


def stats_request(product: str, keys: Keys) -> Get:
    return Get(f"{EXCHANGE}/products/{product}/stats")


def parse_stats(body: Any, product: str) -> ProductStats:
    """Return the statistics; all numbers are strings upstream."""
    last, high, low = traded_price(body["last"]), traded_price(body["high"]), traded_price(body["low"])
    return ProductStats(
        product=product,
        open=traded_price(body["open"]),
        high=high,
        low=low,
        last=within(last, low / LEEWAY, high * LEEWAY),
        volume=within(number(body["volume"]), 0, 1e15),
    )


def candles_request(query: CandleQuery, keys: Keys) -> Get:
    return Get(f"{EXCHANGE}/products/BTC-USD/candles", params={"granularity": str(query.granularity_s)})


def parse_candles(body: Any, query: CandleQuery) -> tuple[Candle, ...]:
    """Return every row, oldest first (upstream: newest first). The last candle is open; quiet periods are missing."""
    candles = read_rows(body, lambda row: _row(*row[:6]))
    return tuple(sorted(candles, key=lambda each: each.start))


def _row(start: Any, low: Any, high: Any, opened: Any, close: Any, volume: Any) -> Candle:
    return candle(from_epoch(start), opened, high, low, close, volume)


def spot_request(pair: str, keys: Keys) -> Get:
    return Get(f"https://api.coinbase.com/v2/prices/{pair}/spot")


def parse_spot(body: Any, pair: str) -> SpotPrice:
    """Return the amount, a string upstream."""
    return SpotPrice(pair, traded_price(body["data"]["amount"]))


PRODUCT_STATS = Source(
    "Coinbase.product_stats",
    stats_request,
    parse_stats,
    licence=LICENCE,
    hosts=EXCHANGES,
    fresh_s=15,
    timeout_s=5,
    moves=lambda stats: (stats.last, stats.volume),
    gauge=Gauge(lambda stats: {stats.product: stats.last}, PRICE_JUMP),
    probe="BTC-USD",
)

SPOT_PRICE = Source(
    "Coinbase.spot_price",
    spot_request,
    parse_spot,
    licence=LICENCE,
    hosts=EXCHANGES,
    fresh_s=30,
    timeout_s=5,
    gauge=Gauge(lambda spot: {spot.pair: spot.price}, PRICE_JUMP),
    probe="ETH-USD",
)


def candles(length_s: int) -> Source[CandleQuery, tuple[Candle, ...]]:
    """Return the source of BTC-USD candles of a length in seconds."""
    query = CandleQuery(length_s)
    return candle_source(
        "Coinbase.candles",
        candles_request,
        parse_candles,
        query,
        licence=LICENCE,
        hosts=EXCHANGES,
        length_s=length_s,
        least=25,
    )


CANDLES_HOUR = candles(3600)
CANDLES_DAY = candles(86400)
CANDLES_PROOF = replace(CANDLES_HOUR, fresh_s=900)
"""The candles that show now and then that the statistics, which carry no time, are of today."""
