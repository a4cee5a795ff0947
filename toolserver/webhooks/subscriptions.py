"""Implement what owners of tokens can do with their subscriptions. All interfaces use it through the account tools."""

import hashlib
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from toolserver.core.caller import token_hash
from toolserver.core.visible_text import require_visible
from toolserver.errors import (
    AllowanceConflict,
    InsufficientCredits,
    InvalidArguments,
    NotFound,
    NotSupported,
    SubscriptionConflict,
)
from toolserver.money.ledger.protocol import Ledger
from toolserver.webhooks.conditions import (
    MISSING,
    Transition,
    condition_of,
    decode_condition,
    encode_condition,
    find_value,
)
from toolserver.webhooks.credit_alerts import CREDIT_ALERTS, EXAMPLE, compose_notice
from toolserver.webhooks.delivery import HostBusy
from toolserver.webhooks.egress import DnsLane, NameUnknown, TargetRefused
from toolserver.webhooks.fire_operations import FIRE_CREDITS, AddFire, plan_fire
from toolserver.webhooks.queue import LEASE_MS, FireParts, FireWorker
from toolserver.webhooks.records import (
    Attempt,
    ClaimedFire,
    SubscriptionRequest,
    TokenAccount,
    WebhookFire,
    WebhookSubscription,
    next_slot,
)
from toolserver.webhooks.signing import SubscriptionSecrets, new_secret
from toolserver.webhooks.store import PAYLOAD_KEPT_MS
from toolserver.webhooks.subscription_operations import (
    AddSubscription,
    CancelSubscription,
    ReplaceSealed,
    ResumeSubscription,
    SecretReplaced,
    find_owned,
)

if TYPE_CHECKING:
    from yarl import URL

MOST_HEADERS, MOST_VALUE = 10, 1024
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_OURS = re.compile(
    r"(x-service-|webhook-|content-|proxy-|sec-|accept|host$|user-agent$|connection$|keep-alive$|te$|trailer$"
    r"|transfer-encoding$|upgrade$|expect$|cookie$)"
)


async def check_target(lane: DnsLane, text: str, loc: str = "webhook_url") -> "URL":
    """Return the URL to deliver to. Accepts a name without an address, as it is checked before every delivery.

    `loc` is the name of the argument.

    Raises:
        InvalidArguments: with the reason as the type of the error.
    """
    try:
        url = lane.guard.check_url(text)
        await lane.resolve(url.raw_host or "")
    except NameUnknown:
        return url
    except TargetRefused as refused:
        raise refuse(loc, str(refused), refused.reason) from None
    return url


