"""The ledger for sister services: POST /api/internal/validate and /api/internal/commit, on a listener of their own.

Whatever the books say, yes or no, is 200.
"""

import hmac
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from toolserver.billing.ledger import CallReused, LedgerOwner
from toolserver.billing.owner_books import NotAllowed, OwnerBooks
from toolserver.billing.wire import COMMIT, MOST_BYTES, SKEW_S, VALIDATE, Commit, Validate, mac, signature
from toolserver.clock import Clock
from toolserver.errors import PaymentRequired
from toolserver.settings import Ledger as Settings

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
T = TypeVar("T")


class Refusal(Exception):
    """The request is not one we serve: an HTTP status and a word."""

    def __init__(self, status: int, error: str, detail: str = "", retry_after: str | None = None) -> None:
        super().__init__(detail)
        self.status, self.error, self.detail, self.retry_after = status, error, detail, retry_after


class Reply(NamedTuple):
    """What is sent back."""

    status: int
    body: Any
    retry_after: str | None = None


def internal_app(ledger: LedgerOwner, settings: Settings, clock: Clock) -> "OwnerApi":
    """The ASGI callable for the internal listener."""
    return OwnerApi(OwnerBooks(ledger), Keys(settings, clock))


class OwnerApi:
    """The two routes, and nothing else."""

    def __init__(self, books: OwnerBooks, keys: "Keys") -> None:
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

    async def _answered(self, scope: Scope, receive: Receive) -> Reply:
        try:
            return Reply(200, await self._served(scope, receive))
        except Refusal as no:
            body = {"ok": False, "error": no.error} | ({"detail": no.detail} if no.detail else {})
            return Reply(no.status, body, no.retry_after)
        except Exception:
            log.exception("a request of a sister service failed")
            return Reply(500, {"ok": False, "error": "internal_error"})

    async def _served(self, scope: Scope, receive: Receive) -> Any:
        path = scope["path"]
        if path not in (VALIDATE, COMMIT):
            raise Refusal(404, "not_found")
        if scope["method"] != "POST":
            raise Refusal(405, "method_not_allowed")
        body = await _read(receive)
        services = self._keys.services({k.lower(): v for k, v in scope["headers"]}, path, body)
        try:
            if path == VALIDATE:
                return await self._books.validate(_parsed(body, Validate), services)
            return await self._books.commit(_parsed(body, Commit), services)
        except CallReused:
            raise Refusal(409, "call_reused", "this call_id names another token or cost") from None
        except ValueError as error:
            raise Refusal(400, "invalid_request", str(error)) from None
        except NotAllowed as no:
            raise Refusal(403, "forbidden", str(no)) from None
        except PaymentRequired as away:
            raise Refusal(503, away.code, retry_after=away.headers.get("Retry-After", "5")) from None


class Keys:
    """Who may ask, and in the name of which services."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._secrets = {name: secret.get_secret_value() for name, secret in settings.keys.items()}
        self._services = {name: tuple(services) for name, services in settings.services.items()}
        self._compat, self._clock = settings.compat_internal_auth, clock

    def services(self, headers: MutableMapping[bytes, bytes], path: str, body: bytes) -> tuple[str, ...]:
        """The services the request may speak for, the first by default. Raises Refusal."""
        bare = headers.get(b"x-internal-auth")
        if self._compat and bare is not None and b"authorization" not in headers:
            name = self._bare(bare)
        else:
            name = self._signed(headers.get(b"authorization", b"").decode("latin-1"), path, body)
        if name is None:
            log.warning("a request without a good signature was refused", extra={"path": path})
            raise Refusal(401, "unauthorized")
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
        """Every key is compared, so that the time taken says nothing."""
        found = [name for name, secret in self._secrets.items() if hmac.compare_digest(secret.encode(), given)]
        return found[0] if found else None


def _parsed(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise Refusal(400, "invalid_request", str(error)) from None


async def _read(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refusal(400, "invalid_request", "the request ended early")
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > MOST_BYTES:
            raise Refusal(413, "payload_too_large")
    return body


async def _respond(send: Send, reply: Reply) -> None:
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
