"""Define what a store of webhooks promises, whatever its engine."""

from typing import Protocol, TypeVar

from toolserver.webhooks.records import WebhookFire, WebhookSubscription
from toolserver.webhooks.tables import WebhookOperation

R = TypeVar("R")

PAYLOAD_KEPT_MS = 3_600_000


class WebhookStore(Protocol):
    """Subscriptions, fires and their payloads, in one durable place. Any method may raise StorageFailed."""

    async def apply(self, operation: WebhookOperation[R]) -> R:
        """Apply an operation in one durable transaction. If the operation raises, nothing is changed."""
        ...

    async def subscription(self, id: str) -> WebhookSubscription | None:
        """Return a subscription, or None."""
        ...

    async def owned(self, owner: str) -> list[WebhookSubscription]:
        """Return the subscriptions that a token made or pays for, oldest first, including cancelled ones."""
        ...

    async def all(self, limit: int, state: str | None = None) -> list[WebhookSubscription]:
        """Return subscriptions of all owners, newest first, for the operator."""
        ...

    async def fire(self, id: str) -> WebhookFire | None:
        """Return a fire, or None."""
        ...

    async def fires(self, subscription: str, limit: int, before: str | None = None) -> list[WebhookFire]:
        """Return a subscription's last fires, newest first, that are older than the fire `before`."""
        ...

    async def next_due(self) -> int | None:
        """Return when the next subscription or fire is due."""
        ...

    async def save_payload(self, digest: str, body: bytes, now: int) -> None:
        """Store a payload under its digest, or extend the time for which an existing one is kept."""
        ...

    async def payload(self, digest: str) -> bytes | None:
        """Return a payload if it is still kept, else None."""
        ...

    async def forget_payloads(self, before: int) -> int:
        """Remove payloads unused since a time and not carried by an open fire. Returns their number."""
        ...
