"""Compose what deliveries carry: answers of premium endpoints, from the cache that serves every other caller.

Subscriptions to the same query that become due while an answer is fresh share that answer. No
subscriber gets older data than a caller at that moment. A payload is stored before it is
sent, so that every attempt sends the same bytes.
"""

import logging
from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

import msgspec
from pydantic import BaseModel

from toolserver.calls.arguments import build_cache_key, validate_arguments
from toolserver.calls.pipeline import Pipeline
from toolserver.calls.response import find_no_charge_reason
from toolserver.calls.response_cache import SchemaFailure
from toolserver.clock import Clock
from toolserver.core.models import iso
from toolserver.core.single_flight import SingleFlight
from toolserver.errors import CallRejected, InvalidArguments
from toolserver.money.ledger.protocol import NoCharge
from toolserver.registry.registry import Operation, Registry, Tier
from toolserver.registry.spelling import find_word
from toolserver.webhooks.conditions import check_path
from toolserver.webhooks.store import PAYLOAD_KEPT_MS, WebhookStore

log = logging.getLogger(__name__)

SINCE = "webhook_since"
"""The tag of a tool that names the argument that limits its answer to items since a time."""

PREFIX = "/api/pro/"
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
        self._operations = {
            operation.path.removeprefix(PREFIX): operation
            for operation in registry
            if operation.tier is Tier.PREMIUM and operation.path.startswith(PREFIX)
        }
        self._decoded: OrderedDict[str, Any] = OrderedDict()

    @property
    def endpoints(self) -> list[str]:
        """The short names of endpoints that accept subscriptions."""
        return sorted(self._operations)

    def spell(self, endpoint: str) -> str | None:
        """Return the canonical spelling of a short name in any case; None if there is no such endpoint."""
        return find_word(endpoint, self._operations)

    def operation(self, endpoint: str) -> Operation | None:
        """Return the premium operation behind a short name."""
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

    def check_condition(self, endpoint: str, path: str) -> str | None:
        """Describe what is wrong with the path of a condition; None if it can lead to a value."""
        return check_path(path, self._operations[endpoint].data_schema)

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
