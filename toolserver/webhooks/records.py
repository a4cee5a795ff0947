"""Define what is stored about webhooks, subscriptions and their fires, and when a subscription fires.

It fires once in every five-minute slot, counted from its creation, which spreads subscriptions
over the five minutes. All times are milliseconds since 1970.
"""

import hashlib
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import msgspec

from toolserver.errors import AllowanceConflict
from toolserver.money.receipts.sign import receipt_id
from toolserver.webhooks.conditions import ConditionInput
from toolserver.webhooks.credit_alerts import CREDIT_ALERTS

GONE, TOO_LARGE = 410, 413
UNSENT = ("dns", "connect", "target_refused", "internal_error")
"""The errors after which no receiver can have the body. One of TLS may also end a connection after it was read."""


PREFIX = "/api/pro/"


def endpoint_of(path: str) -> str:
    """Return what subscriptions call an endpoint: the short name of a premium one, the whole path of a free one."""
    return path.removeprefix(PREFIX)


def path_of(endpoint: str) -> str:
    """Return the path of an endpoint that `endpoint_of` named."""
    return endpoint if endpoint.startswith("/") else PREFIX + endpoint


class Attempt(NamedTuple):
    """How an attempt ended. `error` is None after a 2xx, else one word. `status` is None if there was no answer.

    `retry_after_s` is set if the receiver said when to retry and that is within four minutes.
    `challenge` says that a challenge was sent, and no data.
    """

    status: int | None
    error: str | None
    duration_ms: int
    retry_after_s: float | None = None
    challenge: bool = False

    @property
    def delivered(self) -> bool:
        return self.error is None

    @property
    def maybe_read(self) -> bool:
        """True if the receiver may have read the body."""
        return not self.challenge and self.error not in UNSENT

    @property
    def gone(self) -> bool:
        """True if the receiver never wants another delivery."""
        return self.status == GONE

    @property
    def tries_allowed(self) -> int:
        """How many attempts a delivery with this result gets: one more after a 4xx other than 408, 425 and 429.

        None follows a 410 and a 413, because the same body would be too large again.
        """
        if self.gone or self.status == TOO_LARGE or self.error == "target_refused":
            return 1
        return 2 if self.status is not None and 400 <= self.status < 500 and self.status not in (408, 425, 429) else 4


SubscriptionState = Literal["active", "paused", "cancelled"]
FireKind = Literal["data", "fired", "cleared", "no_data", "test"]
FireState = Literal["open", "accepted", "charged", "free", "released", "skipped"]

FAST, NEW, SLOW = 0, 1, 2
"""Delivery lanes: endpoints whose last delivery was fast, that have had none, and that failed or were slow."""


@dataclass(frozen=True, slots=True)
class SubscriptionRequest:
    """A subscriber's request, of which only the shape is checked."""

    endpoint: str
    webhook_url: str
    params: Mapping[str, Any] = field(default_factory=dict)
    when: ConditionInput | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    description: str = ""


class TokenAccount(NamedTuple):
    """The account whose credits a token spends, and the SHA-256 (hex) of the token that owns it.

    The account has the ledger's name for it. Subscriptions are counted by the owning token. `paths` are those of the
    only tools that the token may pay for; None: for every tool, as far as this service knows.
    """

    account: str
    payer: str
    paths: frozenset[str] | None = None

    def require_cover(self, path: str) -> None:
        """Raise AllowanceConflict for a tool that the token may not pay for."""
        if self.paths is not None and path not in self.paths:
            raise AllowanceConflict("This allowance does not cover this tool, so that no delivery could be paid.")


class EventTerms(msgspec.Struct, frozen=True):
    """What a client of MCP Events subscribed to.

    `id` is the id that it knows, `verified_at` when its receiver last proved that it wants events, in milliseconds.
    """

    id: str
    name: str
    arguments: dict[str, Any]
    verified_at: int = 0


