"""GET /api/predictions."""

from typing import Annotated

from pydantic import ConfigDict, Field, RootModel

from tools.shared.bets import SOURCES, BetItem, show_bet, shown_markets
from toolserver import CardValue, Picture, ToolContext, tool, up_to

SHOWN = 15


class Predictions(RootModel[Annotated[list[BetItem], Field(max_length=SHOWN, description="Largest volume first")]]):
    model_config = ConfigDict(frozen=True, defer_build=True)


@tool(
    path="/api/predictions",
    title="Prediction markets",
    search_hint="what are the odds chance probability of election betting will win year",
    ttl_s=60,
    sources=SOURCES,
    headline=CardValue("0.yes_percent", "%", "{0.question}", is_series=False),
    pictures=(Picture("bars", "Chance of yes", values=("yes_percent",), label="question", unit="%"),),
)
async def predictions(ctx: ToolContext, limit: Annotated[int, up_to(SHOWN)] = SHOWN) -> Predictions:
    """The prediction markets most traded in the past 24 hours, with the probability of yes and no in percent and how
    it moved. Use it for "what are the odds that …?".

    Shape: at most 15 open yes/no questions; markets between two teams and decided ones are left out.
    Units: probabilities in percent, changes in percentage points, volume and liquidity in US dollars.
    Source: Polymarket, refreshed every minute; when it is down, Kalshi's first page, which a warning says is not all.
    """
    bets = await ctx.first("data", *shown_markets())
    return Predictions([show_bet(bet) for bet in ctx.page(bets[:SHOWN], limit)])
