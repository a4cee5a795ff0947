"""Get a coin's last day, hours and days from the rounds of Chainlink's feed, where no exchange may be used.

The feed's price at an instant is that of the last round before it, so an hour without a round
has a price too: the one in force. A time for which the feed was late is left out. Prices are
the oracle's, a median of its reporters; there is no volume.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from tools.parsing.candles import Candle
from tools.parsing.fields import change_percent
from tools.sources.chainlink import HEARTBEAT_S, PRICE_FEED, ROUND_HISTORY, ROUNDS_A_CALL, Pair, Round, span_of
from toolserver import FallbackReader, read_all

HEARTBEAT = timedelta(seconds=HEARTBEAT_S)
MOST_CALLS = 24  # 4,800 rounds: a month of 160 a day
SOURCES = (PRICE_FEED, ROUND_HISTORY)


class OracleDay(NamedTuple):
    """The change, highest and lowest price of 24 hours, in USD."""

    change_percent: float
    high: float
    low: float


async def read_latest(reading: FallbackReader, pair: Pair) -> tuple[Round, datetime]:
    """Return the latest round of a feed, and when it was fetched. Raise SourceError."""
    latest = await reading.read(PRICE_FEED, pair)
    fetched_at = reading.notes[-1].fetched_at
    assert fetched_at is not None
    return latest, fetched_at


async def read_rounds(reading: FallbackReader, latest: Round, pair: Pair, since: datetime) -> list[Round]:
    """Return the rounds up to the latest, oldest first, from the one in force at `since`.

    They begin later if the feed's phase did, or if they are too many for 24 calls. Raise SourceError.
    """
    rounds = [latest]
    back = 0
    while rounds[0].updated_at > since and back < MOST_CALLS:
        wanted = _estimate_calls(rounds, since)
        spans = [span_of(latest, pair, n) for n in range(back, min(back + wanted, MOST_CALLS))]
        questions = [(ROUND_HISTORY, span) for span in spans if span is not None]
        if not questions:
            break
        answers = await read_all(reading, *questions)
        found = {each.number: each for answer in answers for each in answer}
        rounds = sorted({**found, **{each.number: each for each in rounds}}.values(), key=lambda each: each.number)
        back += wanted
    return rounds


def _estimate_calls(rounds: Sequence[Round], since: datetime) -> int:
    """Return how many calls reach back to `since`, if rounds are as frequent before as they are in those read."""
    seen = rounds[-1].updated_at - rounds[0].updated_at
    if not seen:
        return 1
    return max(1, math.ceil((rounds[0].updated_at - since) / seen * len(rounds) / ROUNDS_A_CALL))


def summarize_day(rounds: Sequence[Round], at: datetime) -> OracleDay | None:
    """Return the 24 hours that end at an instant, or None if the feed had no price in time at their start."""
    start = at - timedelta(days=1)
    first = _find_in_force(rounds, start)
    if first is None:
        return None
    prices = [first.price, *(each.price for each in rounds if each.updated_at > start)]
    return OracleDay(change_percent(prices[-1], prices[0]), max(prices), min(prices))


def make_candles(rounds: Sequence[Round], since: datetime, span: timedelta, count: int) -> tuple[Candle, ...]:
    """Return the candles of `count` periods from `since`, without those at whose start or end the feed was late."""
    candles = []
    for start in (since + n * span for n in range(count)):
        first, last = _find_in_force(rounds, start), _find_in_force(rounds, start + span)
        if first is not None and last is not None:
            inside = [each.price for each in rounds if start < each.updated_at <= start + span]
            prices = [first.price, *inside]
            candles.append(Candle(start, prices[0], max(prices), min(prices), prices[-1], None))
    return tuple(candles)


def _find_in_force(rounds: Sequence[Round], at: datetime) -> Round | None:
    """Return the last round at an instant, or None if there is none, or if the next one was due."""
    index = bisect_right(rounds, at, key=lambda each: each.updated_at) - 1
    return rounds[index] if index >= 0 and at - rounds[index].updated_at <= HEARTBEAT else None
