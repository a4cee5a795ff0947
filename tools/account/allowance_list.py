"""GET /api/payment/allowances."""

from pydantic import Field

from tools.shared.allowances import MOST_LISTED, AllowanceRecord, allowance_fields, allowances_of
from toolserver import Tier, ToolContext, TopLevel, tool


class AllowanceList(TopLevel):
    allowances: list[AllowanceRecord] = Field(max_length=MOST_LISTED, description="Live ones first, then ended ones")
    count: int = Field(ge=0, description="Allowances listed")


@tool(
    path="/api/payment/allowances",
    title="List allowances",
    search_hint="show budgets sub-tokens caps spent",
    tier=Tier.ACCOUNT,
)
async def allowance_list(ctx: ToolContext) -> AllowanceList:
    """The allowances of this token: their caps, what each has spent in all and today, and whether they are still live.
    Use account_statement for the single calls.

    Shape: all live ones, the oldest first, then up to 100 that ended. Tokens are not shown.
    Errors: allowance_conflict when this token is an allowance itself; not_supported.
    """
    allowances = [AllowanceRecord(**allowance_fields(each)) for each in await allowances_of(ctx).list_all(ctx.token)]
    return AllowanceList(allowances=allowances, count=len(allowances))
