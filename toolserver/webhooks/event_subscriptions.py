"""Subscribe by MCP Events: an agent's host names an event, its arguments, a receiver and a secret of its own.

The same call again renews the subscription: it gets more time, perhaps another secret, and is
resumed if it was paused. A receiver proves that it wants events before the first one is sent,
and again when the proof is a day old.
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from toolserver.core.caller import token_hash
from toolserver.errors import NotFound, SubscriptionConflict, ToolserverError
from toolserver.webhooks.conditions import encode_condition
from toolserver.webhooks.events import WatchedEvent, check_secret, derive_id
from toolserver.webhooks.records import Attempt, EventTerms, WebhookSubscription
from toolserver.webhooks.signing import SubscriptionSecrets
from toolserver.webhooks.subscription_operations import (
    CancelSubscription,
    SubscribeEvent,
    check_active,
    find_same_event,
)
from toolserver.webhooks.subscriptions import SubscriptionParts, check_target, refuse, require_balance
from toolserver.webhooks.verification import verify_receiver

DAY_MS = 86_400_000
DEFAULT_TTL_MS, LEAST_TTL_MS, MOST_TTL_MS = 7 * DAY_MS, 600_000, 30 * DAY_MS
VERIFIED_MS = DAY_MS  # how long a receiver's proof counts
TRIES = 3  # of a renewal that another call overtook

_REASONS = {"timeout": "timeout", "tls": "tls_error", "challenge_failed": "challenge_failed", "redirect": "http_4xx"}


def name_reason(error: str) -> str:
    """Return what went wrong with a receiver in the words of MCP Events."""
    return f"{error[:6]}xx" if error.startswith("http_") else _REASONS.get(error, "connection_refused")


class ReceiverUnverified(ToolserverError):
    """The receiver did not prove that it wants events. `reason` is one of the words of MCP Events."""

    def __init__(self, attempt: Attempt) -> None:
        reason = name_reason(attempt.error or "")
        super().__init__(f"The receiver at delivery.url did not repeat the challenge that was sent to it: {reason}.")
        self.reason = reason


@dataclass(frozen=True, slots=True)
class EventRequest:
    """What a client asks for. `ttl_ms` is None for the default; `secret` is the client's."""

    name: str
    arguments: Mapping[str, Any]
    url: str
    secret: str = field(default="", repr=False)
    ttl_ms: float | None = None


class EventSubscription(NamedTuple):
    """A subscription as its client knows it."""

    id: str
    subscription: WebhookSubscription


