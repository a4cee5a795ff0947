"""Compute when a subscription fires: once in every five-minute slot, counted from its creation.

Counting from the creation spreads subscriptions over the five minutes. All times are milliseconds since 1970.
"""

import random
from collections.abc import Callable

from toolserver.webhooks.records import GONE, Attempt, WebhookFire, WebhookSubscription

SLOT_MS = 300_000
THINNEST = 12  # a failing endpoint is tried at least in every twelfth slot, which is once an hour
FAR_MS = 2 * SLOT_MS  # no fire or healthy subscription is ever due later than this, unless the clock was set back
FAR_FAILING_MS = (THINNEST + 2) * SLOT_MS  # the same for subscriptions whose endpoint fails


def next_slot(created_at: int, now: int, *, slots: int = 1) -> int:
    """Return the start of a subscription's next slot after `now`, or of the one `slots` ahead.

    `now` may be before the creation if the clock was set back. The number of missed slots
    does not matter: a late subscription fires once and continues with the next slot.
    """
    return now - (now - created_at) % SLOT_MS + slots * SLOT_MS


def slot_end(created_at: int, now: int) -> int:
    """Return the end of the slot that contains `now`."""
    return next_slot(created_at, now)


def slots_apart(consecutive_failures: int) -> int:
    """Return the number of slots between two fires of an endpoint with this many failures: 1, then 2, 4 … 12."""
    return min(THINNEST, max(1, 2 * consecutive_failures))


def is_misplaced(due_at: int, now: int, *, failing: bool = False) -> bool:
    """Return True if only a clock that has been set back since can explain a due time."""
    return due_at > now + (FAR_FAILING_MS if failing else FAR_MS)


DELAYS_S = (5.0, 30.0, 120.0)  # after the first, second and third attempt
JITTER = 0.2
FAILING_MS, FAILED_FIRES = 86_400_000, 12  # a day without success and this many failed fires pause a subscription
SLOW_MS = 2_000  # a slower answer puts the endpoint into the slow lane


def retry_delay(attempts: int, attempt: Attempt, chance: Callable[[], float] = random.random) -> float | None:
    """Return the seconds from this attempt, the `attempts`-th, to the next; None if there is no next attempt.

    A Retry-After lengthens the delay and never shortens it.
    """
    if attempts >= attempt.tries_allowed or attempts > len(DELAYS_S):
        return None
    delay = DELAYS_S[attempts - 1] * (1 + JITTER * (2 * chance() - 1))
    return max(delay, attempt.retry_after_s or 0.0)


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
