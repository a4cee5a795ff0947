"""Deliver: what a message says, whose turn it is to receive one, and one attempt with one word for its result.

A delivery has the same bytes in every attempt. Capacity is shared fairly between receivers:
one delivery at a time per endpoint, four per host, a rate for new hosts. An attempt is a POST
over a connection that the egress guard has allowed. Redirects are failures. The receiver's
answer is read only as far as needed to reuse the connection, and it is never shown to anyone.

A fire's credits are reserved under its id, and charged once the receiver has answered 2xx.

What deliveries carry are answers of premium endpoints, from the cache that serves every other
caller. Subscriptions to the same query that become due while an answer is fresh share that
answer. No subscriber gets older data than a caller at that moment. A payload is stored before
it is sent, so that every attempt sends the same bytes.
"""

import asyncio
import email.utils
import hashlib
import logging
import ssl
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec
from pydantic import BaseModel

from toolserver.calls.arguments import build_cache_key, validate_arguments
from toolserver.calls.pipeline import Pipeline
from toolserver.calls.response import find_no_charge_reason
from toolserver.calls.response_cache import SchemaFailure
from toolserver.clock import Clock
from toolserver.core.models import iso, iso_ms
from toolserver.core.outbound import make_tls_context
from toolserver.core.single_flight import SingleFlight
from toolserver.errors import CallRejected, InvalidArguments, PaymentRequired, ToolserverError
from toolserver.money.ledger.protocol import AccountRef, NoCharge, Reservation, Settlement, UnknownCall, Who
from toolserver.money.receipts.service import ReceiptService
from toolserver.money.receipts.sign import Body, Sale, request_text
from toolserver.registry.registry import Operation, Registry, Tier
from toolserver.registry.spelling import find_word
from toolserver.webhooks import events
from toolserver.webhooks.conditions import WebhookCondition, check_path
from toolserver.webhooks.credit_alerts import CREDIT_ALERTS
from toolserver.webhooks.egress import PORTS, DnsLane, EgressGuard, GuardedSession, Lookup, RequestFailed, look_up
from toolserver.webhooks.records import PREFIX, Attempt, WebhookFire, WebhookSubscription, endpoint_of
from toolserver.webhooks.signing import (
    RECEIPT_HEADER,
    SUBSCRIPTION_HEADER,
    SubscriptionSecrets,
    signature_headers,
    standard_headers,
)
from toolserver.webhooks.store import PAYLOAD_KEPT_MS, WebhookStore

if TYPE_CHECKING:
    from aiohttp import ClientResponse
    from yarl import URL


SINCE = "webhook_since"
"""The tag of a tool that names the argument that limits its answer to items since a time."""

MOST_BYTES = 1024 * 1024  # in the body of a delivery
CACHED = 64
MINUTE_MS = 60_000
LATE_MS = 20 * MINUTE_MS  # sources report late: an earthquake is listed many minutes after its timestamp


class WebhookPayload(NamedTuple):
    """An answer for delivery. `no_charge` says why it must not be charged. `captured_at` is in milliseconds."""

    digest: str
    body: bytes
    captured_at: int | None
    no_charge: NoCharge | None = None


