"""POST /api/payment/reissue/cancel."""

from pydantic import Field

from toolserver import Tier, ToolContext, TopLevel, tool


class CancelledReissue(TopLevel):
    cancelled: bool = Field(description="Whether a reissue was waiting, and is cancelled now")


@tool(
    path="/api/payment/reissue/cancel",
    method="POST",
    title="Cancel a reissue",
    search_hint="keep my token lost replacement stop",
    tier=Tier.ACCOUNT,
)
async def reissue_cancel(ctx: ToolContext) -> CancelledReissue:
    """Keep this token: cancel its replacement, which the account that paid for it has asked for as if it were lost. The
    balance shows such a request in `reissue_at` for 48 hours. Safe to repeat.

    Errors: missing_token, invalid_token, expired.
    """
    return CancelledReissue(cancelled=await ctx.host.payments.cancel_reissue(ctx.token))