def check_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the custom headers of deliveries. Raises InvalidArguments, whose text never quotes a value."""
    if len(headers) > MOST_HEADERS:
        raise refuse("headers", f"Give at most {MOST_HEADERS} headers.", "too_long")
    for name, value in headers.items():
        if not _NAME.fullmatch(name):
            raise refuse("headers", "A header's name may have only letters, digits and hyphens.", "invalid_header")
        if _OURS.match(name.lower()):
            raise refuse("headers", f"The header {name} is set by the service.", "reserved_header")
        if len(value) > MOST_VALUE or not value.isascii() or not value.isprintable():
            raise refuse(
                "headers",
                f"The value of {name} must be printable ASCII of at most {MOST_VALUE} characters.",
                "invalid_header",
            )
    return dict(headers)


def refuse(loc: str, message: str, kind: str) -> InvalidArguments:
    """Return the error for one invalid argument."""
    return InvalidArguments(f"{loc}: {message}", errors=[{"loc": loc, "msg": message, "type": kind}])


MOST_TEST_BYTES = 32 * 1024
DELIVERED = (
    "charged",
    "free",
)  # the states of fires whose receiver has had the body, and paid for it if it has a price


class NewSubscription(NamedTuple):
    """A subscription with its secret, which is shown only once."""

    subscription: WebhookSubscription
    secret: str


@dataclass(frozen=True, slots=True)
class SubscriptionParts:
    """The parts that the subscription service uses. `examples` has recorded answers by tool name, for tests.

    `keeps_ledger` is False if another service keeps the ledger, and with it the thresholds of owners.
    """

    fires: FireParts
    ledger: Ledger
    account_of: Callable[[str], Awaitable[TokenAccount]]
    wake: Callable[[], None]
    examples: Callable[[], Mapping[str, Any]]
    keeps_ledger: bool = True


class WebhookSubscriptions:
    """The subscriptions of all tokens, each accessible only to its own token."""

    def __init__(self, parts: SubscriptionParts) -> None:
        self._parts, self._store, self._clock = parts, parts.fires.store, parts.fires.clock
        self._worker = FireWorker(parts.fires)

    @property
    def _now(self) -> int:
        return int(self._clock.time() * 1000)

    async def subscribe(self, token: str, request: SubscriptionRequest) -> NewSubscription:
        """Store a new subscription. Raises InvalidArguments, SubscriptionConflict and the 402 codes.

        One to credit alerts costs nothing, has no arguments, and needs no balance. It also
        raises AllowanceConflict for an allowance, whose owner set the thresholds, and
        NotSupported where another service keeps the ledger.
        """
        payloads, now = self._parts.fires.payloads, self._now
        endpoint = payloads.spell(request.endpoint)
        if endpoint is None:
            endpoints = ", ".join(payloads.endpoints)
            raise refuse("endpoint", f"There is no premium endpoint with this name. Endpoints: {endpoints}.", "enum")
        if endpoint == CREDIT_ALERTS:
            self._check_alerts(request)
        else:
            payloads.check(endpoint, request.params)
        if (
            endpoint != CREDIT_ALERTS
            and request.when is not None
            and (wrong := payloads.check_condition(endpoint, condition_of(request.when)))
        ):
            raise refuse("when.path", wrong, "path")
        headers = check_headers(request.headers)
        try:
            require_visible(request.description)
        except ValueError as hidden:
            raise refuse("description", str(hidden), "invisible") from None
        url = await check_target(self._parts.fires.sender.lane, request.webhook_url)
        account, secret = await self._parts.account_of(token), new_secret()
        if (operation := payloads.operation(endpoint)) is not None:
            account.require_cover(operation.path)
            await require_balance(self._parts.ledger, token)
        elif account.payer != _owner(token):
            raise AllowanceConflict("This token is an allowance: only the token that pays is notified of its limits.")
        subscription = WebhookSubscription(
            id=f"wh_{secrets.token_hex(8)}",
            owner=_owner(token),
            payer=account.payer,
            account=account.account,
            endpoint=endpoint,
            url=str(url),
            host=(url.raw_host or "").removesuffix("."),  # both spellings are the same host, with one limit
            params=msgspec.json.encode(dict(request.params), order="sorted"),
            sealed=self._parts.fires.key.seal(SubscriptionSecrets(secret, headers=headers)),
            created_at=now,
            due_at=next_slot(now, now) if request.when is None else now,
            description=request.description,
            condition=None if request.when is None else encode_condition(condition_of(request.when)),
        )
        added = await self._store.apply(AddSubscription(subscription))
        self._parts.wake()
        return NewSubscription(added, secret)

    async def cancel(self, token: str, id: str) -> WebhookSubscription:
        """Cancel a subscription permanently. Raises NotFound."""
        return await self._store.apply(CancelSubscription(id, _owner(token), self._now))

    async def list_kept(self, token: str) -> list[WebhookSubscription]:
        """List the subscriptions that a token made or pays for and has not cancelled, oldest first."""
        return [
            subscription for subscription in await self._store.owned(_owner(token)) if subscription.state != "cancelled"
        ]

    async def resume(self, token: str, id: str) -> WebhookSubscription:
        """Resume a paused subscription. Raises NotFound, SubscriptionConflict, InsufficientCredits."""
        subscription = await self._own(token, id)
        if not self._parts.fires.payloads.delivers(subscription.endpoint):
            raise SubscriptionConflict("This service no longer sells the tool of this subscription: cancel it.")
        if subscription.endpoint != CREDIT_ALERTS:
            await require_balance(self._parts.ledger, token)
        resumed = await self._store.apply(ResumeSubscription(id, _owner(token), self._now))
        self._parts.wake()
        return resumed

    async def deliveries(self, token: str, id: str, limit: int, before: str | None) -> list[WebhookFire]:
        """Return the last fires of a subscription, newest first. Raises NotFound."""
        await self._own(token, id)
        return await self._store.fires(id, limit, before)

    async def rotate_secret(self, token: str, id: str) -> NewSubscription:
        """Give a subscription a new secret. Each former one stays valid for a day. Raises as `resume` does."""
        key, secret = self._parts.fires.key, new_secret()
        while True:
            subscription = await self._own(token, id)
            if subscription.state == "cancelled":
                raise SubscriptionConflict("The subscription is cancelled.")
            if subscription.event is not None:
                raise SubscriptionConflict(
                    "A client of MCP Events chose this secret: it subscribes again with a new one."
                )
            try:
                after = key.seal(key.unseal(subscription.sealed).rotate(secret, self._now))
                replaced = await self._store.apply(ReplaceSealed(id, _owner(token), subscription.sealed, after))
                return NewSubscription(replaced, secret)
            except SecretReplaced:
                continue  # another call rotated too: its secret is one of the former ones now

    async def test(
        self, token: str, id: str, data: Mapping[str, Any] | None, state: Literal["fired", "cleared", "no_data"] | None
    ) -> WebhookFire:
        """Send a signed test with `data`, or with the recorded example of the endpoint: never with current values.

        The test is free and attempted once. It needs a balance, unless it is one of credit
        alerts. `state` adds a condition's report. Raises NotFound, SubscriptionConflict and
        the 402 codes.
        """
        subscription, now = await self._own(token, id), self._now
        if subscription.state == "cancelled":
            raise SubscriptionConflict("The subscription is cancelled.")
        if subscription.event is not None:
            raise SubscriptionConflict(
                "Receivers of MCP Events take no tests: they are verified as a client subscribes."
            )
        if subscription.endpoint != CREDIT_ALERTS:
            await require_balance(self._parts.ledger, token)
        payload = self._recorded(subscription) if data is None else msgspec.json.encode(dict(data))
        if len(payload) > MOST_TEST_BYTES and data is not None:
            raise refuse("data", f"Give at most {MOST_TEST_BYTES} bytes.", "too_long")
        digest = hashlib.sha256(payload).hexdigest()
        await self._store.save_payload(digest, payload, now)
        report = None if state is None else _example_transition(subscription, msgspec.json.decode(payload), state)
        fire = plan_fire(subscription, now, kind="test", payload=digest, condition=report)
        fire = fire._replace(due_at=now + LEASE_MS, expires_at=now + 2 * LEASE_MS)
        await self._store.apply(AddFire(fire))
        await self._worker.work(ClaimedFire(fire, subscription))
        return await self._store.fire(fire.id) or fire

    async def resend(self, token: str, id: str, fire_id: str) -> Attempt:
        """Send a delivery again that the receiver has accepted: the same id and bytes, signed now, free of charge.

        It is attempted once, and the log of deliveries stays as it is. Raises NotFound for a
        delivery that is not of this subscription or whose payload is no longer kept, and
        SubscriptionConflict for one that was never accepted, so that nobody gets a body that
        was not paid for, for a cancelled subscription, and while the receiver's host is busy.
        """
        subscription = await self._own(token, id)
        fire = await self._store.fire(fire_id)
        if fire is None or fire.subscription != subscription.id:
            raise NotFound("This subscription has no such delivery.")
        if subscription.state == "cancelled":
            raise SubscriptionConflict("The subscription is cancelled.")
        if subscription.event is not None:
            raise SubscriptionConflict("Receivers of MCP Events take no repetitions: their host has had the event.")
        if fire.state not in DELIVERED:
            raise SubscriptionConflict("Only a delivery that your server has accepted can be sent again.")
        is_kept = self._now - (fire.sent_at or 0) < PAYLOAD_KEPT_MS
        try:
            attempt = await self._worker.resend(ClaimedFire(fire, subscription)) if is_kept else None
        except HostBusy as busy:
            raise SubscriptionConflict("Another delivery is on its way to this host. Try again shortly.") from busy
        if attempt is None:
            raise NotFound("The payload of this delivery is no longer kept; payloads are kept for an hour.")
        return attempt

    def _check_alerts(self, request: SubscriptionRequest) -> None:
        """Refuse what a subscription to credit alerts cannot have. Raises InvalidArguments, NotSupported."""
        if not self._parts.keeps_ledger:
            raise NotSupported("This server does not keep the ledger: subscribe at the one that does.")
        for name, value in (("params", request.params), ("when", request.when)):
            if value:
                raise refuse(name, f"{CREDIT_ALERTS} takes none: token_update sets the thresholds.", "unknown")

    def _recorded(self, subscription: WebhookSubscription) -> bytes:
        if subscription.endpoint == CREDIT_ALERTS:
            return compose_notice(EXAMPLE)
        operation = self._parts.fires.payloads.operation(subscription.endpoint)
        name = "" if operation is None else operation.name
        return msgspec.json.encode(self._parts.examples().get(name, {}))

    async def _own(self, token: str, id: str) -> WebhookSubscription:
        subscription = await self._store.subscription(id)
        return find_owned({id: subscription}.get, id, _owner(token))


async def require_balance(ledger: Ledger, token: str) -> None:
    """Refuse a token that cannot pay for a fire. Raises InsufficientCredits and the other 402 codes."""
    left = await ledger.balance(token)
    if left < FIRE_CREDITS:
        raise InsufficientCredits(
            "A fire costs 1 credit and the token has none left: buy credits first.",
            required=FIRE_CREDITS,
            credits_remaining=left,
        )


def _owner(token: str) -> str:
    return token_hash(token).hex()


def _example_transition(subscription: WebhookSubscription, payload: Any, state: Any) -> bytes:
    """Return what a delivery would say about the condition, with the value from the test's own data."""
    if subscription.condition is None:
        raise refuse("state", "The subscription has no condition.", "no_condition")
    condition = decode_condition(subscription.condition)
    value = find_value(payload, condition.path)
    new = None if value is MISSING or state == "no_data" else value
    return msgspec.json.encode(Transition(condition.label, state, None, new))
