"""DELETE /api/pro/subscribe/{id}."""

from tools.shared.webhooks import Subscription, SubscriptionId, subscription_fields, webhooks_of
from toolserver import Tier, ToolContext, TopLevel, tool


class CancelledWebhook(Subscription, TopLevel):
    pass


@tool(
    path="/api/pro/subscribe/{id}",
    method="DELETE",
    title="Cancel a webhook",
    search_hint="stop delete remove webhook alert",
    tier=Tier.ACCOUNT,
)
async def webhook_unsubscribe(ctx: ToolContext, id: SubscriptionId) -> CancelledWebhook:
    """Cancel a webhook subscription for good: it never fires again. Safe to repeat.

    Errors: not_found for a subscription that is not yours.
    """
    return CancelledWebhook(**subscription_fields(await webhooks_of(ctx).cancel(ctx.token, id)))
