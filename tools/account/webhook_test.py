"""POST /api/pro/subscribe/{id}/test."""

from typing import Annotated, Any, Literal

from pydantic import Field

from tools.shared.webhooks import SubscriptionId, WebhookDelivery, show_delivery, webhooks_of
from toolserver import Tier, ToolContext, TopLevel, tool


class WebhookTest(WebhookDelivery, TopLevel):
    delivered: bool = Field(description="Your server answered 2xx")


@tool(
    path="/api/pro/subscribe/{id}/test",
    method="POST",
    title="Test a webhook",
    search_hint="try send sample webhook",
    tier=Tier.ACCOUNT,
    quotas=((5, 60), (60, 3600)),
    deadline_s=30,
)
async def webhook_test(
    ctx: ToolContext,
    id: SubscriptionId,
    data: Annotated[
        dict[str, Any] | None, Field(description="What to deliver, up to 32 KB; a recorded example by default")
    ] = None,
    state: Annotated[
        Literal["fired", "cleared", "no_data"] | None,
        Field(description="For a subscription with a condition: deliver as if it had come to this"),
    ] = None,
) -> WebhookTest:
    """Send one signed test delivery with `"test": true` and see how your server answers it. It carries recorded or
    given values, never current ones.

    Shape: one attempt of 10 seconds; what your server answers is not shown, only its status.
    Errors: not_found, insufficient_credits, subscription_conflict for a cancelled one, rate_limited beyond 5 a minute.
    """
    fire = await webhooks_of(ctx).test(ctx.token, id, data, state)
    return WebhookTest(**show_delivery(fire).model_dump(), delivered=fire.state == "free")
