"""Define the operations on fires: values that a store applies in one transaction, decided without I/O.

A fire moves in one direction only:

    open ── 2xx ──▶ accepted ── settled ──▶ charged
     │   └─ 2xx, nothing owed ────────────▶ free
     ├── given up ────────────────────────▶ released
     └── never attempted ─────────────────▶ skipped
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from toolserver.core.caller import new_call_id
from toolserver.errors import NotFound, SubscriptionConflict
from toolserver.webhooks.credit_alerts import CREDIT_ALERTS, compose_notice
from toolserver.webhooks.records import (
    SLOT_MS,
    SLOW,
    Attempt,
    ClaimedFire,
    FireKind,
    FireState,
    PayerCounts,
    WebhookFire,
    WebhookSubscription,
    after_failure,
    after_success,
    slot_end,
    untell,
)
from toolserver.webhooks.store import LocksItsRows, WebhookTables, pack_payload
from toolserver.webhooks.subscription_operations import end_expired, find_owned

FIRE_CREDITS = 1
FIRES_KEPT = 50  # per subscription
FAILING_AT_ONCE = 50  # maximum subscriptions with a failing endpoint in one claim


@dataclass(frozen=True, slots=True)
class ClaimSubscriptions(LocksItsRows):
    """Claim due subscriptions.

    Every claimed subscription moves to its next slot, and gets a fire unless it has a
    condition that must be judged first. One whose time is over ends instead. Subscriptions whose
    endpoint fails or is slow come last, a few at a time. Subscriptions to credit alerts get a fire
    when a threshold was crossed, and at no other time.
    """

    now: int
    limit: int

    def on(self, tables: WebhookTables) -> list[WebhookSubscription]:
        claimed = tables.claim_due(self.now, self.limit, failing=False)
        room = min(FAILING_AT_ONCE, self.limit - len(claimed))
        if room:
            claimed += tables.claim_due(self.now, room, failing=True)
        for subscription in [one for one in claimed if one.is_expired(self.now)]:
            tables.save(end_expired(subscription, self.now))
            claimed.remove(subscription)
        for subscription in claimed:
            if subscription.condition is None and subscription.endpoint != CREDIT_ALERTS:
                tables.add_fire(plan_fire(subscription, self.now))
        for payer, crossing in tables.take_crossings(self.limit):
            notice = compose_notice(crossing)
            digest = hashlib.sha256(notice).hexdigest()
            for subscription in tables.list_paid_by(payer):
                if subscription.endpoint == CREDIT_ALERTS and subscription.state == "active":
                    tables.find_for_change(subscription.id)  # numbers its fires; another instance may add one too
                    tables.save_payload(digest, pack_payload(notice), self.now)
                    tables.add_fire(plan_notice(subscription, digest, self.now))
        return claimed


@dataclass(frozen=True, slots=True)
class RecordEvaluation(LocksItsRows):
    """Store the new state of a condition and the fire that it triggers, both or neither. False if it has changed."""

    id: str
    before: bytes | None
    after: bytes
    fire: WebhookFire | None = None

    def on(self, tables: WebhookTables) -> bool:
        subscription = tables.find_for_change(self.id)
        if subscription is None or subscription.state != "active" or subscription.condition_state != self.before:
            return False
        tables.save(subscription._replace(condition_state=self.after))
        if self.fire is not None:
            tables.add_fire(self.fire)
        return True


@dataclass(frozen=True, slots=True)
class AddFire:
    """Store a fire outside any slot: a test."""

    fire: WebhookFire

    def on(self, tables: WebhookTables) -> WebhookFire:
        tables.add_fire(self.fire)
        tables.trim_fires(self.fire.subscription, FIRES_KEPT)
        return self.fire


@dataclass(frozen=True, slots=True)
class ClaimFires(LocksItsRows):
    """Claim due fires, as many in each lane as `rooms` says.

    If a process dies with a claimed fire, the fire can be claimed again after `lease_ms`.
    """

    now: int
    rooms: Mapping[int, int]
    lease_ms: int

    def on(self, tables: WebhookTables) -> list[ClaimedFire]:
        until = self.now + self.lease_ms
        taken = [f for lane, room in self.rooms.items() for f in tables.claim_fires(self.now, lane, room, until)]
        subscriptions = {id: tables.find(id) for id in {fire.subscription for fire in taken}}
        claimed = []
        for fire in taken:
            subscription = subscriptions[fire.subscription]
            if subscription is None:
                tables.save_fire(fire._replace(state="skipped", reason="cancelled", finished_at=self.now))
            else:
                claimed.append(ClaimedFire(fire, subscription))
        return claimed


@dataclass(frozen=True, slots=True)
class PrepareFire(LocksItsRows):
    """Fix what an open fire carries in every attempt, and return its subscription's state just before sending.

    None if the fire has arrived or ended, or if its subscription is gone.
    """

    id: str
    payload: str
    captured_at: int | None
    now: int

    def on(self, tables: WebhookTables) -> ClaimedFire | None:
        fire = tables.find_fire_for_change(self.id)
        if fire is None or fire.state != "open":
            return None
        if fire.sent_at is None:
            fire = fire._replace(payload=self.payload, captured_at=self.captured_at, sent_at=self.now)
            tables.save_fire(fire)
        subscription = tables.find(fire.subscription)
        return None if subscription is None else ClaimedFire(fire, subscription)


@dataclass(frozen=True, slots=True)
class PostponeFire(LocksItsRows):
    """Give an open fire another due time, without an attempt. None if it has ended."""

    id: str
    due_at: int

    def on(self, tables: WebhookTables) -> WebhookFire | None:
        fire = tables.find_fire_for_change(self.id)
        if fire is None or not fire.is_open:
            return None
        postponed = fire._replace(due_at=self.due_at, claims=0)
        tables.save_fire(postponed)
        return postponed


@dataclass(frozen=True, slots=True)
class RetryFire(LocksItsRows):
    """Record a failed attempt of an open fire, whose next attempt is made in the slow lane. None if it has ended.

    The status of an earlier attempt stays if this one had no answer.
    """

    id: str
    attempt: Attempt
    due_at: int

    def on(self, tables: WebhookTables) -> WebhookFire | None:
        fire = tables.find_fire_for_change(self.id)
        if fire is None or not fire.is_open:
            return None
        failed = fire._replace(
            due_at=self.due_at,
            lane=SLOW,
            attempts=fire.attempts + 1,
            status=fire.status if self.attempt.status is None else self.attempt.status,
            error=self.attempt.error,
            duration_ms=self.attempt.duration_ms,
            claims=0,
        )
        tables.save_fire(failed)
        return failed


@dataclass(frozen=True, slots=True)
class AcceptFire(LocksItsRows):
    """Record a 2xx from the receiver: the subscription is healthy, and the fire must be settled. Applied once."""

    id: str
    attempt: Attempt
    now: int

    def on(self, tables: WebhookTables) -> WebhookFire | None:
        fire = tables.find_fire_for_change(self.id)
        if fire is None or fire.state != "open":
            return fire
        accepted = fire._replace(
            state="accepted",
            attempts=fire.attempts + 1,
            claims=1,
            status=self.attempt.status or 0,
            error=None,
            duration_ms=self.attempt.duration_ms,
        )
        tables.save_fire(accepted)
        subscription = tables.find_for_change(fire.subscription)
        if subscription is not None and fire.kind != "test":
            tables.save(after_success(subscription, accepted, self.now))
        if fire.price:  # one that costs nothing stays counted
            counted = tables.remove_unpaid(fire.id)
            payer = counted or (subscription and subscription.payer)
            if payer:
                tables.count_payer(payer, PayerCounts(paid=fire.price, refused=-1 if counted else 0))
        return accepted


@dataclass(frozen=True, slots=True)
class FinishFire(LocksItsRows):
    """End a fire. A failed delivery makes its subscription fire less often, or pauses it.

    `attempt` is the last one, if it is not recorded yet.
    """

    id: str
    state: FireState
    reason: str | None
    now: int
    attempt: Attempt | None = None

    def on(self, tables: WebhookTables) -> WebhookFire | None:
        fire = tables.find_fire_for_change(self.id)
        if fire is None or not fire.is_open:
            return fire
        over = fire._replace(state=self.state, reason=self.reason, finished_at=self.now)
        if self.attempt is not None:
            over = over._replace(
                attempts=fire.attempts + 1,
                status=self.attempt.status,
                error=self.attempt.error,
                duration_ms=self.attempt.duration_ms,
            )
        tables.save_fire(over)
        tables.trim_fires(fire.subscription, FIRES_KEPT)
        subscription = tables.find_for_change(fire.subscription)
        if subscription is not None and fire.kind != "test" and self.state in ("released", "skipped"):
            after = untell(subscription, over)
            if self.reason == "delivery_failed":
                after = after_failure(after, over, self.now)
            if after != subscription:
                tables.save(after)
        return over


@dataclass(frozen=True, slots=True)
class RepairClock:
    """After the clock was set back, move rows that are due too far ahead to their next slot. Returns their number."""

    now: int

    def on(self, tables: WebhookTables) -> int:
        subscriptions, fires = tables.list_misplaced(self.now)
        for subscription in subscriptions:
            due = self.now + (subscription.created_at - self.now) % SLOT_MS
            tables.save(subscription._replace(due_at=due))
        for fire in fires:
            tables.save_fire(fire._replace(due_at=self.now, expires_at=min(fire.expires_at, self.now + SLOT_MS)))
        return len(subscriptions) + len(fires)


def plan_fire(
    subscription: WebhookSubscription,
    now: int,
    *,
    kind: FireKind = "data",
    payload: str | None = None,
    captured_at: int | None = None,
    condition: bytes | None = None,
    state_after: bytes | None = None,
) -> WebhookFire:
    """Return a new fire of a subscription, due now until the end of its slot. `state_after` is its condition's."""
    free = kind in ("no_data", "test")
    return WebhookFire(
        new_call_id(),
        subscription.id,
        kind,
        0 if free else FIRE_CREDITS,
        now,
        now,
        slot_end(subscription.created_at, now),
        subscription.lane,
        payload=payload,
        condition=condition,
        state_before=subscription.condition_state if condition is not None else None,
        state_after=state_after,
        captured_at=captured_at,
    )


