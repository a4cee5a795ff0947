"""Answer the methods of MCP Events over HTTP: `events/list`, `events/subscribe` and `events/unsubscribe`.

They are another face of webhooks: `webhooks/events.py` says what there is, and
`webhooks/event_subscriptions.py` what a subscription does. This module translates. A client's
secret is in none of its answers and in no log.
"""

import logging
from collections.abc import Awaitable, Mapping
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import msgspec

from toolserver.calls.pipeline import Pipeline
from toolserver.core.caller import Caller, is_visitor_token
from toolserver.core.models import iso, iso_ms, moment
from toolserver.errors import (
    CallRejected,
    InsufficientCredits,
    InvalidArguments,
    InvalidToken,
    NotFound,
    RateLimited,
    RevokedToken,
    SubscriptionConflict,
)
from toolserver.mcp import messages
from toolserver.mcp.messages import INTERNAL_ERROR, INVALID_PARAMS, MessageRefusal
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import BUY, SiteFacts
from toolserver.webhooks.delivery import HostBusy
from toolserver.webhooks.event_subscriptions import EventRequest, EventSubscriptions, ReceiverUnverified, name_reason
from toolserver.webhooks.events import EVENT_CREDITS, UnknownEvent
from toolserver.webhooks.records import WebhookSubscription
from toolserver.webhooks.subscription_operations import MOST_ACTIVE

METHODS = frozenset({"events/list", "events/subscribe", "events/unsubscribe"})
SUBSCRIBES_LIKE, ENDS_LIKE = "webhook_subscribe", "webhook_unsubscribe"
VERIFIES_LIKE = "webhook_test"
Dialect = Literal["sketch", "extension"]
log = logging.getLogger(__name__)


class EventCodes(NamedTuple):
    """The error codes of a dialect."""

    not_found: int
    forbidden: int
    exhausted: int
    unsupported: int
    receiver: int


CODES: Mapping[Dialect, EventCodes] = {
    "sketch": EventCodes(-32011, -32012, -32013, -32014, -32015),
    "extension": EventCodes(-32023, -32024, -32025, -32026, -32027),
}


class EventDelivery(msgspec.Struct, frozen=True):
    """Where a client wants its events. Never printed: it has the client's secret."""

    url: str
    mode: str = "webhook"
    secret: str = ""

    def __repr__(self) -> str:
        return "EventDelivery(…)"


class EventParams(msgspec.Struct, frozen=True):
    """The parameters of `events/subscribe` and `events/unsubscribe`. Others are ignored."""

    name: str
    delivery: EventDelivery
    arguments: dict[str, Any] = {}
    cursor: str | None = None
    ttlMs: float | None = None


