"""GET /api/pro/subscriptions."""

from pydantic import Field

from tools.shared.webhooks import Subscription, show_subscription, webhooks_of
from toolserver import Tier, ToolContext, TopLevel, tool


class WebhookList(TopLevel):
    subscriptions: list[Subscription] = Field(max_length=20, description="Active and paused ones, the oldest first")
    count: int = Field(ge=0, description="Subscriptions listed")


@tool(
    path="/api/pro/subscriptions",
    title="List webhooks",
    search_hint="show my webhooks subscriptions alerts",
    tier=Tier.ACCOUNT,
)
async def webhook_list(ctx: ToolContext) -> WebhookList:
    """The webhook subscriptions of this token: their state, when they fire next, and how the last delivery went. Free
    of charge. Use webhook_deliveries for the log of one of them.

    Shape: a paused subscription says why; webhook_resume starts it again. Secrets are not shown.
    """
    subscriptions = [show_subscription(each) for each in await webhooks_of(ctx).list_kept(ctx.token)]
    return WebhookList(subscriptions=subscriptions, count=len(subscriptions))
