"""GET /api/launches."""

from typing import Annotated

from pydantic import ConfigDict, Field, RootModel

from tools.shared import launches as chain
from tools.shared.launches import LaunchItem
from toolserver.context import ToolContext
from toolserver.registry import tool

SHOWN = 10


class Launches(RootModel[Annotated[list[LaunchItem], Field(max_length=SHOWN, description="Soonest first")]]):
    model_config = ConfigDict(frozen=True)


@tool(path="/api/launches", title="Upcoming rocket launches", ttl_s=600, toolset="all", sources=chain.SOURCES)
async def launches(ctx: ToolContext) -> Launches:
    """The next rocket launches worldwide: provider, vehicle, mission, pad, status, and when, with how exact that time
    is. Use it for "when is the next launch?".

    Shape: at most 10; flown ones are left out, overdue ones stay for an hour. `time_precision` says how much of
    `scheduled_time` is known: with `month`, day and hour mean nothing. From the fallback the status is always
    `Scheduled`, and where it has no exact time `scheduled_time` is null and `date_text` has the date in words.
    Source: Launch Library 2, refreshed every 10 minutes; RocketLaunch.Live when it is down.
    """
    listed = await ctx.first("data", *chain.launches())
    return Launches([chain.shown(launch) for launch in chain.upcoming(listed, ctx.now)[:SHOWN]])
