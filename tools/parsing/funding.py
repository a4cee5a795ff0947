"""Funding of perpetual contracts as every venue pays it, made comparable."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from statistics import median
from typing import Any, Literal, NamedTuple

from tools.parsing.numbers import number, positive
from tools.parsing.optional import optional
from tools.parsing.times import from_epoch_ms

Venue = Literal["binance", "bybit", "hyperliquid", "dydx", "okx"]

HOURS_A_YEAR = 8760
APART, SHARED = 0.005, 5  # marks of one instant differ by less; judged by so many contracts at least
ABSURD_PERCENT = 10_000  # a year; beyond it is a contract being wound up, not a market


class Funding(NamedTuple):
    """What holders of a contract pay each other at the coming settlement, as a fraction of its value.

    `symbol` is BASE-QUOTE. A positive rate is paid by those who are long.
    """

    symbol: str
    period_rate: float
    period_hours: float
    mark_price: float | None
    next_at: datetime | None
    at: datetime | None = None

    @property
    def annualized_percent(self) -> float:
        return self.period_rate * HOURS_A_YEAR / self.period_hours * 100


class VenueFundings(NamedTuple):
    """The contracts of a venue; `predicted` when another venue says what this one will pay."""

    venue: Venue
    fundings: tuple[Funding, ...]
    predicted: bool = False


def largest(venues: Iterable[VenueFundings], limit: int = 20) -> list[tuple[VenueFundings, Funding]]:
    """The contracts with the largest annualized rate of either sign, the absurd left out."""
    pairs = [(venue, funding) for venue in venues for funding in venue.fundings]
    sound = [pair for pair in pairs if abs(pair[1].annualized_percent) <= ABSURD_PERCENT]
    return sorted(sound, key=lambda pair: abs(pair[1].annualized_percent), reverse=True)[:limit]


def list_disagreeing(venues: Sequence[VenueFundings]) -> list[VenueFundings]:
    """The venues whose prices are not those of the others: half of what they share is farther apart than `APART`.

    Of two venues that disagree nobody knows which is right: both are given.
    """
    prices = {venue.venue: _prices(venue) for venue in venues}
    apart = []
    for venue in venues:
        others = [prices[other.venue] for other in venues if other is not venue]
        judged = [_distance(prices[venue.venue], other) for other in others]
        known = [distance for distance in judged if distance is not None]
        if known and min(known) > APART:
            apart.append(venue)
    return apart


def _prices(venue: VenueFundings) -> dict[str, float]:
    """Mark prices by the coin's name at most venues: contracts on a thousand are called kPEPE or 1000PEPE."""
    bases = ((f.symbol.split("-")[0], f.mark_price) for f in venue.fundings)
    return {f"1000{base[1:]}" if base[:1] == "k" else base: mark for base, mark in bases if mark}


def _distance(one: Mapping[str, float], other: Mapping[str, float]) -> float | None:
    shared = [abs(one[base] / other[base] - 1) for base in one.keys() & other.keys()]
    return median(shared) if len(shared) >= SHARED else None


def newest(fundings: Iterable[Funding]) -> datetime | None:
    return max((f.at for f in fundings if f.at), default=None)


def usdt_pair(symbol: str) -> str:
    """BTC-USDT for BTCUSDT."""
    return f"{symbol.removesuffix('USDT')}-USDT"


def rate(value: Any) -> float | None:
    """A required member that is blank where a contract pays no funding. Raises ValueError for what is no number."""
    return None if value is None or value == "" else number(value)


def mark(value: Any) -> float | None:
    return optional(positive, value)


def dead(price: Any) -> bool:
    """Whether a price is given and is none: a market nobody makes, or an answer of zeros."""
    return price not in (None, "") and mark(price) is None


def settlement(milliseconds: Any) -> datetime | None:
    """The time of a settlement; venues write 0 or nothing when there is none."""
    return optional(lambda value: from_epoch_ms(positive(value)), milliseconds)
