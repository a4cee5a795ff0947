"""POST /api/pro/subscribe/{id}/rotate-secret."""

from pydantic import Field

from tools.shared.webhooks import SubscriptionId, webhooks_of
from toolserver import Tier, ToolContext, TopLevel, tool


class RotatedSecret(TopLevel):
    id: str = Field(description="The id of the subscription")
    secret: str = Field(pattern="^whsec_[0-9a-f]{32}$", description="The new secret; shown this once")
    overlap_hours: int = Field(description="Hours for which deliveries are signed with the old secret too")


@tool(
    path="/api/pro/subscribe/{id}/rotate-secret",
    method="POST",
    title="Rotate a webhook secret",
    search_hint="new signing secret key webhook",
    tier=Tier.ACCOUNT,
    quotas=((5, 60),),
)
async def webhook_rotate_secret(ctx: ToolContext, id: SubscriptionId) -> RotatedSecret:
    """Replace the signing secret of a webhook subscription. For 24 hours deliveries carry signatures of both secrets:
    Standard Webhooks in one header, ours in X-Service-Signature (new) and X-Service-Signature-Previous.

    Errors: not_found, subscription_conflict for a cancelled subscription.
    """
    rotated = await webhooks_of(ctx).rotate_secret(ctx.token, id)
    return RotatedSecret(id=rotated.subscription.id, secret=rotated.secret, overlap_hours=24)
