"""Three small tools on test sources: enough to see every way a call can go."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from tests.calls.parts import number_source
from toolserver.context.context import ToolContext, via
from toolserver.core.models import Payload, TopLevel
from toolserver.registry.event_kind import EventArguments, EventId, EventKind, EventLevel
from toolserver.registry.registry import Registry, Tier, operation_of, tool

ONE = number_source("Test.one")
TWO = number_source("Test.two")
FIRST, SECOND = "https://test.example/Test.one", "https://test.example/Test.two"


class Reading(Payload):
    value: float
    twice: float


class Report(TopLevel):
    one: float | None
    two: float | None
    notes: dict[str, str]


class Bounds(EventArguments):
    above: float | None = None
    below: float | None = None


class Crossed(Payload):
    id: EventId
    value: float


class Counted(EventArguments):
    step: Annotated[int, Field(ge=1)] = 1


class Listed(Payload):
    id: EventId


def _count(payload: Any, wanted: Counted, now: object) -> list[Mapping[str, Any]]:
    return [{"id": f"n{each}"} for each in range(0, int(payload["data"]["value"]), wanted.step)]


NUMBER_CROSSED = EventKind(
    "number.crossed",
    "The number passed a bound.",
    Bounds,
    Crossed,
    ask=lambda wanted: {},
    read=lambda payload, wanted, now: [{"id": "number", "value": payload["data"]["value"]}],
    level=EventLevel("value", bounds=lambda wanted: wanted.model_dump(exclude_none=True)),
)
NUMBER_LISTED = EventKind(
    "number.listed", "Numbers up to the number.", Counted, Listed, ask=lambda wanted: {}, read=_count
)


@tool(
    path="/api/number",
    title="A number",
    ttl_s=30,
    toolset="core",
    sources=(ONE, TWO),
    events=(NUMBER_CROSSED, NUMBER_LISTED),
)
async def number(ctx: ToolContext, add: Annotated[int, Field(ge=0, le=100)] = 0) -> Reading:
    """A number from the first test source, or from the second when the first is down; for tests only.

    Source: nobody.
    """
    found = await ctx.first("data", via(ONE), via(TWO))
    return Reading(value=found.value + add, twice=2 * found.value)


@tool(
    path="/api/pro/report",
    title="A report",
    ttl_s=60,
    sla_s=300,
    tier=Tier.PREMIUM,
    credits=2,
    toolset="core",
    sources=(ONE, TWO),
)
async def premium_report(ctx: ToolContext, history: Literal["30d"] | None = None) -> Report:
    """Two numbers side by side, either of which may be missing; costs two credits, for tests only."""
    one = await ctx.section("one", via(ONE))
    two = await ctx.section("two", via(TWO))
    return Report(one=one and one.value, two=two and two.value, notes={"history": history or "none"})


@tool(path="/api/hasty", title="A tool with little time", ttl_s=30, deadline_s=0.4, sources=(ONE, TWO))
async def hasty(ctx: ToolContext) -> Reading:
    """The first number again, with so little time that slow sources have to be given up; for tests only."""
    found = await ctx.first("data", via(ONE), via(TWO))
    return Reading(value=found.value, twice=2 * found.value)


@tool(path="/api/broken", title="A broken tool", ttl_s=30)
async def broken(ctx: ToolContext) -> Reading:
    """Always fails in a way its author did not think of; it shows what a caller learns of that, for tests only."""
    raise RuntimeError("svc_live_secret in an exception")


@tool(path="/api/liar", title="A tool that breaks its schema", ttl_s=30)
async def liar(ctx: ToolContext) -> Reading:
    """Returns what its own schema forbids; it shows that a tool's word is checked and not taken, for tests only."""
    return Reading.model_construct(value="many", twice=None)


REGISTRY = Registry([operation_of(f) for f in (number, premium_report, hasty, broken, liar)])
