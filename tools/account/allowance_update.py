"""PATCH /api/payment/allowances/{id}."""

from typing import Annotated

from pydantic import Field

from tools.shared.allowances import (
    MOST_CREDITS,
    AllowanceId,
    AllowanceRecord,
    End,
    Name,
    Tools,
    allowance_fields,
    allowances_of,
)
from toolserver import AllowanceWish, Tier, ToolContext, TopLevel, tool


class UpdatedAllowance(AllowanceRecord, TopLevel):
    pass


@tool(
    path="/api/payment/allowances/{id}",
    method="PATCH",
    title="Change an allowance",
    search_hint="raise lower change spending cap budget",
    tier=Tier.ACCOUNT,
    quotas=((30, 60),),
)
async def allowance_update(
    ctx: ToolContext,
    id: AllowanceId,
    name: Annotated[Name | None, Field(description="A new name")] = None,
    credits: Annotated[int | None, Field(ge=1, le=MOST_CREDITS, description="The new cap in all")] = None,
    credits_per_day: Annotated[
        int | None, Field(ge=0, le=MOST_CREDITS, description="The new cap per UTC day; 0 takes it away")
    ] = None,
    expires_at: Annotated[
        End | None, Field(description="When it ends, ISO 8601, within 10 years; “never” takes it away")
    ] = None,
    tools: Annotated[Tools | None, Field(description="The only tools it may spend on; empty: all")] = None,
) -> UpdatedAllowance:
    """Change the name, caps, end or tools of an allowance; what is not given stays. It holds from the next call on. A
    cap below what is spent stops it.

    Errors: not_found for an allowance that is not yours, allowance_conflict for a revoked one; not_supported.
    """
    wish = AllowanceWish(name, credits, credits_per_day, expires_at, tools)
    return UpdatedAllowance(**allowance_fields(await allowances_of(ctx).change(ctx.token, id, wish)))