def plan_notice(subscription: WebhookSubscription, payload: str, now: int) -> WebhookFire:
    """Return the fire of a credit alert, which costs nothing. It has the time of a whole slot for its attempts."""
    fire = plan_fire(subscription, now, kind="fired", payload=payload)
    return fire._replace(price=0, expires_at=now + SLOT_MS)


@dataclass(frozen=True, slots=True)
class FireNow:
    """Make an active subscription due now. Raises NotFound, SubscriptionConflict."""

    id: str
    now: int

    def on(self, tables: WebhookTables) -> WebhookSubscription:
        subscription = find_owned(tables.find, self.id, None)
        if subscription.state != "active":
            raise SubscriptionConflict(f"The subscription is {subscription.state}.")
        due = subscription._replace(due_at=self.now)
        tables.save(due)
        return due


@dataclass(frozen=True, slots=True)
class ReplayFire:
    """Plan a free repeat of the delivery of an earlier fire. Raises NotFound, SubscriptionConflict."""

    id: str
    now: int

    def on(self, tables: WebhookTables) -> WebhookFire:
        fire = tables.find_fire(self.id)
        if fire is None or fire.payload is None:
            raise NotFound("There is no such delivery, or it carried nothing.")
        subscription = find_owned(tables.find, fire.subscription, None)
        if subscription.state != "active":
            raise SubscriptionConflict(f"The subscription is {subscription.state}.")
        again = plan_fire(subscription, self.now, kind=fire.kind, payload=fire.payload, condition=fire.condition)
        free = again._replace(price=0, state_before=None, state_after=None)
        tables.add_fire(free)
        return free
