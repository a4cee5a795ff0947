"""Describe an open prediction market of any provider."""

from datetime import datetime
from typing import NamedTuple


class Bet(NamedTuple):
    """One open market. `prices` (0…1) match `outcomes`, and are empty when there are none yet;
    changes are of the first.

    `updated_at` is when the provider wrote the row: Polymarket writes all rows at once, so it
    does not indicate a trade.
    """

    id: str
    question: str
    outcomes: tuple[str, ...]
    prices: tuple[float, ...]
    volume_24h_usd: float
    source: str
    url: str | None = None
    liquidity_usd: float | None = None
    change_1h: float | None = None
    change_24h: float | None = None
    ends_at: datetime | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None


def newest_bet(bets: tuple[Bet, ...]) -> datetime | None:
    return max((bet.updated_at for bet in bets if bet.updated_at), default=None)