class McpEvents:
    """The three methods, for the subscriptions of one service."""

    def __init__(
        self,
        subscriptions: EventSubscriptions,
        registry: Registry,
        pipeline: Pipeline,
        facts: SiteFacts,
        dialect: Dialect,
    ) -> None:
        self._subscriptions, self._pipeline, self._facts = subscriptions, pipeline, facts
        self._codes, self._is_strict = CODES[dialect], dialect == "extension"
        self._registry = registry

    async def answer(self, method: str, params: Mapping[str, Any], caller: Caller) -> bytes:
        """Return the core of a result. Raises MessageRefusal, without an id and with HTTP status 200."""
        if method == "events/list":
            if params.get("cursor") is not None:
                raise _refuse(INVALID_PARAMS, "There is only one page: this server never issues cursors.")
            return self._list
        try:
            wanted = msgspec.convert(params, EventParams)
        except msgspec.ValidationError as error:  # its text has the place and the type, and no value
            raise _refuse(INVALID_PARAMS, f"params: {error}") from None
        if wanted.delivery.mode != "webhook":
            raise _refuse(self._codes.unsupported, "Events are delivered by webhook only.", {"supported": ["webhook"]})
        if caller.token is None or is_visitor_token(caller.token):
            text = "A subscription belongs to a token with credits: connect with one, or sign in."
            raise _refuse(self._codes.forbidden, text, self._where_to_buy())
        request = EventRequest(
            wanted.name, wanted.arguments, wanted.delivery.url, wanted.delivery.secret, _check_ttl(params)
        )
        if method == "events/subscribe":
            return await self._translate(self._subscribe(caller, caller.token, request, wanted.cursor))
        return await self._translate(self._unsubscribe(caller, caller.token, request))

    @cached_property
    def _list(self) -> bytes:
        """The kinds of events, written when a client first asks: their schemas take a start 25 ms."""
        return messages.encode({"events": self._subscriptions.catalog.describe()})[:-1]

    async def _subscribe(self, caller: Caller, token: str, request: EventRequest, cursor: str | None) -> bytes:
        await self._count(caller, SUBSCRIBES_LIKE)
        stored = await self._subscriptions.subscribe(token, request, partial(self._count, caller, VERIFIES_LIKE))
        subscription = stored.subscription
        assert subscription.expires_at is not None, "a subscription of MCP Events"
        result = {
            "id": stored.id,
            "refreshBefore": iso(moment(subscription.expires_at / 1000)),
            "cursor": None,
            "truncated": cursor is not None,  # events since a cursor cannot be repeated
            "deliveryStatus": _describe_status(subscription),
        }
        return messages.encode(result)[:-1]

    async def _unsubscribe(self, caller: Caller, token: str, request: EventRequest) -> bytes:
        await self._count(caller, ENDS_LIKE)
        try:
            await self._subscriptions.unsubscribe(token, request)
        except NotFound as missing:
            if self._is_strict:
                raise _refuse(self._codes.not_found, missing.detail, {"kind": "subscription"}) from None
        return b"{"

    async def _count(self, caller: Caller, tool: str) -> None:
        """Count in the caller's limits of the webhook tool that does the same. Raises RateLimited.

        Everything is counted, because it asks the ledger, looks up a name and may have an answer composed, for nothing.
        """
        self._pipeline.tokens.check(caller)
        operation = self._registry.get(tool)
        await self._pipeline.count_personal(caller, tool, () if operation is None else operation.quotas)

    async def _translate(self, working: Awaitable[bytes]) -> bytes:
        """Return a result, or raise its failure as a MessageRefusal."""
        try:
            return await working
        except UnknownEvent as unknown:
            raise _refuse(self._codes.not_found, str(unknown), {"kind": "event"}) from None
        except HostBusy as busy:
            text = "Too many deliveries are waiting for this receiver's host."
            raise _refuse(self._codes.exhausted, text, _waiting(max(1, round(busy.wait_s)))) from None
        except ReceiverUnverified as unverified:
            raise _refuse(self._codes.receiver, str(unverified), {"reason": unverified.reason}) from None
        except CallRejected as rejected:
            code, data = self._describe_rejected(rejected)
            raise _refuse(code, rejected.detail, data) from None

    def _describe_rejected(self, rejected: CallRejected) -> tuple[int, dict[str, Any]]:
        """Return the code and the data for an error that other interfaces have too."""
        wait = rejected.extra.get("retry_after_seconds")
        if isinstance(rejected, InvalidArguments):
            return INVALID_PARAMS, {"errors": rejected.extra["errors"]}
        if isinstance(rejected, InsufficientCredits):
            left = rejected.extra.get("credits_remaining", 0)
            lack = {"limit": "credits", "required": EVENT_CREDITS, "credits_remaining": left}
            return self._codes.exhausted, lack | self._where_to_buy()
        if isinstance(rejected, InvalidToken | RevokedToken):
            return self._codes.forbidden, {"reason": rejected.code} | self._where_to_buy()
        if isinstance(rejected, RateLimited) or (isinstance(rejected, SubscriptionConflict) and wait is not None):
            return self._codes.exhausted, _waiting(wait)
        if isinstance(rejected, SubscriptionConflict):
            return self._codes.exhausted, {"limit": "subscriptions", "max": MOST_ACTIVE}
        return INTERNAL_ERROR, {"reason": rejected.code}

    def _where_to_buy(self) -> dict[str, Any]:
        return {} if self._facts.sales is None else {"buy": self._facts.url(BUY)}


def _refuse(code: int, text: str, data: Any = None) -> MessageRefusal:
    return MessageRefusal(200, code, text, data=data)


def _waiting(seconds: Any) -> dict[str, Any]:
    return {"limit": "rate", "retry_after_seconds": seconds}


def _check_ttl(params: Mapping[str, Any]) -> float | None:
    """Return the time that a client asks for, ms; infinity for null, which means no end, and None for the default."""
    if "ttlMs" not in params:
        return None
    ttl = params["ttlMs"]
    if ttl is None:
        return float("inf")
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not ttl > 0:
        raise _refuse(INVALID_PARAMS, "params: ttlMs must be a positive number of milliseconds, or null.")
    return float(ttl)


def _describe_status(subscription: WebhookSubscription) -> dict[str, Any]:
    delivered, since, error = subscription.last_delivered_at, subscription.failing_since, subscription.last_error
    status: dict[str, Any] = {
        "active": subscription.state == "active",
        "lastDeliveryAt": None if delivered is None else iso_ms(delivered / 1000),
        "lastError": None if error is None else name_reason(error),
    }
    return status if since is None else {**status, "failedSince": iso_ms(since / 1000)}
