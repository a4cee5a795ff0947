"""Serves the ledger to sister services: POST /api/internal/validate, commit and allowances, on a separate listener.

Every decision of the ledger, including a refusal, has status 200.
"""

import hmac
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from toolserver.clock import Clock
from toolserver.errors import PaymentRequired
from toolserver.money.ledger.client.messages import (
    ALLOWANCES,
    COMMIT,
    MOST_BYTES,
    SKEW_S,
    VALIDATE,
    AskAllowances,
    Commit,
    Validate,
    mac,
    signature,
)
from toolserver.money.ledger.protocol import CallReused, LedgerOwner
from toolserver.money.ledger.server.handlers import LedgerHandlers, NotAllowed
from toolserver.settings import LedgerSettings as Settings

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
T = TypeVar("T")


class ApiRefusal(Exception):
    """The request cannot be served: an HTTP status and an error code."""

    def __init__(self, status: int, error: str, detail: str = "", retry_after: str | None = None) -> None:
        super().__init__(detail)
        self.status, self.error, self.detail, self.retry_after = status, error, detail, retry_after


class ApiReply(NamedTuple):
    """The status, body and Retry-After of a reply."""

    status: int
    body: Any
    retry_after: str | None = None


def internal_app(ledger: LedgerOwner, settings: Settings, clock: Clock) -> "LedgerApi":
    """Return the ASGI callable for the internal listener."""
    return LedgerApi(LedgerHandlers(ledger, clock), Keys(settings, clock))


class LedgerApi:
    """Serves the three routes."""

    def __init__(self, books: LedgerHandlers, keys: "Keys") -> None:
        self._books, self._keys = books, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for phase in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{phase}.complete"})
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})
        else:
            await _respond(send, await self._answered(scope, receive))

    async def _answered(self, scope: Scope, receive: Receive) -> ApiReply:
        try:
            return ApiReply(200, await self._served(scope, receive))
        except ApiRefusal as no:
            body = {"ok": False, "error": no.error} | ({"detail": no.detail} if no.detail else {})
            return ApiReply(no.status, body, no.retry_after)
        except Exception:
            log.exception("a request of a sister service failed")
            return ApiReply(500, {"ok": False, "error": "internal_error"})

    async def _served(self, scope: Scope, receive: Receive) -> Any:
        path = scope["path"]
        if path not in (VALIDATE, COMMIT, ALLOWANCES):
            raise ApiRefusal(404, "not_found")
        if scope["method"] != "POST":
            raise ApiRefusal(405, "method_not_allowed")
        body = await _read(receive)
        services = self._keys.services({k.lower(): v for k, v in scope["headers"]}, path, body)
        try:
            return await self._answer(path, body, services)
        except CallReused:
            raise ApiRefusal(409, "call_reused", "this call_id is already used with another token or cost") from None
        except ValueError as error:
            raise ApiRefusal(400, "invalid_request", str(error)) from None
        except NotAllowed as no:
            raise ApiRefusal(403, "forbidden", str(no)) from None
        except PaymentRequired as away:
            raise ApiRefusal(503, away.code, retry_after=away.headers.get("Retry-After", "5")) from None

    async def _answer(self, path: str, body: bytes, services: tuple[str, ...]) -> Any:
        if path == VALIDATE:
            return await self._books.validate(_parsed(body, Validate), services)
        if path == COMMIT:
            return await self._books.commit(_parsed(body, Commit), services)
        return await self._books.manage_allowances(_parsed(body, AskAllowances), services)


class Keys:
    """The keys of sister services, and the services that each may charge for."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._secrets = {name: secret.get_secret_value() for name, secret in settings.keys.items()}
        self._services = {name: tuple(services) for name, services in settings.services.items()}
        self._compat, self._clock = settings.compat_internal_auth, clock

    def services(self, headers: MutableMapping[bytes, bytes], path: str, body: bytes) -> tuple[str, ...]:
        """Return the services for which the request may charge; the first is the default. Raises ApiRefusal."""
        bare = headers.get(b"x-internal-auth")
        if self._compat and bare is not None and b"authorization" not in headers:
            name = self._bare(bare)
        else:
            name = self._signed(headers.get(b"authorization", b"").decode("latin-1"), path, body)
        if name is None:
            log.warning("a request without a good signature was refused", extra={"path": path})
            raise ApiRefusal(401, "unauthorized")
        return self._services[name]

    def _signed(self, header: str, path: str, body: bytes) -> str | None:
        given = signature(header)
        if given is None:
            return None
        secret = self._secrets.get(given.key_id, "")  # an unknown key takes as long as a wrong signature
        good = hmac.compare_digest(mac(secret, path, given.at, body).encode(), given.mac.encode())
        fresh = abs(self._clock.time() - given.at) <= SKEW_S
        return given.key_id if good and fresh and secret else None

    def _bare(self, given: bytes) -> str | None:
        """Return the name of a key. Every key is compared, so that the time taken reveals nothing."""
        found = [name for name, secret in self._secrets.items() if hmac.compare_digest(secret.encode(), given)]
        return found[0] if found else None


def _parsed(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise ApiRefusal(400, "invalid_request", str(error)) from None


async def _read(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ApiRefusal(400, "invalid_request", "the request ended early")
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MOST_BYTES:
            raise ApiRefusal(413, "payload_too_large")
    return body


async def _respond(send: Send, reply: ApiReply) -> None:
    body = msgspec.json.encode(reply.body)
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    ]
    if reply.retry_after is not None:
        headers.append((b"retry-after", reply.retry_after.encode("latin-1")))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
