"""Get prediction markets, choose the ones that count, and show them as items."""

from collections.abc import Iterable

from pydantic import Field

from tools.parsing.fields import percent
from tools.parsing.prediction_markets import Bet
from tools.sources.kalshi import EVENTS
from tools.sources.polymarket import MARKETS
from toolserver import Definition, Fallback, Meaning, Payload, SourceEmpty, Timestamp, lacking, via

SOURCES = (MARKETS, EVENTS)
OPEN = (0.005, 0.995)  # outside this range a market is as good as decided
SUM_TOLERANCE = 0.05


class BetItem(Payload):
    question: str = Field(description="The question, in the market's words")
    yes_percent: float = Field(
        ge=0, le=100, description="Price of yes as a probability, percent; of Kalshi the last trade"
    )
    no_percent: float = Field(ge=0, le=100, description="100 - yes_percent")
    volume_usd: float = Field(ge=0, description="Traded in 24 hours, USD; of Kalshi contracts times the last price")
    source: str = Field(description="Market place: Polymarket or Kalshi")
    url: str | None = Field(description="Page of the market; null: none")
    ends_at: Timestamp | None = Field(description="When trading is to end; null: not given")
    change_1h_points: float | None = Field(
        description="Change of yes_percent in an hour, percentage points; null: not given"
    )
    change_24h_points: float | None = Field(
        description="Change of yes_percent in 24 hours, percentage points; null: not given"
    )
    liquidity_usd: float | None = Field(description="Orders that wait in the book, USD; null: not given")


def markets() -> tuple[Fallback[tuple[Bet, ...]], ...]:
    """Return the fallbacks for all open yes/no markets that count, largest 24-hour volume first."""
    return via(MARKETS, None, by_volume), via(EVENTS, None, lambda page: by_volume(page.bets))


def shown_markets() -> tuple[Fallback[tuple[Bet, ...]], ...]:
    """Return these fallbacks for an answer of `BetItem`s."""
    first, other = markets()
    return first, lacking(other, "change_1h_points", "liquidity_usd")


def by_volume(bets: Iterable[Bet]) -> tuple[Bet, ...]:
    """Return the markets that count, largest first. Raises SourceEmpty when there are none,
    which does not happen in practice.
    """
    ranked = sorted((bet for bet in bets if counts(bet)), key=lambda bet: bet.volume_24h_usd, reverse=True)
    if not ranked:
        raise SourceEmpty("no open yes/no market")
    return tuple(ranked)


def counts(bet: Bet) -> bool:
    """Return True if the market asks a yes/no question that is still open, with prices that agree with each other."""
    if tuple(name.lower() for name in bet.outcomes) != ("yes", "no") or len(bet.prices) != 2:
        return False
    return is_undecided(bet.prices[0]) and abs(sum(bet.prices) - 1) <= SUM_TOLERANCE


def is_undecided(yes: float) -> bool:
    """Return True if a price of yes, 0 to 1, leaves the question open."""
    low, high = OPEN
    return low < yes < high


UNDECIDED = (
    Meaning(
        "predictions.yes_percent",
        "A market at 0.5 % or less, or at 99.5 % or more, is as good as decided, and left out",
        decide=is_undecided,
        rows=((0.005, False), (0.0051, True), (0.9949, True), (0.995, False)),
    ),
    Meaning(
        "predictions.yes_percent",
        "Polymarket shows the middle of bid and ask, or the last trade where they are more than 0.10 apart; that its "
        "list gives this price is not written anywhere",
        definition=Definition(publisher="Polymarket", link="https://docs.polymarket.com/concepts/prices-orderbook"),
    ),
)


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
