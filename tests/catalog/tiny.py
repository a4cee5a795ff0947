"""A registry with one tool of every kind, so that documents are tested without the project's own tools."""

from typing import Annotated, Literal

from pydantic import Field

from toolserver.context.context import ToolContext
from toolserver.core.models import Payload, Timestamp, TopLevel
from toolserver.registry.registry import Registry, Tier, operation_of, tool
from toolserver.registry.site_facts import SiteFacts
from toolserver.upstream.source import Get, HostGroup, Licence, Source

FACTS = SiteFacts("https://data.example", "data.example", contact="ops@data.example")

PLACE = Source(
    "Sample.place",
    lambda query, keys: Get("https://upstream.example/place"),
    lambda body, query: body,
    licence=Licence("attribution", "Sample & Sons <office>", "https://upstream.example/terms"),
    hosts=HostGroup("sample", 1, 0, 60, 60),
    fresh_s=60,
    keep_s=3600,
    timeout_s=5,
)


class Sight(Payload):
    name: str
    height_m: float | None


class Sights(Payload):
    seen: list[Sight] = Field(max_length=20, description="Highest <first>")
    best: Sight | None = Field(description="The one to see")
    at: Timestamp


class Digest(TopLevel):
    summary: str
    mood: Literal["calm", "busy"]
    best: Sight | None


class Deep(TopLevel):
    generated_at: Timestamp
    windows: dict[str, Sight]
    notes: dict[str, str]


class Bought(TopLevel):
    wallet: str
    credits: int


class Balance(TopLevel):
    credits: int
    issued_at: Timestamp


class Removed(TopLevel):
    id: str


@tool(path="/api/sights", title="Sights", ttl_s=90, toolset="core", sources=(PLACE,))
async def sights(
    ctx: ToolContext,
    lat: Annotated[float, Field(ge=-90, le=90, description="Latitude")],
    kind: Literal["tower", "bridge"] = "tower",
    period: Literal["24h"] | None = None,
    names: Annotated[list[Literal["a", "b"]] | None, Field(description="Only these")] = None,
) -> Sights:
    """Sights near a place, highest first, with their height. Use it for "what is there to see?".

    Shape: `best` is null when nothing is near.
    Source: Sample, refreshed every minute.
    """
    raise AssertionError("documents never run a tool")


@tool(path="/api/digest", title="Digest", ttl_s=60, sources=(PLACE,))
async def digest(ctx: ToolContext) -> Digest:
    """Everything that matters right now in one short text, for whoever has little time."""
    raise AssertionError("documents never run a tool")


@tool(path="/api/pro/deep", title="Deep look", tier=Tier.PREMIUM, credits=2, ttl_s=300, sla_s=600, sources=(PLACE,))
async def premium_deep(ctx: ToolContext, history: Literal["30d"] | None = None) -> Deep:
    """A deep look at a place, window by window, for decisions that depend on it."""
    raise AssertionError("documents never run a tool")


@tool(path="/api/payment/buy-credits", title="Buy credits", tier=Tier.PAYMENT, method="POST")
async def payment_buy_credits(ctx: ToolContext, amount_usd: Annotated[float, Field(ge=1)]) -> Bought:
    """Ask for a quote: where to send how much to get credits for premium tools."""
    raise AssertionError("documents never run a tool")


@tool(path="/api/payment/balance", title="Balance", tier=Tier.PAYMENT)
async def payment_balance(ctx: ToolContext) -> Balance:
    """The credits left on the token that the call is made with."""
    raise AssertionError("documents never run a tool")


@tool(path="/api/pro/subscribe/{id}", title="Unsubscribe", tier=Tier.ACCOUNT, method="DELETE")
async def webhook_unsubscribe(ctx: ToolContext, id: Annotated[str, Field(pattern="^wh_[0-9a-f]{16}$")]) -> Removed:
    """Cancel one of the subscriptions of the token that the call is made with."""
    raise AssertionError("documents never run a tool")


TINY = Registry(
    operation_of(function)
    for function in (sights, digest, premium_deep, payment_buy_credits, payment_balance, webhook_unsubscribe)
)
FREE = Registry([operation_of(sights), operation_of(digest)])
