"""GET /api/humans-in-space."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from tools.shared.crew import SOURCES, Crew, Person, aboard, crew
from tools.sources.corquaid import PEOPLE
from tools.sources.launch_library import ASTRONAUTS, EXPEDITIONS, Expedition
from toolserver import CardValue, Fallback, Payload, Timestamp, ToolContext, tool, up_to, via

UNKNOWN = "unknown"
Kind = Literal["checked", "newest_launch"]


class PersonItem(Payload):
    name: str = Field(description="Name of the person")
    craft: str = Field(examples=["ISS", "Tiangong", UNKNOWN], description="Station or spacecraft, or unknown")
    agency: str | None = Field(description="Space agency or company; null: not given")


class HumansInSpace(Payload):
    count: int = Field(ge=0, description="People in space, also where `limit` cuts the list")
    people: list[PersonItem] = Field(description="By craft, then name")
    as_of: Timestamp = Field(description="When the roster was checked, or its newest member launched")
    as_of_kind: Kind = Field(
        description="checked: when the roster was read; newest_launch: launch of its newest member"
    )


@tool(
    path="/api/humans-in-space",
    title="Humans in space",
    search_hint="how many people astronauts ISS crew who aboard station",
    ttl_s=3600,
    sources=SOURCES,
    deadline_s=30,  # the crews of the stations are a large and slow document
    headline=CardValue("count", "people", "in space"),
)
async def humans_in_space(ctx: ToolContext, limit: Annotated[int, up_to(50)] = 50) -> HumansInSpace:
    """Everyone who is in space right now, with craft and agency. Use it for "how many people are in space?".

    Shape: craft is ISS, Tiangong, a spacecraft, or "unknown". `as_of` is when the roster was checked or, from the
    fallback, when the newest member of it was launched.
    Source: Launch Library 2, refreshed every 6 hours and compared with a list kept by hand, which is also the fallback.
    """
    listed = await ctx.first("data", *crew())
    if listed.newest_launch:
        return _listed(ctx, listed.people, limit, listed.newest_launch, "newest_launch")
    _compare(ctx, listed)
    crews: Fallback[tuple[Expedition, ...]] = via(EXPEDITIONS)
    people = aboard(listed.people, await ctx.section("data.craft", crews) or ())
    checked_at = next(n.fetched_at for n in ctx.notes.used if n.source is ASTRONAUTS and n.fetched_at)
    return _listed(ctx, people, limit, checked_at, "checked")


def _compare(ctx: ToolContext, listed: Crew) -> None:
    counted, elsewhere = len(listed.people), listed.listed_elsewhere
    if elsewhere not in (None, counted):
        message = f"Launch Library lists {counted} people, the second list {elsewhere}; the first is shown."
        ctx.warn("data", "disagreement", message, PEOPLE.name)


def _listed(ctx: ToolContext, people: Iterable[Person], limit: int, as_of: datetime, kind: Kind) -> HumansInSpace:
    items = sorted(map(_shown, people), key=lambda item: (item.craft, item.name))
    shown = ctx.page(items, limit, "data.people")
    return HumansInSpace(count=len(items), people=shown, as_of=as_of, as_of_kind=kind)


def _shown(person: Person) -> PersonItem:
    return PersonItem(name=person.name, craft=person.craft or UNKNOWN, agency=person.agency)
