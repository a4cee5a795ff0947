"""Define the operations on subscriptions: values that a store applies in one transaction, decided without I/O."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from toolserver.errors import NotFound, SubscriptionConflict, ToolserverError
from toolserver.webhooks.records import WebhookSubscription, next_slot
from toolserver.webhooks.store import WebhookTables

MOST_ACTIVE, MOST_STORED = 5, 20
COOLDOWN_MS = 300_000  # after a pause for a failing endpoint
ENDED_MS = 30 * 86_400_000  # of failed deliveries, after which the subscription is cancelled
KEPT_MS = 90 * 86_400_000  # how long after its end a subscription is deleted with its log


@dataclass(frozen=True, slots=True)
class AddSubscription:
    """Store a new subscription, if its owner may have one more. Raises SubscriptionConflict."""

    subscription: WebhookSubscription

    def on(self, tables: WebhookTables) -> WebhookSubscription:
        owned = tables.list_paid_by(self.subscription.payer)
        check_active(owned, self.subscription.created_at)
        stored = [s for s in owned if s.state != "cancelled"]
        if len(stored) >= MOST_STORED:
            raise SubscriptionConflict(f"A token can have {MOST_STORED} subscriptions: cancel a paused one first.")
        ended = sorted((s for s in owned if s.state == "cancelled"), key=lambda s: s.paused_at or 0)
        for oldest in ended[: max(0, len(owned) + 1 - MOST_STORED)]:
            tables.remove(oldest.id)
        tables.add(self.subscription)
        return self.subscription


@dataclass(frozen=True, slots=True)
class CancelSubscription:
    """Cancel a subscription permanently. One that is already cancelled is unchanged. Raises NotFound."""

    id: str
    owner: str | None
    now: int

    def on(self, tables: WebhookTables) -> WebhookSubscription:
        subscription = find_owned(tables.find, self.id, self.owner)
        if subscription.state == "cancelled":
            return subscription
        ended = subscription._replace(state="cancelled", pause_reason=None, paused_at=self.now)
        tables.save(ended)
        return ended


@dataclass(frozen=True, slots=True)
class PauseSubscription:
    """Stop the fires of an active subscription until its owner resumes it. Raises NotFound."""

    id: str
    owner: str | None
    reason: str
    now: int

    def on(self, tables: WebhookTables) -> WebhookSubscription:
        subscription = find_owned(tables.find, self.id, self.owner)
        if subscription.state != "active":
            return subscription
        paused = subscription._replace(state="paused", pause_reason=self.reason, paused_at=self.now)
        tables.save(paused)
        return paused


@dataclass(frozen=True, slots=True)
class ResumeSubscription:
    """Resume the fires of a paused subscription with its next slot. An active one is unchanged.

    Raises:
        NotFound: no such subscription of this owner.
        SubscriptionConflict: it was cancelled, five others are active, or its endpoint failed too recently.
    """

    id: str
    owner: str | None
    now: int

    def on(self, tables: WebhookTables) -> WebhookSubscription:
        subscription = find_owned(tables.find, self.id, self.owner)
        if subscription.state == "active":
            return subscription
        if subscription.state == "cancelled":
            raise SubscriptionConflict("A cancelled subscription cannot be resumed: subscribe again.")
        wait_ms = (subscription.paused_at or 0) + COOLDOWN_MS - self.now
        if subscription.pause_reason == "endpoint_failing" and 0 < wait_ms <= COOLDOWN_MS:
            seconds = -(-wait_ms // 1000)
            raise SubscriptionConflict(
                f"The endpoint was failing until just now: resume it in {seconds} s.",
                headers={"Retry-After": str(seconds)},
                retry_after_seconds=seconds,
            )
        check_active(tables.list_paid_by(subscription.payer), self.now)
        due = next_slot(subscription.created_at, self.now)
        active = subscription._replace(
            state="active", pause_reason=None, paused_at=None, due_at=due, consecutive_failures=0, last_error=None
        )
        tables.save(active)
        return active


class SecretReplaced(ToolserverError):
    """Another call replaced the secrets after they were read."""


@dataclass(frozen=True, slots=True)
class ReplaceSealed:
    """Replace the secrets that were read with new ones. Raises NotFound, and SecretReplaced after a race."""

    id: str
    owner: str
    before: bytes
    after: bytes

    def on(self, tables: WebhookTables) -> WebhookSubscription:
        subscription = find_owned(tables.find, self.id, self.owner)
        if subscription.sealed != self.before:
            raise SecretReplaced("Another call replaced the secret at the same moment.")
        replaced = subscription._replace(sealed=self.after)
        tables.save(replaced)
        return replaced


def find_same_event(
    owned: Iterable[WebhookSubscription], sought: WebhookSubscription, now: int
) -> WebhookSubscription | None:
    """Return the live subscription of MCP Events with the same owner, receiver, event and arguments, or None."""
    terms = sought.event_terms
    for subscription in owned:
        other = subscription.event_terms
        if subscription.state == "cancelled" or subscription.is_expired(now) or other is None or terms is None:
            continue
        if (subscription.owner, subscription.url) != (sought.owner, sought.url):
            continue
        if (other.name, other.arguments) == (terms.name, terms.arguments):
            return subscription
    return None


@dataclass(frozen=True, slots=True)
class SubscribeEvent:
    """Store a subscription of MCP Events, or renew the one that is the same: its time, its secrets, its verification.

    `before` are the secrets of that one when it was read, from which the new ones were made;
    None if there was none. A paused one is resumed. Raises SubscriptionConflict, also if
    another call changed it since.
    """

    subscription: WebhookSubscription
    before: bytes | None
    now: int

    def on(self, tables: WebhookTables) -> WebhookSubscription:
        wanted = self.subscription
        same = find_same_event(tables.list_reached(wanted.owner), wanted, self.now)
        if (None if same is None else same.sealed) != self.before:
            raise SubscriptionConflict("Another call changed this subscription at the same moment.")
        if same is None:
            return AddSubscription(wanted).on(tables)
        if same.state == "paused":
            same = ResumeSubscription(same.id, wanted.owner, self.now).on(tables)
        renewed = same._replace(sealed=wanted.sealed, event=wanted.event, expires_at=wanted.expires_at)
        tables.save(renewed)
        return renewed


@dataclass(frozen=True, slots=True)
class EndExpired:
    """Cancel the subscriptions whose time is over. Returns their number."""

    now: int
    limit: int = 200

    def on(self, tables: WebhookTables) -> int:
        expired = tables.list_expired(self.now, self.limit)
        for subscription in expired:
            tables.save(end_expired(subscription, self.now))
        return len(expired)


def end_expired(subscription: WebhookSubscription, now: int) -> WebhookSubscription:
    """Return a subscription whose time is over as a cancelled one."""
    return subscription._replace(state="cancelled", pause_reason=None, paused_at=now)


@dataclass(frozen=True, slots=True)
class EndFailing:
    """Cancel subscriptions that were paused for their endpoint and have failed for 30 days. Returns their ids.

    A subscription that failed once and has had nothing to deliver since is left alone.
    """

    now: int
    limit: int = 200

    def on(self, tables: WebhookTables) -> list[str]:
        failing = tables.list_failing(self.now - ENDED_MS, self.limit)
        for subscription in failing:
            tables.save(subscription._replace(state="cancelled", pause_reason=None, paused_at=self.now))
        return [subscription.id for subscription in failing]


@dataclass(frozen=True, slots=True)
class ForgetEnded:
    """Remove subscriptions that ended 90 days ago, and their logs. Returns their number."""

    now: int
    limit: int = 200

    def on(self, tables: WebhookTables) -> int:
        ended = tables.list_ended(self.now - KEPT_MS, self.limit)
        for subscription in ended:
            tables.remove(subscription.id)
        return len(ended)


def find_owned(find: Callable[[str], WebhookSubscription | None], id: str, owner: str | None) -> WebhookSubscription:
    """Return a subscription that a token may access: its own, or one that spends its credits.

    `owner` is the SHA-256 of the token; None is the operator, who may access all. Raises NotFound.
    """
    subscription = find(id)
    if subscription is None or (owner is not None and owner not in (subscription.owner, subscription.payer)):
        raise NotFound("This token has no such subscription.")
    return subscription


def check_active(owned: list[WebhookSubscription], now: int) -> None:
    """Check that an account may have one more active subscription. Raises SubscriptionConflict."""
    if sum(s.state == "active" and not s.is_expired(now) for s in owned) >= MOST_ACTIVE:
        raise SubscriptionConflict(f"A token can have at most {MOST_ACTIVE} active subscriptions: cancel one first.")
