"""Get the current price of an asset and its last 24 hours, from the first venue that answers."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

import anyio

from tools.parsing.candles import Candle
from tools.parsing.coins import LARGEST, Coin, CoinUnknown, by_symbol, find_coin
from tools.parsing.fields import change_percent
from tools.shared import oracle
from tools.sources import binance, coinbase, kraken, okx
from tools.sources.chainlink import Pair
from tools.sources.coingecko import COINS_MARKETS
from tools.sources.coinlore import TICKERS
from tools.sources.coinpaprika import TICKERS as COINPAPRIKA
from toolserver import (
    Fallback,
    FallbackReader,
    Meaning,
    SourceDown,
    SourceError,
    SourceFrozen,
    SourceUnproved,
    read_beside,
    via,
)

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
ROUNDS_WITHIN_S = 4.0  # the price is known by then; its day is not worth more time
NEAR, NEAR_VOLUME = 0.02, 0.025  # candles are a quarter of an hour old at most, and begin with the hour


class Spot(NamedTuple):
    """A price and its last 24 hours; None is what the venue does not publish.

    A price quoted in USDT is in USDT: it is marked, not converted.
    """

    price_usd: float
    change_24h_percent: float | None
    high_24h: float | None
    low_24h: float | None
    volume_24h_usd: float | None
    venue: str
    quote: Literal["USD", "USDT"] = "USD"
    symbol: str = "BTC"
    name: str = "Bitcoin"

    @property
    def missing(self) -> list[str]:
        """The fields that are None."""
        return [name for name, value in self._asdict().items() if value is None]


def btc_spot_fallbacks() -> tuple[Fallback[Spot], ...]:
    """Return the fallbacks for the bitcoin price: four exchanges, two market pages, and the chain last."""
    return (
        coinbase_btc,
        kraken_btc,
        via(binance.TICKER_24H, "BTCUSDT", from_binance),
        via(okx.SPOT_TICKERS, None, from_okx("BTC")),
        via(COINS_MARKETS, None, from_coins("BTC", "coingecko")),
        via(TICKERS, None, from_coins("BTC", "coinlore")),
        from_oracle("BTC-USD"),
    )


def spot_fallbacks(written: str, now: datetime) -> tuple[Fallback[Spot | CoinUnknown], ...]:
    """Return the fallbacks for the price of any of the largest coins, as its symbol, name or id is written.

    The first two lists have the 250 largest, so a coin that they lack is unknown. The third
    has 100: a coin that it lacks may exist. Ether is also priced on the chain.
    """
    lists = (
        via(COINS_MARKETS, LARGEST, from_complete_list(written, "coingecko", now)),
        via(COINPAPRIKA, LARGEST, from_complete_list(written, "coinpaprika", now)),
        via(TICKERS, None, from_short_list(written, "coinlore", now)),
    )
    if written.casefold() in ETHER:
        return (*lists, from_oracle("ETH-USD", *ETHER_NAMES))
    return lists


ETHER, ETHER_NAMES = frozenset({"eth", "ethereum", "ether"}), ("ETH", "Ethereum")
COIN_OLDEST = timedelta(minutes=15)  # a price that its list has not renewed for so long is none


def from_complete_list(written: str, venue: str, now: datetime) -> Callable[[Sequence[Coin]], Spot | CoinUnknown]:
    """Pick a coin from a list of the largest. A coin that it lacks is an answer too, as no other list would have it."""

    def pick(coins: Sequence[Coin]) -> Spot | CoinUnknown:
        try:
            return _from_coin(find_coin(coins, written), venue, now)
        except CoinUnknown as unknown:
            return unknown

    return pick


def from_short_list(written: str, venue: str, now: datetime) -> Callable[[Sequence[Coin]], Spot]:
    """Pick a coin from a list of fewer. Raises LookupError without it."""

    def pick(coins: Sequence[Coin]) -> Spot:
        try:
            return _from_coin(find_coin(coins, written), venue, now)
        except CoinUnknown:
            raise LookupError("not among the coins of this list") from None

    return pick


def _from_coin(coin: Coin, venue: str, now: datetime) -> Spot:
    """Return the spot price of one coin of a list. Raises SourceFrozen if its own time is too long ago."""
    if coin.updated_at is not None and now - coin.updated_at > COIN_OLDEST:
        raise SourceFrozen(f"{coin.symbol} was last priced at {coin.updated_at:%H:%M}")
    return _as_listed(coin, venue)


def _as_listed(coin: Coin, venue: str) -> Spot:
    return Spot(
        price_usd=coin.price_usd,
        change_24h_percent=coin.change_24h_percent,
        high_24h=coin.high_24h,
        low_24h=coin.low_24h,
        volume_24h_usd=coin.volume_24h_usd,
        venue=venue,
        symbol=coin.symbol,
        name=coin.name,
    )


BTC_SPOT_SOURCES = (
    coinbase.PRODUCT_STATS,
    coinbase.CANDLES_PROOF,
    kraken.TICKER,
    kraken.OHLC_HOUR,
    binance.TICKER_24H,
    okx.SPOT_TICKERS,
    COINS_MARKETS,
    TICKERS,
    *oracle.SOURCES,
)
SPOT_SOURCES = (*BTC_SPOT_SOURCES, COINPAPRIKA)
"""The sources of the price of any coin."""


async def coinbase_btc(reading: FallbackReader) -> Spot:
    """Return Coinbase's statistics, which have no timestamp: its candles prove that they are current."""
    proof = (coinbase.CANDLES_PROOF, coinbase.CandleQuery(3600))
    both = await read_beside(reading, (coinbase.PRODUCT_STATS, "BTC-USD"), proof)
    stats, candles = both
    if isinstance(candles, SourceFrozen):
        reading.asked = coinbase.CANDLES_PROOF
        raise candles  # the venue's data are frozen
    if isinstance(candles, SourceError):
        await _require_second(reading, stats.last)
    elif not is_of_today(stats.last, stats.volume, candles):
        raise SourceFrozen("the statistics do not match the candles")
    return from_stats(stats)


