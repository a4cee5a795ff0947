"""Tells the owners of subscriptions that their tool is gone: a newer version may sell fewer tools."""

import logging
from collections.abc import Iterable

from toolserver.webhooks.records import WebhookSubscription
from toolserver.webhooks.store import WebhookStore
from toolserver.webhooks.subscription_operations import PauseSubscription

log = logging.getLogger(__name__)


async def pause_removed(store: WebhookStore, subscriptions: Iterable[WebhookSubscription], now: int) -> None:
    """Pause subscriptions whose tool this service no longer sells, so that their owners find out from the list."""
    for subscription in subscriptions:
        await store.apply(PauseSubscription(subscription.id, None, "tool_removed", now))
        facts = {"subscription": subscription.id, "endpoint": subscription.endpoint}
        log.warning("a subscription is paused: its tool is no longer sold", extra=facts)