class PayloadSource:
    """Composes answers for deliveries, and caches the latest in decoded form."""

    def __init__(self, registry: Registry, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self.events = events.EventCatalog(registry)
        self._sold = {
            endpoint_of(operation.path): operation
            for operation in registry
            if operation.tier is Tier.PREMIUM and operation.path.startswith(PREFIX)
        }
        watched = {endpoint_of(operation.path): operation for operation in self.events.operations}
        self._operations = self._sold | watched
        self._decoded: OrderedDict[str, Any] = OrderedDict()

    @property
    def endpoints(self) -> list[str]:
        """The names that accept subscriptions: short names of endpoints, and credit alerts."""
        return [*sorted(self._sold), CREDIT_ALERTS]

    def spell(self, endpoint: str) -> str | None:
        """Return the canonical spelling of such a name in any case; None if there is no such endpoint."""
        return find_word(endpoint, self.endpoints)

    def delivers(self, endpoint: str) -> bool:
        """Return False for an endpoint of an older version."""
        return endpoint in self._operations or endpoint == CREDIT_ALERTS

    def operation(self, endpoint: str) -> Operation | None:
        """Return the operation behind the name of an endpoint: a premium one, or a free one that has events."""
        return self._operations.get(endpoint)

    def check(self, endpoint: str, params: Mapping[str, Any]) -> BaseModel:
        """Validate and return the arguments of an endpoint. Raises InvalidArguments."""
        operation = self._operations[endpoint]
        unknown = sorted(set(params) - set(operation.arguments.model_fields))
        if unknown:
            names = ", ".join(operation.arguments.model_fields) or "none"
            message = f"params: {endpoint} has no parameter {unknown[0]}; it has: {names}"
            raise InvalidArguments(message, errors=[{"loc": f"params.{unknown[0]}", "msg": message, "type": "unknown"}])
        return validate_arguments(operation, params)

    def check_condition(self, endpoint: str, condition: WebhookCondition) -> str | None:
        """Describe what is wrong with the path of a condition; None if it can lead to a value to judge."""
        return check_path(condition, self._operations[endpoint].data_schema)

    async def check_answer(self, endpoint: str, params: Mapping[str, Any]) -> None:
        """Raise InvalidArguments for those that only sources can judge, such as an unknown symbol; nothing else."""
        arguments = validate_arguments(operation := self._operations[endpoint], params)
        try:
            await self._pipeline.answers.get(operation, arguments, build_cache_key(operation, arguments))
        except InvalidArguments:
            raise
        except (CallRejected, SchemaFailure) as failure:
            log.info("an event could not be tried", extra={"tool": operation.name, "error": type(failure).__name__})

    async def compose(self, endpoint: str, params: bytes, since: int | None = None) -> WebhookPayload:
        """Compose the current answer.

        `since` (ms) limits endpoints that support it to new items, unless `params` does. The
        answer also has items from the twenty minutes before `since`.

        A failure is also a payload, with a reason not to charge. Failures of this service are logged.
        """
        operation = self._operations[endpoint]
        query = msgspec.json.decode(params)
        name = operation.tags.get(SINCE)
        if name is not None and since is not None and name not in query:
            query[name] = iso(datetime.fromtimestamp((since - LATE_MS) // MINUTE_MS * 60, UTC))
        self._pipeline.note_call(operation)
        try:
            arguments = validate_arguments(operation, query)
            rendered = await self._pipeline.answers.get(operation, arguments, build_cache_key(operation, arguments))
        except SchemaFailure:
            return WebhookPayload("", b"", None, "schema_failure")
        except CallRejected:
            return WebhookPayload("", b"", None, "5xx")
        except Exception:
            log.exception("a payload for webhooks could not be composed", extra={"tool": operation.name})
            return WebhookPayload("", b"", None, "5xx")
        reason = find_no_charge_reason(rendered) if len(rendered.payload) <= MOST_BYTES else "5xx"
        captured_at = None if rendered.oldest_at is None else int(rendered.oldest_at * 1000)
        return WebhookPayload(rendered.sha256().hex(), rendered.payload, captured_at, reason)

    def decode(self, payload: WebhookPayload) -> Any:
        """Decode a payload's JSON, once for all conditions that are judged on it."""
        decoded = self._decoded.get(payload.digest)
        if decoded is None:
            decoded = self._decoded[payload.digest] = msgspec.json.decode(payload.body)
            if len(self._decoded) > CACHED:
                self._decoded.popitem(last=False)
        return decoded


AGAIN_MS = PAYLOAD_KEPT_MS // 6  # how often a payload that is still in use is stored again, so that it is kept


class _Shelved(NamedTuple):
    body: bytes
    stored_at: int


class PayloadShelf:
    """A store's payloads, with the latest also in memory."""

    def __init__(self, store: WebhookStore, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._shelved: OrderedDict[str, _Shelved] = OrderedDict()
        self._saves = SingleFlight()

    async def put(self, digest: str, body: bytes) -> None:
        """Keep a payload for at least fifty minutes from now. It is on disk when this returns."""
        now = int(self._clock.time() * 1000)
        shelved = self._shelved.get(digest)
        if shelved is None or not 0 <= now - shelved.stored_at < AGAIN_MS:
            await self._saves.do(digest, partial(self._save, digest, _Shelved(body, now)))

    async def _save(self, digest: str, shelved: _Shelved) -> None:
        await self._store.save_payload(digest, shelved.body, shelved.stored_at)
        self._shelve(digest, shelved)

    async def get(self, digest: str) -> bytes | None:
        """Return a payload; None if it is no longer kept."""
        shelved = self._shelved.get(digest)
        if shelved is not None:
            return shelved.body
        body = await self._store.payload(digest)
        if body is not None:
            self._shelve(digest, _Shelved(body, -AGAIN_MS))
        return body

    def _shelve(self, digest: str, shelved: _Shelved) -> None:
        self._shelved[digest] = shelved
        self._shelved.move_to_end(digest)
        if len(self._shelved) > CACHED:
            self._shelved.popitem(last=False)


class WebhookMessage(NamedTuple):
    """One delivery: the body, and the data for the headers of each attempt."""

    fire: WebhookFire
    subscription: WebhookSubscription
    body: bytes

    def headers(self, secrets: SubscriptionSecrets, now: int) -> dict[str, str]:
        """Return the headers of an attempt at `now` in milliseconds. Custom headers never replace ours."""
        terms, sign = self.subscription.event_terms, signature_headers
        ours = {SUBSCRIPTION_HEADER: self.subscription.id}
        if terms is not None:
            ours, sign = {events.SUBSCRIPTION_HEADER: terms.id}, standard_headers
        message_id, timestamp, older = self.fire.message_id, now // 1000, secrets.older(now)
        ours |= sign(secrets.secret, older, message_id=message_id, timestamp=timestamp, body=self.body)
        if self.fire.price:
            ours[RECEIPT_HEADER] = self.fire.receipt_id
        return {**secrets.headers, **ours}


def compose_challenge(fire: WebhookFire, subscription: WebhookSubscription, now: int) -> WebhookMessage:
    """Return a delivery without data, with an id of its own; a receiver that accepts it gets the fire's body."""
    head = {
        "subscription_id": subscription.id,
        "endpoint": subscription.endpoint,
        "delivered_at": iso_ms(now / 1000),
        "data": None,
        "challenge": True,
    }
    # with the id of the fire, a receiver that ignores repeats would ignore the body after the challenge
    return WebhookMessage(fire._replace(id=f"{fire.id}_challenge", price=0), subscription, msgspec.json.encode(head))


def compose_body(fire: WebhookFire, subscription: WebhookSubscription, payload: bytes) -> bytes:
    """Return the JSON body around a payload, which is inserted unchanged. The fire's `sent_at` must be set."""
    if subscription.event is not None:
        return events.compose_event(fire, subscription, payload)
    head = {
        "subscription_id": subscription.id,
        "endpoint": subscription.endpoint,
        "delivered_at": iso_ms((fire.sent_at or fire.created_at) / 1000),
    }
    parts = [msgspec.json.encode(head)[:-1], b',"data":', payload]
    if fire.condition is not None:
        parts += [b',"condition":', fire.condition]
    if fire.kind == "test":
        parts.append(b',"test":true')
    return b"".join([*parts, b"}"])


PER_ENDPOINT, PER_HOST = 1, 4
WAIT_S = 15.0  # maximum wait for a turn at a busy host; far less than the lease of a claimed fire
WAITING = 16  # maximum deliveries waiting for one host
UNPROVEN_PER_MINUTE = 60
PROVEN = 50_000


class HostBusy(ToolserverError):
    """No turn is free at this host now; try again after `wait_s` seconds."""

    def __init__(self, wait_s: float) -> None:
        super().__init__("the target host is busy")
        self.wait_s = wait_s


@dataclass(slots=True)
class _Turns:
    gate: asyncio.Semaphore
    users: int = 0


class HostLimits:
    """The turns of all targets, across all tokens. Its length is the number of endpoints and hosts with a delivery."""

    def __init__(self, clock: Clock, *, wait_s: float = WAIT_S) -> None:
        self._clock, self._wait_s = clock, wait_s
        self._turns: dict[Hashable, _Turns] = {}
        self._proven: OrderedDict[str, None] = OrderedDict()
        self._sent: dict[str, deque[float]] = {}

    def __len__(self) -> int:
        return len(self._turns)

    def prove(self, host: str) -> None:
        """Note that a receiver at this host has answered 2xx, so it is not an uninvolved third party."""
        self._proven[host] = None
        self._proven.move_to_end(host)
        self._sent.pop(host, None)
        if len(self._proven) > PROVEN:
            self._proven.popitem(last=False)

    @asynccontextmanager
    async def turn(self, url: str, host: str) -> AsyncIterator[bool]:
        """Hold a turn to send to a URL; yields whether it had to wait. Raises HostBusy if none is free in time."""
        async with self._gate(("url", url), PER_ENDPOINT) as behind, self._gate(("host", host), PER_HOST) as crowded:
            self._count_unproven(host)
            yield behind or crowded

    @asynccontextmanager
    async def _gate(self, key: Hashable, most: int) -> AsyncIterator[bool]:
        turns = self._turns.setdefault(key, _Turns(asyncio.Semaphore(most)))
        if turns.users >= most + WAITING:
            raise HostBusy(self._wait_s)
        turns.users += 1
        waits = turns.gate.locked()
        try:
            try:
                async with asyncio.timeout(self._wait_s):
                    await turns.gate.acquire()
            except TimeoutError:
                raise HostBusy(self._wait_s) from None
            try:
                yield waits
            finally:
                turns.gate.release()
        finally:
            turns.users -= 1
            if not turns.users:
                del self._turns[key]

    def _count_unproven(self, host: str) -> None:
        """Count a delivery to a host that has never answered 2xx. Raises HostBusy above 60 a minute."""
        if host in self._proven:
            return
        now = self._clock.monotonic()
        sent = self._sent.setdefault(host, deque())
        while sent and sent[0] <= now - 60:
            sent.popleft()
        if len(sent) >= UNPROVEN_PER_MINUTE:
            raise HostBusy(sent[0] + 60 - now)
        sent.append(now)
        if len(self._sent) > PROVEN:
            del self._sent[next(iter(self._sent))]


USER_AGENT = "toolserver-webhook/1.0"
MOST_ANSWER = 64 * 1024
MOST_REPEATED = 4096  # bytes of a receiver's answer to a verification
LONGEST_WAIT_S = 240.0  # maximum accepted Retry-After


@dataclass(frozen=True, slots=True)
class DeliveryNetwork:
    """How deliveries reach receivers: names, certificate authorities, ports, and seconds.

    `total_s` is for an attempt, `connect_s` for its connection, and `rest_s` for the answer after its status.
    """

    lookup: Lookup = look_up
    load_tls: Callable[[], ssl.SSLContext] = make_tls_context
    ports: Sequence[int] = PORTS
    connect_s: float = 5.0
    total_s: float = 10.0
    rest_s: float = 0.5


class WebhookSender:
    """Sends bodies to receivers whose turn it is. `observe` counts attempts by outcome."""

    def __init__(
        self,
        lane: DnsLane,
        clock: Clock,
        network: DeliveryNetwork,
        observe: Callable[[str], None] = lambda outcome: None,
        proxy: str | None = None,
    ) -> None:
        self.lane, self.limits = lane, HostLimits(clock)
        self._rest_s, self._observe = network.rest_s, observe
        self._session = GuardedSession(
            lane,
            headers={"User-Agent": USER_AGENT, "Content-Type": "application/json", "Accept": "*/*"},
            connect_s=network.connect_s,
            total_s=network.total_s,
            load_tls=network.load_tls,
            proxy=proxy,
        )

    async def send(self, url: "URL", body: bytes, headers: Mapping[str, str]) -> Attempt:
        """POST a body within 10 s. Every behaviour of the receiver is returned as an Attempt."""
        return (await self._post(url, body, headers, reads=False))[0]

    async def ask(self, url: "URL", body: bytes, headers: Mapping[str, str]) -> tuple[Attempt, bytes]:
        """POST a body within 10 s, and return also the answer of a 2xx, up to 4 KiB; b"" for a longer one."""
        return await self._post(url, body, headers, reads=True)

    async def _post(self, url: "URL", body: bytes, headers: Mapping[str, str], *, reads: bool) -> tuple[Attempt, bytes]:
        started = time.perf_counter()
        status, retry_after, said = None, None, b""
        try:
            async with self._session.request("POST", url, body=body, headers=headers) as answer:
                status = answer.status
                retry_after = _retry_after(answer.headers.get("Retry-After"), answer.headers.get("Date"))
                if reads and 200 <= status < 300:
                    said = await _read_short(answer)
                else:
                    await _discard(answer, self._rest_s)
            error = _judge(status)
        except Exception as failure:
            if status is not None:
                error = _judge(status)
            elif isinstance(failure, RequestFailed):
                error = failure.reason
            else:
                raise
        duration = int((time.perf_counter() - started) * 1000)
        self._observe(error or "ok")
        return Attempt(status, error, duration, retry_after if error else None), said

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()


@asynccontextmanager
async def open_sender(
    clock: Clock,
    network: DeliveryNetwork,
    *,
    allow_loopback: bool,
    observe: Callable[[str], None],
    proxy: str | None = None,
) -> AsyncIterator[WebhookSender]:
    """Open a sender, and end its connections and lookups when the block is left."""
    guard = EgressGuard(allow_loopback=allow_loopback, ports=network.ports)
    lane = DnsLane(guard, clock, lookup=network.lookup)
    sender = WebhookSender(lane, clock, network, observe, proxy)
    try:
        yield sender
    finally:
        await sender.close()
        lane.close()


async def _read_short(answer: "ClientResponse") -> bytes:
    """Return an answer of at most 4 KiB, or b""."""
    said = b""
    async for chunk in answer.content.iter_any():
        said += chunk
        if len(said) > MOST_REPEATED:
            answer.close()
            return b""
    return said


async def _discard(answer: "ClientResponse", rest_s: float) -> None:
    """Read a short answer to its end, so that the connection can be reused; a long or slow one is cut off.

    Only the status counts, which has been read before.
    """
    if answer.content.at_eof():
        return
    left = MOST_ANSWER
    with suppress(TimeoutError):
        async with asyncio.timeout(rest_s):
            async for chunk in answer.content.iter_any():
                left -= len(chunk)
                if left < 0:
                    break
            else:
                return
    answer.close()


def _judge(status: int) -> str | None:
    if 200 <= status < 300:
        return None
    return "redirect" if 300 <= status < 400 else f"http_{status}"


def _retry_after(header: str | None, said_at: str | None) -> float | None:
    """Return the seconds of a Retry-After, a date by the receiver's clock; None if malformed or over four minutes."""
    after, now = header or "", said_at or email.utils.formatdate(usegmt=True)
    if after.isascii() and after.isdecimal():
        seconds = float(after)
    else:
        try:
            until, since = map(email.utils.parsedate_to_datetime, (after, now))
            seconds = (until - since).total_seconds()
        except (TypeError, ValueError):
            return None
    return max(0.0, seconds) if seconds <= LONGEST_WAIT_S else None


log = logging.getLogger(__name__)

HOLD_S = 26 * 3600.0  # longer than a clock may jump; the service itself settles every hold long before
FOLLOWED_HOLD_S = 3600.0  # the maximum that the owner of a followed ledger allows


class FireLedger(Protocol):
    """The part of `Ledger` that fires need.

    A step whose outcome is unknown is repeated, so its reservation must not be released because of that.
    """

    async def reserve(
        self, call_id: str, who: Who, credits: int, *, endpoint: str, ttl_s: float, service: str = ""
    ) -> Reservation: ...
    async def settle(self, call_id: str, *, no_charge: str | None) -> Settlement: ...
    async def balance(self, who: Who) -> int: ...


class WebhookCharges:
    """Reserves, charges and releases. `receipts` may be absent in tests."""

    def __init__(self, ledger: FireLedger, receipts: ReceiptService | None, *, hold_s: float = HOLD_S) -> None:
        self._ledger, self._receipts, self._hold_s = ledger, receipts, hold_s

    async def can_pay(self, subscription: WebhookSubscription, price: int) -> bool:
        """Tell if the balance covers a fire. Raises PaymentRequired: invalid_token, expired, billing_unavailable."""
        return await self._ledger.balance(AccountRef(subscription.account)) >= price

    async def reserve(self, fire: WebhookFire, subscription: WebhookSubscription, operation: Operation) -> Reservation:
        """Reserve the price of a fire. The same fire always gets the same reservation. Raises PaymentRequired."""
        return await self._ledger.reserve(
            fire.id, AccountRef(subscription.account), fire.price, endpoint=operation.path, ttl_s=self._hold_s
        )

    async def charge(self, message: WebhookMessage, operation: Operation) -> Settlement:
        """Charge a delivered fire and sign its receipt. Both happen only once, however often this is called.

        Raises:
            PaymentRequired: the ledger is unavailable. The fire stays accepted, and the charge is retried.
            UnknownCall: the ledger no longer knows the reservation.
        """
        settled = await self._ledger.settle(message.fire.id, no_charge=None)
        if self._receipts is not None:
            await self._receipts.sign(_sale(message, operation, settled))
        return settled

    async def release(
        self, fire: WebhookFire, subscription: WebhookSubscription, operation: Operation, reason: NoCharge
    ) -> None:
        """Release the credits of a fire, and count the fire in the public log of uncharged calls."""
        await self._give_back(fire, reason)
        await self.record(fire, subscription, operation.endpoint, reason)

    async def drop(self, fire: WebhookFire, subscription: WebhookSubscription, endpoint: str, reason: NoCharge) -> None:
        """Release any credits that may be reserved for a fire, and if there were any, count it in the public log."""
        if await self._give_back(fire, reason):
            await self.record(fire, subscription, endpoint, reason)

    async def record(
        self, fire: WebhookFire, subscription: WebhookSubscription, endpoint: str, reason: NoCharge
    ) -> None:
        """Count a fire without a charge in the public log of uncharged calls."""
        if self._receipts is not None:
            await self._receipts.record_released(reason, subscription.owner, endpoint, fire.price)

    async def _give_back(self, fire: WebhookFire, reason: str) -> bool:
        """Release any credits that may be reserved for a fire. Returns whether there were any, or a body was sent."""
        try:
            return (await self._ledger.settle(fire.id, no_charge=reason)).charged == 0
        except UnknownCall:
            return fire.attempts > 0  # nothing is reserved
        except PaymentRequired:
            log.warning("a webhook's reservation could not be released and will expire", extra={"call_id": fire.id})
            return fire.attempts > 0


def _sale(message: WebhookMessage, operation: Operation, settled: Settlement) -> Sale:
    """Return a delivered fire as its receipt describes it."""
    subscription, captured_at = message.subscription, message.fire.captured_at
    return Sale(
        message.fire.id,
        subscription.owner,
        operation.endpoint,
        request_text(operation.method, operation.path, msgspec.json.decode(subscription.params)),
        message.fire.price,
        settled.charged,
        settled.remaining,
        operation.method,
        settled.reason,
        body=Body(hashlib.sha256(message.body).hexdigest(), len(message.body)) if message.body else None,
        captured_at=None if captured_at is None else captured_at / 1000,
        sla_s=operation.sla_s,
        kind="webhook",
    )
