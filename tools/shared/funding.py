"""Funding of perpetual contracts as every venue pays it, made comparable."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal, NamedTuple

from tools.shared.numbers import number, positive
from tools.shared.optional import optional
from tools.shared.times import from_epoch_ms

Venue = Literal["binance", "bybit", "hyperliquid", "dydx", "okx"]

HOURS_A_YEAR = 8760
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


def newest(fundings: Iterable[Funding]) -> datetime | None:
    return max((f.at for f in fundings if f.at), default=None)


def usdt_pair(symbol: str) -> str:
    """BTC-USDT for BTCUSDT."""
    return f"{symbol.removesuffix('USDT')}-USDT"


def rate(value: Any) -> float | None:
    """A required member that is blank where a contract pays no funding."""
    return optional(number, value)


def mark(value: Any) -> float | None:
    return optional(positive, value)


def dead(price: Any) -> bool:
    """Whether a price is given and is none: a market nobody makes, or an answer of zeros."""
    return price not in (None, "") and mark(price) is None


def settlement(milliseconds: Any) -> datetime | None:
    """The time of a settlement; venues write 0 or nothing when there is none."""
    return optional(lambda value: from_epoch_ms(positive(value)), milliseconds)
