"""GET /api/tide."""

from pydantic import Field

from toolserver import Payload, Timestamp, ToolContext, tool
from toolserver_tides.sources.harbour import LEVELS


class Tide(Payload):
    level_m: float = Field(description="Above chart datum")
    measured_at: Timestamp = Field(description="Time of the gauge's last reading")


@tool(path="/api/tide", title="Tide", ttl_s=60, sources=(LEVELS,))
async def tide(ctx: ToolContext) -> Tide:
    """The water level in one harbour right now, in metres above chart datum. Use it for "is the tide high?"; for the
    range of the past day use premium_tide.

    Source: the harbour's gauge, read every minute.
    """
    latest = (await ctx.read(LEVELS))[-1]
    return Tide(level_m=latest.level_m, measured_at=latest.at)
