"""POST /api/payment/allowances."""

from typing import Annotated

from pydantic import Field

from tools.shared.allowances import MOST_CREDITS, AllowanceRecord, End, Name, Tools, allowance_fields, allowances_of
from toolserver import AllowanceWish, Tier, ToolContext, TopLevel, tool


class NewAllowance(AllowanceRecord, TopLevel):
    token: str = Field(description="Bearer token of the allowance, a secret; shown this once")


@tool(
    path="/api/payment/allowances",
    method="POST",
    title="Create an allowance",
    search_hint="spending limit cap a day budget child token for another agent",
    tier=Tier.ACCOUNT,
    status=201,
    quotas=((30, 60), (1000, 86_400)),
)
async def allowance_create(
    ctx: ToolContext,
    name: Annotated[Name, Field(description="Whom or what it is for")],
    credits: Annotated[int, Field(ge=1, le=MOST_CREDITS, description="Most credits it may ever spend")],
    credits_per_day: Annotated[
        int | None, Field(ge=1, le=MOST_CREDITS, description="Most credits per UTC day; no such cap by default")
    ] = None,
    expires_at: Annotated[
        End | None, Field(description="When it ends, ISO 8601, within 10 years; never by default")
    ] = None,
    tools: Annotated[Tools | None, Field(description="The only tools it may spend on; all by default")] = None,
) -> NewAllowance:
    """A second token that spends the credits of this one, up to caps that are never crossed. Give it to an agent or a
    program instead of your own token. The credits stay yours until they are spent.

    Shape: the token is shown once. Up to 100 are live; they share your free limits and webhook subscriptions. A call
    beyond a cap is refused with insufficient_credits and `cap`.
    Errors: allowance_conflict for the 101st, or when this token is an allowance itself; not_supported.
    """
    wish = AllowanceWish(name, credits, credits_per_day, expires_at, tools)
    allowance = await allowances_of(ctx).create(ctx.token, wish)
    return NewAllowance(**allowance_fields(allowance), token=allowance.token)
