"""Get prediction markets, choose the ones that count, and show them as items."""

from collections.abc import Iterable

from pydantic import Field

from tools.parsing.fields import percent
from tools.parsing.prediction_markets import Bet
from tools.sources.kalshi import EVENTS
from tools.sources.polymarket import MARKETS
from toolserver import Fallback, Payload, SourceEmpty, Timestamp, via

SOURCES = (MARKETS, EVENTS)
OPEN = (0.005, 0.995)  # outside this range a market is as good as decided
SUM_TOLERANCE = 0.05


class BetItem(Payload):
    question: str
    yes_percent: float = Field(ge=0, le=100)
    no_percent: float = Field(ge=0, le=100)
    volume_usd: float = Field(ge=0, description="Past 24 hours")
    source: str
    url: str | None
    ends_at: Timestamp | None
    change_1h_points: float | None = Field(description="Of yes_percent")
    change_24h_points: float | None
    liquidity_usd: float | None


def markets() -> tuple[Fallback[tuple[Bet, ...]], ...]:
    """Return the fallbacks for all open yes/no markets that count, largest 24-hour volume first."""
    return via(MARKETS, None, by_volume), via(EVENTS, None, lambda page: by_volume(page.bets))


def by_volume(bets: Iterable[Bet]) -> tuple[Bet, ...]:
    """Return the markets that count, largest first. Raises SourceEmpty when there are none, which does not happen in
    practice.
    """
    ranked = sorted((bet for bet in bets if counts(bet)), key=lambda bet: bet.volume_24h_usd, reverse=True)
    if not ranked:
        raise SourceEmpty("no open yes/no market")
    return tuple(ranked)


def counts(bet: Bet) -> bool:
    """Return True if the market asks a yes/no question that is still open, with prices that agree with each other."""
    if tuple(name.lower() for name in bet.outcomes) != ("yes", "no") or len(bet.prices) != 2:
        return False
    low, high = OPEN
    return low < bet.prices[0] < high and abs(sum(bet.prices) - 1) <= SUM_TOLERANCE


def show_bet(bet: Bet) -> BetItem:
    yes = round(100 * bet.prices[0], 1)
    return BetItem(
        question=bet.question,
        yes_percent=yes,
        no_percent=round(100 - yes, 1),
        volume_usd=round(bet.volume_24h_usd, 2),
        source=bet.source,
        url=bet.url,
        ends_at=bet.ends_at,
        change_1h_points=_points(bet.change_1h),
        change_24h_points=_points(bet.change_24h),
        liquidity_usd=None if bet.liquidity_usd is None else round(bet.liquidity_usd, 2),
    )


def _points(change: float | None) -> float | None:
    return None if change is None else percent(100 * change)
