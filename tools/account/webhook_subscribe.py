"""POST /api/pro/subscribe."""

import json
from typing import Annotated, Any, Literal

from pydantic import Field

from tools.shared.webhooks import Subscription, subscription_fields, webhooks_of
from toolserver import ConditionInput, SubscriptionRequest, Tier, ToolContext, TopLevel, tool


class NewWebhook(Subscription, TopLevel):
    secret: str = Field(pattern="^whsec_[0-9a-f]{32}$", description="Signs every delivery; shown this once")
    hmac_algorithm: Literal["sha256"] = Field(description="Hash of the HMAC that signs deliveries")
    fire_cost_credits: int = Field(description="Credits for each delivered fire")
    fire_interval: str = Field(description="How often it fires without a condition, in words")
    signature_header: str = Field(description="Header of a delivery with its signature")
    timestamp_header: str = Field(description="Header of a delivery with its time, which is signed too")


@tool(
    path="/api/pro/subscribe",
    method="POST",
    title="Subscribe a webhook",
    search_hint="notify alert ping my server when price drops below callback push",
    tier=Tier.ACCOUNT,
    status=201,
    quotas=((30, 60),),
    tags={"example_arguments": json.dumps({"endpoint": "world-deltas", "webhook_url": "https://example.com/hook"})},
)
async def webhook_subscribe(
    ctx: ToolContext,
    endpoint: Annotated[
        str,
        Field(
            max_length=64,
            description="Short name of a premium endpoint; credit-alerts: notices of token_update's alerts, free",
            examples=["world-deltas"],
        ),
    ],
    webhook_url: Annotated[
        str, Field(max_length=4000, description="A public https address, port 443 or 8443, that takes POST requests")
    ],
    params: Annotated[dict[str, Any] | None, Field(description="Query parameters of the endpoint")] = None,
    when: Annotated[
        ConditionInput | None, Field(description="Deliver only when this happens, instead of every five minutes")
    ] = None,
    headers: Annotated[
        dict[str, str] | None, Field(max_length=10, description="Headers to add to every delivery; kept encrypted")
    ] = None,
    description: Annotated[str, Field(max_length=200, pattern=r"^[^\u0000]*$", description="A note of yours")] = "",
) -> NewWebhook:
    """Have a premium payload delivered to a URL of yours about every five minutes, or when a condition comes true.
    Subscribing is free, with at least 1 credit; each delivered fire costs 1 credit, and one that your server does not
    take costs nothing.

    Shape: the secret is shown once. X-Service-Signature of each delivery is sha256= and the hex HMAC-SHA256, under the
    whole secret, of X-Service-Timestamp, a dot and the raw body. A token has 5 active subscriptions at most.
    Errors: invalid_arguments for an address that is not allowed, with the reason; insufficient_credits;
    subscription_conflict for a sixth.
    """
    request = SubscriptionRequest(endpoint, webhook_url, params or {}, when, headers or {}, description)
    created = await webhooks_of(ctx).subscribe(ctx.token, request)
    return NewWebhook(
        **subscription_fields(created.subscription),
        secret=created.secret,
        hmac_algorithm="sha256",
        fire_cost_credits=1,
        fire_interval="About every 5 minutes",
        signature_header="X-Service-Signature",
        timestamp_header="X-Service-Timestamp",
    )
