"""GET /api/pro/subscribe/{id}/deliveries."""

from typing import Annotated

from pydantic import Field

from tools.shared.webhooks import SubscriptionId, WebhookDelivery, show_delivery, webhooks_of
from toolserver import Tier, ToolContext, TopLevel, tool

MOST = 50


class DeliveryLog(TopLevel):
    deliveries: list[WebhookDelivery] = Field(max_length=MOST, description="The latest first")
    next_cursor: str | None = Field(description="Give it as cursor to read on; null: there is nothing older")


@tool(
    path="/api/pro/subscribe/{id}/deliveries",
    title="Webhook deliveries",
    search_hint="webhook log attempts failed callbacks history",
    tier=Tier.ACCOUNT,
)
async def webhook_deliveries(
    ctx: ToolContext,
    id: SubscriptionId,
    limit: Annotated[int, Field(ge=1, le=MOST, description="How many")] = 20,
    cursor: Annotated[
        str | None, Field(pattern="^msg_[0-9a-f]{32}$", description="next_cursor of the page before")
    ] = None,
) -> DeliveryLog:
    """The last deliveries of a webhook subscription, up to 50: when, how many attempts, how your server answered, what
    was charged and under which receipt.

    Errors: not_found for a subscription that is not yours.
    """
    before = None if cursor is None else "call_" + cursor.removeprefix("msg_")
    fires = await webhooks_of(ctx).deliveries(ctx.token, id, limit + 1, before)
    shown = [show_delivery(fire) for fire in fires[:limit]]
    return DeliveryLog(deliveries=shown, next_cursor=shown[-1].id if len(fires) > limit else None)
