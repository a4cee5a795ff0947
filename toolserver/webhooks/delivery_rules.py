"""Decide what the result of a fire does to its subscription, and when to retry a failed attempt. Pure rules."""

import random
from collections.abc import Callable

from toolserver.webhooks.attempt import GONE, Attempt
from toolserver.webhooks.records import WebhookFire, WebhookSubscription
from toolserver.webhooks.schedule import next_slot, slots_apart

DELAYS_S = (5.0, 30.0, 120.0)  # after the first, second and third attempt
JITTER = 0.2
FAILING_MS, FAILED_FIRES = 86_400_000, 12  # a day without success and this many failed fires pause a subscription
SLOW_MS = 2_000  # a slower answer puts the endpoint into the slow lane


def retry_delay(attempts: int, made: Attempt, chance: Callable[[], float] = random.random) -> float | None:
    """Return the seconds from this attempt, the `attempts`-th, to the next; None if there is no next attempt.

    A Retry-After lengthens the delay and never shortens it.
    """
    if attempts >= made.tries_allowed or attempts > len(DELAYS_S):
        return None
    delay = DELAYS_S[attempts - 1] * (1 + JITTER * (2 * chance() - 1))
    return max(delay, made.retry_after_s or 0.0)


def after_success(subscription: WebhookSubscription, fire: WebhookFire, now: int) -> WebhookSubscription:
    """Return the subscription after a 2xx. A slow answer puts the next delivery into the slow lane."""
    return subscription._replace(
        last_delivered_at=now,
        last_status=fire.status,
        last_error=None,
        consecutive_failures=0,
        failing_since=None,
        delivered_count=subscription.delivered_count + 1,
        slow=int((fire.duration_ms or 0) > SLOW_MS),
    )


def untell(subscription: WebhookSubscription, fire: WebhookFire) -> WebhookSubscription:
    """Return the subscription after an undelivered fire: its condition has its old state, so it can fire again."""
    if fire.state_after is None or subscription.condition_state != fire.state_after:
        return subscription
    return subscription._replace(condition_state=fire.state_before)


def after_failure(subscription: WebhookSubscription, fire: WebhookFire, now: int) -> WebhookSubscription:
    """Return the subscription after a failed fire: firing less often, paused after a day of failures, or ended."""
    failures = subscription.consecutive_failures + 1
    since = now if subscription.failing_since is None else min(subscription.failing_since, now)
    failed = subscription._replace(
        last_status=fire.status,
        last_error=fire.error,
        consecutive_failures=failures,
        failing_since=since,
        failed_count=subscription.failed_count + 1,
    )
    if failed.state != "active":
        return failed
    if fire.status == GONE:
        return failed._replace(state="paused", pause_reason="endpoint_gone", paused_at=now)
    if now - since >= FAILING_MS and failures >= FAILED_FIRES:
        return failed._replace(state="paused", pause_reason="endpoint_failing", paused_at=now)
    return failed._replace(due_at=next_slot(subscription.created_at, now, slots=slots_apart(failures)))
