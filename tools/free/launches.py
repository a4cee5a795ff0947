"""GET /api/launches."""

from typing import Annotated

from pydantic import ConfigDict, Field, RootModel

from tools.shared import launches as chain
from tools.shared.launches import LaunchItem
from toolserver import CardValue, Picture, ToolContext, tool, up_to

SHOWN = 10


class Launches(RootModel[Annotated[list[LaunchItem], Field(max_length=SHOWN, description="Soonest first")]]):
    model_config = ConfigDict(frozen=True)


@tool(
    path="/api/launches",
    title="Upcoming rocket launches",
    search_hint="when is the next rocket launch SpaceX NASA schedule upcoming",
    ttl_s=600,
    sources=chain.SOURCES,
    headline=CardValue("0.name", "", "{0.status}, {0.scheduled_time}"),
    pictures=(
        Picture(
            "map", "Pads of the next launches", label="name", time="scheduled_time", mark="square", legend="Launches"
        ),
    ),
)
async def launches(ctx: ToolContext, limit: Annotated[int, up_to(SHOWN)] = SHOWN) -> Launches:
    """The next rocket launches worldwide: provider, vehicle, mission, pad, status, and when, with how exact that time
    is. Use it for "when is the next launch?".

    Shape: at most 10, all of them ahead: flown and overdue ones are left out. `time_precision` says how much of
    `scheduled_time` is known: with `month`, day and hour mean nothing. From the fallback the status is always
    `Scheduled`, and where it has no exact time `scheduled_time` is null and `date_text` has the date in words.
    Source: Launch Library 2, refreshed every 10 minutes; RocketLaunch.Live when it is down.
    """
    listed = await ctx.first("data", *chain.launches(ctx.now))
    return Launches([chain.show_launch(launch) for launch in ctx.page(chain.upcoming(listed, ctx.now)[:SHOWN], limit)])
