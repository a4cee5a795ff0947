"""Write a delivery: its body, with the same bytes in every attempt, and the headers of one attempt."""

from typing import NamedTuple

import msgspec

from toolserver.core.models import iso_ms
from toolserver.webhooks.records import WebhookFire, WebhookSubscription
from toolserver.webhooks.secret_box import SubscriptionSecrets
from toolserver.webhooks.signing import SUBSCRIPTION_HEADER, signature_headers

MOST_BYTES = 1024 * 1024
RECEIPT_HEADER = "X-Service-Receipt-Id"


class WebhookMessage(NamedTuple):
    """One delivery: the body, and the data for the headers of each attempt."""

    fire: WebhookFire
    subscription: WebhookSubscription
    body: bytes

    def headers(self, held: SubscriptionSecrets, now: int) -> dict[str, str]:
        """Return the headers of an attempt at `now` in milliseconds. Custom headers never replace ours."""
        signed = signature_headers(
            held.secret, held.older(now), message_id=self.fire.message_id, timestamp=now // 1000, body=self.body
        )
        ours = {**signed, SUBSCRIPTION_HEADER: self.subscription.id}
        if self.fire.price:
            ours[RECEIPT_HEADER] = self.fire.receipt_id
        return {**held.headers, **ours}


def compose_challenge(fire: WebhookFire, subscription: WebhookSubscription, now: int) -> WebhookMessage:
    """Return a delivery without data, with an id of its own; a receiver that accepts it gets the fire's body."""
    head = {
        "subscription_id": subscription.id,
        "endpoint": subscription.endpoint,
        "delivered_at": iso_ms(now / 1000),
        "data": None,
        "challenge": True,
    }
    # with the id of the fire, a receiver that ignores repeats would ignore the body after the challenge
    return WebhookMessage(fire._replace(id=f"{fire.id}_challenge", price=0), subscription, msgspec.json.encode(head))


def compose_body(fire: WebhookFire, subscription: WebhookSubscription, payload: bytes) -> bytes:
    """Return the JSON body around a payload, which is inserted unchanged. The fire's `sent_at` must be set."""
    head = {
        "subscription_id": subscription.id,
        "endpoint": subscription.endpoint,
        "delivered_at": iso_ms((fire.sent_at or fire.created_at) / 1000),
    }
    parts = [msgspec.json.encode(head)[:-1], b',"data":', payload]
    if fire.condition is not None:
        parts += [b',"condition":', fire.condition]
    if fire.kind == "test":
        parts.append(b',"test":true')
    return b"".join([*parts, b"}"])
