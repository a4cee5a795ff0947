"""POST /api/pro/subscribe/{id}/resume."""

from tools.shared.webhooks import Subscription, SubscriptionId, subscription_fields, webhooks_of
from toolserver import Tier, ToolContext, TopLevel, tool


class ResumedWebhook(Subscription, TopLevel):
    pass


@tool(
    path="/api/pro/subscribe/{id}/resume",
    method="POST",
    title="Resume a webhook",
    search_hint="restart paused webhook reactivate",
    tier=Tier.ACCOUNT,
)
async def webhook_resume(ctx: ToolContext, id: SubscriptionId) -> ResumedWebhook:
    """Start a paused webhook subscription again, with its next slot. Safe to repeat; the token must hold at least 1
    credit. An endpoint that failed for a day can be resumed five minutes after it was paused.

    Errors: not_found, insufficient_credits, subscription_conflict for a sixth active one or a cancelled one.
    """
    return ResumedWebhook(**subscription_fields(await webhooks_of(ctx).resume(ctx.token, id)))
