"""POST /api/pro/subscribe/{id}/deliveries/{delivery_id}/resend."""

from typing import Annotated

from pydantic import Field

from tools.shared.webhooks import SubscriptionId, webhooks_of
from toolserver import Tier, ToolContext, TopLevel, tool


class ResentDelivery(TopLevel):
    id: str = Field(description="The webhook-id header: the same as before")
    delivered: bool = Field(description="Your server answered 2xx")
    status: int | None = Field(description="HTTP status of the answer; null: there was none")
    error: str | None = Field(description="One word for how it failed; null: it did not")
    duration_ms: int = Field(ge=0, description="How long it took, milliseconds")


@tool(
    path="/api/pro/subscribe/{id}/deliveries/{delivery_id}/resend",
    method="POST",
    title="Resend a delivery",
    search_hint="replay delivery again",
    tier=Tier.ACCOUNT,
    quotas=((5, 60), (60, 3600)),
    deadline_s=30,
)
async def webhook_resend(
    ctx: ToolContext,
    id: SubscriptionId,
    delivery_id: Annotated[
        str,
        Field(
            pattern="^msg_[0-9a-f]{32}$",
            description="The id of a delivery, from webhook_deliveries",
            examples=["msg_0123456789abcdef0123456789abcdef"],
        ),
    ],
) -> ResentDelivery:
    """Send an accepted delivery of the past hour again, for free: the same id and bytes, signed anew.

    Errors: not_found, subscription_conflict if it was not accepted.
    """
    fire_id = "call_" + delivery_id.removeprefix("msg_")
    attempt = await webhooks_of(ctx).resend(ctx.token, id, fire_id)
    return ResentDelivery(
        id=delivery_id,
        delivered=attempt.delivered,
        status=attempt.status,
        error=attempt.error,
        duration_ms=attempt.duration_ms,
    )