async def _require_second(reading: FallbackReader, price: float) -> None:
    """Raise SourceUnproved unless Kraken agrees with a price that nothing else proves."""
    ticker = await reading.attempt(kraken.TICKER, "XBTUSD")
    if ticker is None or abs(ticker.last - price) > NEAR * price:
        raise SourceUnproved("neither candles nor Kraken prove the statistics")


def is_of_today(price: float, volume: float, candles: Sequence[Candle]) -> bool:
    """Return True if a ticker matches the price of the candles and their volume of 24 hours, give or take an hour."""
    start = candles[-1].start - DAY
    near_price = abs(price - candles[-1].close) <= NEAR * price
    least = sum(candle.volume or 0 for candle in candles if candle.start > start)
    most = sum(candle.volume or 0 for candle in candles if candle.start >= start)
    return near_price and (1 - NEAR_VOLUME) * least <= volume <= (1 + NEAR_VOLUME) * most


async def kraken_btc(reading: FallbackReader) -> Spot:
    """Return Kraken's ticker; its hourly candles prove it, since it has no time, and hold the price of a day ago.

    Raises the SourceError of the candles when they fail or are frozen, SourceFrozen when the
    ticker does not match them.
    """
    both = await read_beside(reading, (kraken.TICKER, "XBTUSD"), (kraken.OHLC_HOUR, kraken.OhlcQuery(60)))
    ticker, candles = both
    if isinstance(candles, SourceError):
        reading.asked = kraken.OHLC_HOUR
        raise candles  # without the candles the ticker has no time
    if not is_of_today(ticker.last, ticker.volume, candles):
        raise SourceFrozen("the ticker does not match the candles")
    read_at = next(note.fetched_at for note in reading.notes if note.source is kraken.TICKER and note.fetched_at)
    return from_kraken(ticker, price_a_day_ago(candles, read_at))


def price_a_day_ago(candles: Sequence[Candle], now: datetime) -> float | None:
    """Return the price 24 hours before the minute of `now`, on a line from open to close of the hour around it.

    None without a candle of that hour.
    """
    then = now.replace(second=0, microsecond=0) - DAY
    hour = next((candle for candle in candles if candle.start <= then < candle.start + HOUR), None)
    return None if hour is None else hour.open + (hour.close - hour.open) * ((then - hour.start) / HOUR)


CHANGE_24H = Meaning(
    "btc-price.change_24h_percent",
    "Coinbase, Binance and OKX publish rolling 24 hours. Kraken publishes none: ours is against the price 24 hours "
    "before, on a line through the hour's candle. Volume in USD of Coinbase is that in coins at the last price. Of "
    "Chainlink change, high and low are of the oracle's rounds, and there is no volume",
)


def from_stats(stats: coinbase.ProductStats) -> Spot:
    return Spot(
        price_usd=stats.last,
        change_24h_percent=change_percent(stats.last, stats.open),
        high_24h=stats.high,
        low_24h=stats.low,
        volume_24h_usd=stats.volume * stats.last,
        venue="coinbase",
    )


def from_kraken(ticker: kraken.KrakenTicker, a_day_ago: float | None) -> Spot:
    return Spot(
        price_usd=ticker.last,
        change_24h_percent=None if a_day_ago is None else change_percent(ticker.last, a_day_ago),
        high_24h=ticker.high,
        low_24h=ticker.low,
        volume_24h_usd=ticker.quote_volume,
        venue="kraken",
    )


def from_binance(ticker: binance.BinanceTicker) -> Spot:
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
    """Pick the asset quoted in USDT from the list. Raises LookupError without it."""

    def pick(tickers: Sequence[okx.SpotTicker]) -> Spot:
        matching = [ticker for ticker in tickers if (ticker.base, ticker.quote) == (base, "USDT")]
        if not matching:
            raise LookupError(f"{base}-USDT is not listed")
        ticker = matching[0]
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
    """Pick the largest coin of that symbol from the list. Raises LookupError without it."""

    def pick(coins: Sequence[Coin]) -> Spot:
        return _as_listed(by_symbol(coins, symbol), venue)

    return pick


def from_oracle(pair: Pair, symbol: str = "BTC", name: str = "Bitcoin") -> Fallback[Spot]:
    """Return the fallback for a price on the chain, with its day, of oracle rounds, as far as they can be read."""

    async def fallback(reading: FallbackReader) -> Spot:
        latest, at = await oracle.read_latest(reading, pair)
        price_only = Spot(latest.price, None, None, None, None, "chainlink", symbol=symbol, name=name)
        try:
            with anyio.fail_after(ROUNDS_WITHIN_S):
                rounds = await oracle.read_rounds(reading, latest, pair, at - DAY)
        except TimeoutError:
            reading.note_failure(SourceDown(f"no answer within {ROUNDS_WITHIN_S:g} s", word="timeout"))
            return price_only
        except SourceError as error:
            reading.note_failure(error)
            return price_only
        day = oracle.summarize_day(rounds, at)
        if day is None:
            return price_only
        return price_only._replace(change_24h_percent=day.change_percent, high_24h=day.high, low_24h=day.low)

    return fallback
