"""PATCH /api/payment/token."""

from typing import Annotated

from pydantic import Field

from tools.shared.allowances import MOST_CREDITS
from toolserver import LimitWish, NotFound, Tier, Timestamp, ToolContext, TopLevel, tool

Credits = Annotated[int | None, Field(ge=0, le=MOST_CREDITS)]


class TokenSettings(TopLevel):
    credits_per_day: int | None = Field(description="The cap per UTC day; null: none")
    spent_today: int = Field(ge=0, description="Charged and reserved this UTC day, by allowances too")
    frozen: bool = Field(description="Whether it pays for nothing")
    frozen_at: Timestamp | None = Field(description="Since when; null: it is not")
    alert_below: int | None = Field(description="Paid answers warn below this many credits; null: never")
    alert_percent: int | None = Field(description="They warn from this share of the cap on; null: never")


@tool(
    path="/api/payment/token",
    method="PATCH",
    title="Limit your token",
    tier=Tier.ACCOUNT,
    quotas=((30, 60),),
    search_hint="freeze thaw block token daily spending limit cap alert",
)
async def token_update(
    ctx: ToolContext,
    credits_per_day: Annotated[
        Credits, Field(description="Most credits per UTC day, allowances included; 0 takes the cap away")
    ] = None,
    frozen: Annotated[bool | None, Field(description="true: it pays for nothing; false: it pays again")] = None,
    alert_below: Annotated[Credits, Field(description="Warn below this many credits; 0: never")] = None,
    alert_percent: Annotated[
        int | None, Field(ge=0, le=100, description="Warn from this percentage of the day's cap on; 0: never")
    ] = None,
) -> TokenSettings:
    """Set a cap per day on this token, freeze or thaw it, set alerts; what is not given stays. Without arguments it
    shows what is set. All of it binds the allowances of the token too, from the next call on.

    Shape: a call beyond the cap, or with a frozen token, is refused with insufficient_credits and `cap`.
    Errors: allowance_conflict for an allowance; not_supported where another service keeps the ledger.
    """
    limits = getattr(ctx.host, "limits", None)
    if limits is None:
        raise NotFound("This server sets no limits on tokens.")
    set_now = await limits.change(ctx.token, LimitWish(credits_per_day, frozen, alert_below, alert_percent))
    return TokenSettings(**set_now._asdict())
