"""Define what is stored about webhooks: subscriptions and their fires. All times are milliseconds since 1970."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import msgspec

from toolserver.money.receipts.sign import receipt_id
from toolserver.webhooks.conditions import ConditionInput

GONE = 410
UNSENT = ("dns", "connect", "target_refused", "internal_error")
"""The errors after which no receiver can have the body. One of TLS may also end a connection after it was read."""


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
        """How many attempts a delivery with this result gets: one more after a 4xx other than 408, 425 and 429."""
        if self.gone or self.error == "target_refused":
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

    The account has the ledger's name for it. Subscriptions are counted by the owning token.
    """

    account: str
    payer: str


class WebhookSubscription(NamedTuple):
    """One subscription.

    `owner` is the SHA-256 of its token, `account` names that token's account to the ledger,
    and `payer` is the SHA-256 of the token whose credits are spent: the same token, unless it
    is an allowance of another. `sealed` holds the secrets and the custom headers, encrypted.
    `params` is a JSON object, `condition` and `condition_state` are JSON or None.
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

    @property
    def given_params(self) -> dict[str, Any]:
        """The query parameters given by its owner."""
        params: dict[str, Any] = msgspec.json.decode(self.params)
        return params

    @property
    def given_condition(self) -> dict[str, Any] | None:
        """The condition given by its owner."""
        return None if self.condition is None else msgspec.json.decode(self.condition)

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


class ClaimedFire(NamedTuple):
    """A fire to work on now, with the current state of its subscription."""

    fire: WebhookFire
    subscription: WebhookSubscription
