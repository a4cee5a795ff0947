"""Make the funding rates of perpetual contracts comparable across venues."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from statistics import median
from typing import Any, Literal, NamedTuple

from tools.parsing.fields import from_epoch_ms, number, optional, positive

Venue = Literal["binance", "bybit", "hyperliquid", "dydx", "okx"]

HOURS_A_YEAR = 8760
APART, SHARED = 0.005, 5  # marks of one instant differ by less; at least this many shared contracts are needed to judge
ABSURD_PERCENT = 10_000  # a year; a contract beyond this is being wound up


class Funding(NamedTuple):
    """The payment between the holders of a contract at the next settlement, as a fraction of the contract's value.

    `symbol` is BASE-QUOTE. Holders of long positions pay a positive rate.
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
    """The contracts of a venue; `predicted` when another venue forecasts the rates of this one."""

    venue: Venue
    fundings: tuple[Funding, ...]
    predicted: bool = False


def largest(venues: Iterable[VenueFundings], limit: int = 20) -> list[tuple[VenueFundings, Funding]]:
    """Return the contracts with the largest annualized rates of either sign, without absurd ones."""
    pairs = [(venue, funding) for venue in venues for funding in venue.fundings]
    sound = [pair for pair in pairs if abs(pair[1].annualized_percent) <= ABSURD_PERCENT]
    return sorted(sound, key=lambda pair: abs(pair[1].annualized_percent), reverse=True)[:limit]


def list_disagreeing(venues: Sequence[VenueFundings]) -> list[VenueFundings]:
    """Return the venues whose prices disagree: the median distance from every other venue exceeds `APART`.

    When only two venues disagree, both are returned, since neither is known to be right.
    """
    prices = {venue.venue: _prices(venue) for venue in venues}
    apart = []
    for venue in venues:
        others = [prices[other.venue] for other in venues if other is not venue]
        judged = [_distance(prices[venue.venue], other) for other in others]
        distances = [distance for distance in judged if distance is not None]
        if distances and min(distances) > APART:
            apart.append(venue)
    return apart


def _prices(venue: VenueFundings) -> dict[str, float]:
    """Return mark prices by the coin's most common name: contracts on a thousand coins are called kPEPE or 1000PEPE."""
    bases = ((f.symbol.split("-")[0], f.mark_price) for f in venue.fundings)
    return {f"1000{base[1:]}" if base[:1] == "k" else base: mark for base, mark in bases if mark}


def _distance(one: Mapping[str, float], other: Mapping[str, float]) -> float | None:
    shared = [abs(one[base] / other[base] - 1) for base in one.keys() & other.keys()]
    return median(shared) if len(shared) >= SHARED else None


def newest(fundings: Iterable[Funding]) -> datetime | None:
    return max((f.at for f in fundings if f.at), default=None)


def usdt_pair(symbol: str) -> str:
    """Return BTC-USDT for BTCUSDT."""
    return f"{symbol.removesuffix('USDT')}-USDT"


def rate(value: Any) -> float | None:
    """Return a required rate, None for a blank: the contract pays no funding. Raises ValueError for any other text."""
    return None if value is None or value == "" else number(value)


def mark(value: Any) -> float | None:
    return optional(positive, value)


def dead(price: Any) -> bool:
    """Return True if a price is present but not positive: nobody makes that market, or the answer holds only zeros."""
    return price not in (None, "") and mark(price) is None


def settlement(milliseconds: Any) -> datetime | None:
    """Return the time of a settlement, None for 0 or a blank, which venues write when there is none."""
    return optional(lambda value: from_epoch_ms(positive(value)), milliseconds)
