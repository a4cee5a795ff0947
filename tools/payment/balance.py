"""GET /api/payment/balance."""

from pydantic import Field

from tools.payment.next_step import DEAREST_CREDITS, PREPAID_CALLS
from toolserver import Tier, Timestamp, ToolContext, TopLevel, tool


class CreditBalance(TopLevel):
    credits: int = Field(ge=0, description="What can still be spent")
    issued_at: Timestamp = Field(description="When the token was issued")
    reissue_at: Timestamp | None = Field(
        None,
        description="When another token replaces this one, because the account that paid for it reported it lost; "
        "reissue_cancel prevents it. Null without such a request",
    )


@tool(
    path="/api/payment/balance",
    title="Credit balance",
    search_hint="how many credits left remaining balance of my token have",
    tier=Tier.PAYMENT,
    toolset="core",
)
async def payment_balance(ctx: ToolContext) -> CreditBalance:
    """The credits left on the bearer token that this call is made with, and when the token was issued.

    Shape: `warning` has `low_balance` when the credits cover fewer than five calls at the highest price.
    Errors: missing_token, invalid_token, expired.
    """
    balance = await ctx.host.payments.balance(ctx.token)
    if balance.credits < PREPAID_CALLS * DEAREST_CREDITS:
        covered = f"{balance.credits} credits cover fewer than {PREPAID_CALLS} calls at {DEAREST_CREDITS} credits"
        more = "payment_topup with this token adds more, by x402 or by a plain transfer (by_transfer)"
        if balance.is_allowance:  # it has no credits of its own to which some could be added
            more = "this is an allowance: the owner of its token can top that up, or raise the caps of the allowance"
        ctx.warn("credits", "low_balance", f"{covered}; {more}.")
    return CreditBalance(credits=balance.credits, issued_at=balance.issued_at, reissue_at=balance.reissue_at)
