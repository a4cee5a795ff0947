"""DELETE /api/payment/allowances/{id}."""

from tools.shared.allowances import AllowanceId, AllowanceRecord, allowance_fields, allowances_of
from toolserver import Tier, ToolContext, TopLevel, tool


class RevokedAllowance(AllowanceRecord, TopLevel):
    pass


@tool(
    path="/api/payment/allowances/{id}",
    method="DELETE",
    title="Revoke an allowance",
    search_hint="stop delete end sub-token budget",
    tier=Tier.ACCOUNT,
)
async def allowance_revoke(ctx: ToolContext, id: AllowanceId) -> RevokedAllowance:
    """End an allowance for good: its token is refused from the next call on. Safe to repeat. Calls that are running may
    still be charged.

    Errors: not_found for an allowance that is not yours, allowance_conflict when this token is one itself.
    """
    return RevokedAllowance(**allowance_fields(await allowances_of(ctx).revoke(ctx.token, id)))