class EventSubscriptions:
    """The subscriptions of MCP Events of all tokens, each accessible only to its own token."""

    def __init__(self, parts: SubscriptionParts) -> None:
        self._parts, self._store, self._clock = parts, parts.fires.store, parts.fires.clock
        self.catalog = parts.fires.payloads.events

    @property
    def _now(self) -> int:
        return int(self._clock.time() * 1000)

    async def subscribe(
        self, token: str, request: EventRequest, count_verification: Callable[[], Awaitable[None]]
    ) -> EventSubscription:
        """Store a subscription, or renew the same one. `count_verification` is awaited before a receiver is asked.

        Raises:
            UnknownEvent, InvalidArguments, SubscriptionConflict, HostBusy, the 402 codes.
            ReceiverUnverified: the receiver does not answer as one that wants events.
        """
        event = self.catalog.watch(request.name, request.arguments)
        check_secret(request.secret)
        url = await self._check_url(request.url)
        await require_balance(self._parts.ledger, token)
        await self._parts.fires.payloads.check_answer(event.endpoint, event.params)
        for chances_left in reversed(range(TRIES)):
            wanted, same = await self._plan(token, request, event, url)
            if not await self._is_verified(wanted):
                await count_verification()
                await self._verify(wanted)
                wanted = _verified(wanted, self._now)
            before = None if same is None else same.sealed
            try:
                stored = await self._store.apply(SubscribeEvent(wanted, before, self._now))
                break
            except SubscriptionConflict:
                if not chances_left or not await self._has_changed(wanted, before):
                    raise
        self._parts.wake()
        return _as_known(stored)

    async def unsubscribe(self, token: str, request: EventRequest) -> None:
        """Cancel a subscription. Raises NotFound, if there is none, and as `subscribe` does."""
        event = self.catalog.watch(request.name, request.arguments)
        url = await self._check_url(request.url)
        await self._parts.account_of(token)
        same = await self._find_same(_identify(token, event, url))
        if same is None:
            raise NotFound("This token has no such subscription.")
        await self._store.apply(CancelSubscription(same.id, same.owner, self._now))

    async def _check_url(self, text: str) -> str:
        """Return the URL of a receiver, its query byte for byte. Raises InvalidArguments."""
        if "#" in text:
            raise refuse("delivery.url", "A URL with a fragment is not accepted.", "invalid_url")
        return str(await check_target(self._parts.fires.sender.lane, text, loc="delivery.url"))

    async def _plan(
        self, token: str, request: EventRequest, event: WatchedEvent, url: str
    ) -> tuple[WebhookSubscription, WebhookSubscription | None]:
        """Return the subscription to store, and the live one that is the same. Raises SubscriptionConflict."""
        account, key, now = await self._parts.account_of(token), self._parts.fires.key, self._now
        operation = self._parts.fires.payloads.operation(event.endpoint)
        assert operation is not None, "a watched event has an endpoint"
        account.require_cover(operation.path)
        wanted = _identify(token, event, url)
        same = await self._find_same(wanted)
        if same is None:
            check_active(await self._store.paid_by(account.payer), now)
            sealed = key.seal(SubscriptionSecrets(request.secret))
        else:
            unsealed = key.unseal(same.sealed)
            changed = request.secret != unsealed.secret
            sealed = key.seal(unsealed.rotate(request.secret, now)) if changed else same.sealed
        planned = wanted._replace(
            payer=account.payer,
            account=account.account,
            event=wanted.event if same is None else same.event,
            sealed=sealed,
            created_at=now,
            due_at=now,
            expires_at=now + _grant(request.ttl_ms),
        )
        return planned, same

    async def _find_same(self, wanted: WebhookSubscription) -> WebhookSubscription | None:
        return find_same_event(await self._store.owned(wanted.owner), wanted, self._now)

    async def _has_changed(self, wanted: WebhookSubscription, before: bytes | None) -> bool:
        """Return True if the live subscription is no longer the one that was renewed."""
        same = await self._find_same(wanted)
        return (None if same is None else same.sealed) != before

    async def _is_verified(self, wanted: WebhookSubscription) -> bool:
        """Return True if the same receiver proved to the same owner that it wants events, less than a day ago."""
        for subscription in await self._store.owned(wanted.owner):
            terms = subscription.event_terms
            if terms is not None and (subscription.owner, subscription.url) == (wanted.owner, wanted.url):
                if 0 <= self._now - terms.verified_at < VERIFIED_MS:
                    return True
        return False

    async def _verify(self, wanted: WebhookSubscription) -> None:
        """Ask the receiver, when it is its host's turn. Raises ReceiverUnverified, HostBusy."""
        fires = self._parts.fires
        async with fires.sender.limits.turn(wanted.url, wanted.host):
            attempt = await verify_receiver(fires.sender, fires.key, wanted, self._now)
        if not attempt.delivered:
            raise ReceiverUnverified(attempt)
        fires.sender.limits.prove(wanted.host)


def _identify(token: str, event: WatchedEvent, url: str) -> WebhookSubscription:
    """Return a subscription with what identifies it, and nothing of its account, secrets and times."""
    from yarl import URL  # loaded with the first subscription

    owner, arguments = token_hash(token).hex(), event.plain_arguments
    terms = EventTerms(derive_id(owner, url, event.kind.name, arguments), event.kind.name, arguments)
    return WebhookSubscription(
        id=f"wh_{secrets.token_hex(8)}",
        owner=owner,
        payer=owner,
        account="",
        endpoint=event.endpoint,
        url=url,
        host=(URL(url).raw_host or "").removesuffix("."),
        params=msgspec.json.encode(event.params, order="sorted"),
        sealed=b"",
        created_at=0,
        due_at=0,
        description=f"MCP Events: {event.kind.name} {msgspec.json.encode(arguments).decode()}"[:200],
        condition=encode_condition(event.condition),
        event=msgspec.json.encode(terms),
    )


def _verified(wanted: WebhookSubscription, now: int) -> WebhookSubscription:
    """Return a subscription whose receiver proved at `now` that it wants events."""
    terms = wanted.event_terms
    assert terms is not None, "a subscription of MCP Events"
    return wanted._replace(event=msgspec.json.encode(msgspec.structs.replace(terms, verified_at=now)))


def _as_known(stored: WebhookSubscription) -> EventSubscription:
    terms = stored.event_terms
    assert terms is not None, "a subscription of MCP Events"
    return EventSubscription(terms.id, stored)


def _grant(ttl_ms: float | None) -> int:
    """Return for how long a subscription lasts, ms: as long as requested, within bounds that are never a refusal."""
    return int(min(max(DEFAULT_TTL_MS if ttl_ms is None else ttl_ms, LEAST_TTL_MS), MOST_TTL_MS))
