"""What a store of webhooks promises, whatever its engine."""

from typing import Protocol, TypeVar

from toolserver.webhooks.records import WebhookFire, WebhookSubscription
from toolserver.webhooks.tables import WebhookOperation

R = TypeVar("R")

PAYLOAD_KEPT_MS = 3_600_000


class WebhookStore(Protocol):
    """Subscriptions, fires and what they carry, in one durable place. Any method may raise StorageFailed."""

    async def apply(self, operation: WebhookOperation[R]) -> R:
        """Do something in one durable transaction. Raises what the operation raises; then nothing was changed."""
        ...

    async def subscription(self, id: str) -> WebhookSubscription | None:
        """One subscription."""
        ...

    async def owned(self, owner: str) -> list[WebhookSubscription]:
        """The subscriptions that a token made or pays for, the oldest first, cancelled ones included."""
        ...

    async def all(self, limit: int, state: str | None = None) -> list[WebhookSubscription]:
        """Subscriptions of every owner, the latest first, for the operator."""
        ...

    async def fire(self, id: str) -> WebhookFire | None:
        """One fire."""
        ...

    async def fires(self, subscription: str, limit: int, before: str | None = None) -> list[WebhookFire]:
        """A subscription's last fires, the latest first; those older than the fire `before`."""
        ...

    async def next_due(self) -> int | None:
        """When the next subscription or fire is due."""
        ...

    async def save_payload(self, digest: str, body: bytes, now: int) -> None:
        """Keep a payload under its digest. The same one again is kept longer."""
        ...

    async def payload(self, digest: str) -> bytes | None:
        """A payload that is still kept."""
        ...

    async def forget_payloads(self, before: int) -> int:
        """Remove payloads that were not used since a time, and that no open fire carries; how many."""
        ...
