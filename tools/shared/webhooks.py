"""Show webhook subscriptions as the account tools return them."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from toolserver import NotFound, Payload, Timestamp, ToolContext, WebhookFire, WebhookSubscription

SubscriptionId = Annotated[
    str,
    Field(
        pattern="^wh_[0-9a-f]{16}$",
        description="The id of a subscription, from webhook_list",
        examples=["wh_0123456789abcdef"],
    ),
]
PAUSES = "insufficient_credits, expired, invalid_token, endpoint_failing, endpoint_gone, tool_removed or operator"


class Subscription(Payload):
    id: str = Field(description="The id of the subscription")
    endpoint: str = Field(description="Short name of the premium endpoint, or credit-alerts", examples=["world-deltas"])
    webhook_url: str = Field(description="Address that deliveries are sent to")
    state: Literal["active", "paused", "cancelled"] = Field(
        description="active: it fires; paused: it may be resumed; cancelled: it never fires again"
    )
    pause_reason: str | None = Field(description=f"Null unless paused: {PAUSES}")
    created_at: Timestamp = Field(description="When it was made")
    next_fire_at: Timestamp | None = Field(
        description="When it fires or looks next; null unless active, and for credit-alerts"
    )
    last_delivered_at: Timestamp | None = Field(description="When your server last took a delivery; null: never")
    last_status: int | None = Field(description="HTTP status of the last attempt; null: there was no answer")
    last_error: str | None = Field(description="One word, such as timeout or http_500; null after a success")
    consecutive_failures: int = Field(ge=0, description="Failed deliveries since the last one that was taken")
    delivered_count: int = Field(ge=0, description="Deliveries that your server took")
    failed_count: int = Field(ge=0, description="Deliveries that it did not take")
    params: dict[str, Any] = Field(description="Query parameters of the endpoint, as you gave them")
    when: dict[str, Any] | None = Field(description="Your condition; null: it fires in every slot")
    description: str = Field(description="Your note")


class WebhookDelivery(Payload):
    id: str = Field(description="The webhook-id header: the same in every attempt")
    kind: Literal["data", "fired", "cleared", "no_data", "test"] = Field(
        description="data: a regular payload; fired, cleared, no_data: of a condition; test: asked for by you"
    )
    state: Literal["open", "accepted", "charged", "free", "released", "skipped"] = Field(
        description="charged: delivered and paid; free: delivered; released: given up, not charged; skipped: not tried"
    )
    reason: str | None = Field(
        description="Why it was released or skipped; null: neither", examples=["delivery_failed"]
    )
    created_at: Timestamp = Field(description="When it was made")
    finished_at: Timestamp | None = Field(description="When it was decided; null: still open")
    attempts: int = Field(ge=0, description="Attempts so far")
    status: int | None = Field(description="HTTP status of the last attempt; null: there was no answer")
    error: str | None = Field(description="One word for how the last attempt failed; null: it did not")
    duration_ms: int | None = Field(description="How long the last attempt took, milliseconds; null: there was none")
    credits: int = Field(ge=0, description="Credits charged")
    receipt_id: str | None = Field(description="Null unless it was charged")


def webhooks_of(ctx: ToolContext) -> Any:
    """Return the subscriptions of this service. Raises NotFound where it has none."""
    if ctx.host.webhooks is None:
        raise NotFound("This server delivers no webhooks.")
    return ctx.host.webhooks


def show_subscription(subscription: WebhookSubscription) -> Subscription:
    """Return a subscription without its secrets."""
    return Subscription(**subscription_fields(subscription))


def subscription_fields(subscription: WebhookSubscription) -> dict[str, Any]:
    """Return the fields of a subscription as its owner sees them."""
    return {
        "id": subscription.id,
        "endpoint": subscription.endpoint,
        "webhook_url": subscription.url,
        "state": subscription.state,
        "pause_reason": subscription.pause_reason,
        "created_at": moment_of(subscription.created_at),
        "next_fire_at": moment_of(subscription.next_fire_at),
        "last_delivered_at": moment_of(subscription.last_delivered_at),
        "last_status": subscription.last_status,
        "last_error": subscription.last_error,
        "consecutive_failures": subscription.consecutive_failures,
        "delivered_count": subscription.delivered_count,
        "failed_count": subscription.failed_count,
        "params": subscription.given_params,
        "when": subscription.given_condition,
        "description": subscription.description,
    }


def show_delivery(fire: WebhookFire) -> WebhookDelivery:
    """Return a fire from the delivery log, with the status of the receiver's answer but not its content."""
    charged = fire.state == "charged"
    return WebhookDelivery(
        id=fire.message_id,
        kind=fire.kind,
        state=fire.state,
        reason=fire.reason,
        created_at=moment_of(fire.created_at),
        finished_at=moment_of(fire.finished_at),
        attempts=fire.attempts,
        status=fire.status,
        error=fire.error,
        duration_ms=fire.duration_ms,
        credits=fire.price if charged else 0,
        receipt_id=fire.receipt_id if charged else None,
    )


def moment_of(milliseconds: int | None) -> Any:
    """Return a stored time."""
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)