class WebhookSubscription(NamedTuple):
    """One subscription.

    `owner` is the SHA-256 of its token, `account` names that token's account to the ledger,
    and `payer` is the SHA-256 of the token whose credits are spent: the same token, unless it
    is an allowance of another. `sealed` holds the secrets and the custom headers, encrypted.
    `params` is a JSON object, `condition` and `condition_state` are JSON or None. `event` has the
    `EventTerms` of a subscription of MCP Events as JSON, which ends at `expires_at`.
    """

    id: str
    owner: str
    payer: str
    account: str
    endpoint: str
    url: str
    host: str
    params: bytes
    sealed: bytes
    created_at: int
    due_at: int
    description: str = ""
    condition: bytes | None = None
    condition_state: bytes | None = None
    state: SubscriptionState = "active"
    pause_reason: str | None = None
    paused_at: int | None = None
    last_delivered_at: int | None = None
    last_status: int | None = None
    last_error: str | None = None
    consecutive_failures: int = 0
    failing_since: int | None = None
    delivered_count: int = 0
    failed_count: int = 0
    slow: int = 0
    event: bytes | None = None
    expires_at: int | None = None

    @property
    def event_terms(self) -> EventTerms | None:
        """What was subscribed to by MCP Events; None for a webhook of our own."""
        return None if self.event is None else msgspec.json.decode(self.event, type=EventTerms)

    def is_expired(self, now: int) -> bool:
        """Return True if its time is over at `now` in milliseconds."""
        return self.expires_at is not None and now >= self.expires_at

    @property
    def given_params(self) -> dict[str, Any]:
        """The query parameters given by its owner."""
        params: dict[str, Any] = msgspec.json.decode(self.params)
        return params

    @property
    def given_condition(self) -> dict[str, Any] | None:
        """The condition given by its owner. That of an event of MCP Events is ours, on a view of the answer."""
        return None if self.condition is None or self.event is not None else msgspec.json.decode(self.condition)

    @property
    def next_fire_at(self) -> int | None:
        """When its next slot begins; None while it has no slots: not active, or notified of credit alerts only."""
        return self.due_at if self.state == "active" and self.endpoint != CREDIT_ALERTS else None

    @property
    def lane(self) -> int:
        """The lane of its next delivery."""
        if self.consecutive_failures or self.slow:
            return SLOW
        return FAST if self.delivered_count else NEW


class WebhookFire(NamedTuple):
    """One delivery that is due, in progress or ended. `id` is also the id of the paid call.

    `payload` names its stored payload, and `sent_at` is the time in its body. Both are set
    before the first attempt, so that every attempt sends the same bytes. `claims` counts
    claims since the last result: more than one means that an attempt was interrupted and may
    have arrived. `state_before` and `state_after` are the states of the condition that
    triggered it. `captured_at` is the time of the oldest part of its data. `seq` counts the
    fires of its subscription; a store sets it.
    """

    id: str
    subscription: str
    kind: FireKind
    price: int
    created_at: int
    due_at: int
    expires_at: int
    lane: int
    state: FireState = "open"
    reason: str | None = None
    attempts: int = 0
    claims: int = 0
    payload: str | None = None
    condition: bytes | None = None
    sent_at: int | None = None
    finished_at: int | None = None
    status: int | None = None
    error: str | None = None
    duration_ms: int | None = None
    state_before: bytes | None = None
    state_after: bytes | None = None
    captured_at: int | None = None
    seq: int = 0

    @property
    def message_id(self) -> str:
        """The id by which receivers recognise a repeated delivery."""
        return "msg_" + self.id.removeprefix("call_")

    @property
    def receipt_id(self) -> str:
        """The id of the receipt for its charge."""
        return receipt_id(self.id)

    @property
    def interrupted(self) -> bool:
        """True if an earlier attempt may have arrived without our knowing."""
        return self.claims > 1

    @property
    def is_open(self) -> bool:
        return self.state in ("open", "accepted")


class UnpaidBody(NamedTuple):
    """A body that was sent and is not paid for. `target` is the SHA-256 of its URL; `refused` is 0 before an answer."""

    fire: str
    payer: str
    owner: str
    target: str
    host: str
    sent_at: int
    refused: int = 0

    @classmethod
    def of(cls, fire: str, subscription: WebhookSubscription, now: int) -> "UnpaidBody":
        """Return the body of a fire that is about to be sent."""
        target = hashlib.sha256(subscription.url.encode()).hexdigest()
        return cls(fire, subscription.payer, subscription.owner, target, subscription.host, now)


class PayerCounts(NamedTuple):
    """What an account had over its life: the credits charged for deliveries, the bodies with a price that were sent and
    are not paid for, and the bodies that cost nothing.
    """

    paid: int = 0
    refused: int = 0
    free: int = 0


class ClaimedFire(NamedTuple):
    """A fire to work on now, with the current state of its subscription."""

    fire: WebhookFire
    subscription: WebhookSubscription


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
    if fire.status == GONE and failed.event is not None:
        return failed._replace(state="cancelled", paused_at=now)
    if fire.status == GONE:
        return failed._replace(state="paused", pause_reason="endpoint_gone", paused_at=now)
    if now - since >= FAILING_MS and failures >= FAILED_FIRES:
        return failed._replace(state="paused", pause_reason="endpoint_failing", paused_at=now)
    return failed._replace(due_at=next_slot(subscription.created_at, now, slots=slots_apart(failures)))
