"""What one unit of an asset costs now, and the 24 hours before, from whichever venue answers first."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Literal, NamedTuple

from tools.shared.coins import Coin, by_symbol
from tools.shared.numbers import change_percent
from tools.sources import binance, coinbase, kraken, okx
from tools.sources.chainlink import PRICE_FEED, Round
from tools.sources.coinbase import Candle
from tools.sources.coingecko import COINS_MARKETS
from tools.sources.coinlore import TICKERS
from toolserver.context import Leg, Reading, via

DAY = timedelta(days=1)
FAR = 0.2  # of the price: no hour has seen that much


class Spot(NamedTuple):
    """A price and its last 24 hours; None is what the venue does not say.

    A price quoted in USDT is in USDT: it is marked, not converted.
    """

    price_usd: float
    change_24h_percent: float | None
    high_24h: float | None
    low_24h: float | None
    volume_24h_usd: float | None
    venue: str
    quote: Literal["USD", "USDT"] = "USD"

    @property
    def missing(self) -> list[str]:
        """The fields that are None."""
        return [name for name, value in self._asdict().items() if value is None]


def btc_spot_legs() -> tuple[Leg[Spot], ...]:
    """The bitcoin price: four exchanges, two market pages, and the chain as the last resort."""
    return (
        via(coinbase.PRODUCT_STATS, "BTC-USD", from_stats),
        kraken_btc,
        via(binance.TICKER_24H, "BTCUSDT", from_binance),
        via(okx.SPOT_TICKERS, None, from_okx("BTC")),
        via(COINS_MARKETS, None, from_coins("BTC", "coingecko")),
        via(TICKERS, None, from_coins("BTC", "coinlore")),
        via(PRICE_FEED, "BTC-USD", from_round),
    )


BTC_SPOT_SOURCES = (
    coinbase.PRODUCT_STATS,
    kraken.TICKER,
    kraken.OHLC_HOUR,
    binance.TICKER_24H,
    okx.SPOT_TICKERS,
    COINS_MARKETS,
    TICKERS,
    PRICE_FEED,
)


async def kraken_btc(reading: Reading) -> Spot:
    """Kraken's ticker, and its hourly candles for the price of a day ago, which the ticker lacks."""
    ticker = await reading.read(kraken.TICKER, "XBTUSD")
    candles = await reading.attempt(kraken.OHLC_HOUR, kraken.OhlcQuery(60))
    known = candles if candles and fits(ticker.last, candles[-1]) else None
    return from_kraken(ticker, close_a_day_ago(known) if known else None)


def fits(price: float, newest: Candle) -> bool:
    """Whether the newest candle is of the same market as the price: its close may be an hour old, not another price."""
    return abs(newest.close - price) <= FAR * price


def close_a_day_ago(candles: Sequence[Candle]) -> float | None:
    """The close of the candle that began a day before the newest one, or None without such a candle."""
    start = candles[-1].start - DAY
    return next((candle.close for candle in candles if candle.start == start), None)


def from_stats(stats: coinbase.ProductStats) -> Spot:
    return Spot(
        price_usd=stats.last,
        change_24h_percent=change_percent(stats.last, stats.open),
        high_24h=stats.high,
        low_24h=stats.low,
        volume_24h_usd=stats.volume * stats.last,
        venue="coinbase",
    )


def from_kraken(ticker: kraken.Ticker, a_day_ago: float | None) -> Spot:
    return Spot(
        price_usd=ticker.last,
        change_24h_percent=None if a_day_ago is None else change_percent(ticker.last, a_day_ago),
        high_24h=ticker.high,
        low_24h=ticker.low,
        volume_24h_usd=ticker.quote_volume,
        venue="kraken",
    )


def from_binance(ticker: binance.Ticker) -> Spot:
    return Spot(
        price_usd=ticker.last,
        change_24h_percent=ticker.change_percent,
        high_24h=ticker.high,
        low_24h=ticker.low,
        volume_24h_usd=ticker.quote_volume,
        venue="binance",
        quote="USDT",
    )


def from_okx(base: str) -> Callable[[Sequence[okx.SpotTicker]], Spot]:
    """Picks the asset quoted in USDT from the list. Raises LookupError without it."""

    def pick(tickers: Sequence[okx.SpotTicker]) -> Spot:
        found = [ticker for ticker in tickers if (ticker.base, ticker.quote) == (base, "USDT")]
        if not found:
            raise LookupError(f"{base}-USDT is not listed")
        ticker = found[0]
        return Spot(
            price_usd=ticker.last,
            change_24h_percent=change_percent(ticker.last, ticker.open),
            high_24h=ticker.high,
            low_24h=ticker.low,
            volume_24h_usd=ticker.quote_volume,
            venue="okx",
            quote="USDT",
        )

    return pick


def from_coins(symbol: str, venue: str) -> Callable[[Sequence[Coin]], Spot]:
    """Picks the largest coin of that symbol from the list. Raises LookupError without it."""

    def pick(coins: Sequence[Coin]) -> Spot:
        coin = by_symbol(coins, symbol)
        return Spot(
            price_usd=coin.price_usd,
            change_24h_percent=coin.change_24h_percent,
            high_24h=coin.high_24h,
            low_24h=coin.low_24h,
            volume_24h_usd=coin.volume_24h_usd,
            venue=venue,
        )

    return pick


def from_round(found: Round) -> Spot:
    """A price and nothing else."""
    return Spot(found.price, None, None, None, None, "chainlink")
