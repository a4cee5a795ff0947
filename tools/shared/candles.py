"""Get bitcoin candles of completed hours or days from three exchanges, or from the rounds of Chainlink's feed."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from tools.parsing.candles import Candle
from tools.shared import oracle
from tools.sources import binance, coinbase, kraken
from toolserver import DayLine, Fallback, FallbackReader, Source, SourceEmpty

Q = TypeVar("Q")

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
HOUR_SOURCES = (coinbase.CANDLES_HOUR, kraken.OHLC_HOUR, binance.KLINES_HOUR, *oracle.SOURCES)
DAY_SOURCES = (coinbase.CANDLES_DAY, kraken.OHLC_DAY, binance.KLINES_DAY, *oracle.SOURCES)


def btc_hours(count: int) -> tuple[Fallback[tuple[Candle, ...]], ...]:
    """Return the fallbacks for the newest `count` completed hours, oldest first. Binance's are in USDT."""
    return (
        _fallback(coinbase.CANDLES_HOUR, coinbase.CandleQuery(3600), HOUR, count),
        _fallback(kraken.OHLC_HOUR, kraken.OhlcQuery(60), HOUR, count),
        _fallback(binance.KLINES_HOUR, binance.KlineQuery("1h"), HOUR, count),
        _oracle_fallback(HOUR, count),
    )


def btc_days(count: int) -> tuple[Fallback[tuple[Candle, ...]], ...]:
    """Return the fallbacks for the newest `count` completed UTC days, oldest first."""
    return (
        _fallback(coinbase.CANDLES_DAY, coinbase.CandleQuery(86400), DAY, count),
        _fallback(kraken.OHLC_DAY, kraken.OhlcQuery(1440), DAY, count),
        _fallback(binance.KLINES_DAY, binance.KlineQuery("1d"), DAY, count),
        _oracle_fallback(DAY, count),
    )


def closes(candles: Sequence[Candle]) -> tuple[tuple[datetime, float], ...]:
    """Return the closing prices of the newest week of candles of an hour, oldest first; the last may still be open."""
    return tuple((candle.start + HOUR, candle.close) for candle in sorted(candles)[-7 * 24 :])


BTC_DAY = (
    DayLine(coinbase.CANDLES_PROOF, coinbase.CandleQuery(3600), closes),
    DayLine(kraken.OHLC_HOUR, kraken.OhlcQuery(60), closes),
)
"""Where the past day and week of bitcoin are kept, because the price needs it as proof."""


def _fallback(
    source: Source[Q, tuple[Candle, ...]], query: Q, span: timedelta, count: int
) -> Fallback[tuple[Candle, ...]]:
    """Return a fallback that judges by the time of the fetch: a period that has ended since
    was still open in the candles.
    """

    async def fallback(reading: FallbackReader) -> tuple[Candle, ...]:
        candles = await reading.read(source, query)
        fetched_at = reading.notes[-1].fetched_at
        assert fetched_at is not None
        finished = completed(candles, span, count, fetched_at)
        if not finished:
            raise SourceEmpty("no candle of the requested time")
        return finished

    return fallback


def _oracle_fallback(span: timedelta, count: int) -> Fallback[tuple[Candle, ...]]:
    async def fallback(reading: FallbackReader) -> tuple[Candle, ...]:
        latest, at = await oracle.read_latest(reading, "BTC-USD")
        since = _start_of_period(at, span) - count * span
        rounds = await oracle.read_rounds(reading, latest, "BTC-USD", since)
        finished = oracle.make_candles(rounds, since, span, count)
        if not finished:
            raise SourceEmpty("no round of the requested time")
        return finished

    return fallback


def completed(candles: Iterable[Candle], span: timedelta, count: int, at: datetime) -> tuple[Candle, ...]:
    """Return the candles of the newest `count` periods that had ended at an instant, oldest first.

    A period without a candle stays out: no gap is filled, and no older candle moves up.
    """
    end = _start_of_period(at, span)
    by_start = {candle.start: candle for candle in candles if end - count * span <= candle.start < end}
    return tuple(by_start[start] for start in sorted(by_start))


def _start_of_period(at: datetime, span: timedelta) -> datetime:
    """Return when the open hour or UTC day began."""
    length = span.total_seconds()
    return datetime.fromtimestamp(at.timestamp() // length * length, UTC)
