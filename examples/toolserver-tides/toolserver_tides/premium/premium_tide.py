"""GET /api/pro/tide."""

from pydantic import Field

from toolserver import FREE_SIBLING, Tier, Timestamp, ToolContext, TopLevel, tool
from toolserver_tides.sources.harbour import LEVELS


class TideRange(TopLevel):
    lowest_m: float = Field(description="Above chart datum")
    highest_m: float
    highest_at: Timestamp


@tool(
    path="/api/pro/tide",
    title="Range of the tide",
    tier=Tier.PREMIUM,
    credits=1,
    ttl_s=300,
    sla_s=900,
    tags={FREE_SIBLING: "tide"},
    sources=(LEVELS,),
)
async def premium_tide(ctx: ToolContext) -> TideRange:
    """How low and how high the water in one harbour stood in the past 24 hours, in metres above chart datum, and when
    it was highest. For the level right now use tide.

    Source: the harbour's gauge.
    Errors: 503 when the gauge does not answer; that is not charged.
    """
    readings = await ctx.read(LEVELS)
    highest = max(readings, key=lambda reading: reading.level_m)
    return TideRange(
        lowest_m=min(reading.level_m for reading in readings), highest_m=highest.level_m, highest_at=highest.at
    )
