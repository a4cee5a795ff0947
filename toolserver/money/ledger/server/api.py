"""Serves the ledger to sister services: POST /api/internal/validate, commit and allowances, on a separate listener.

Every decision of the ledger, including a refusal, has status 200. A call_id belongs to the
service that sends it. The ledger prefixes it with the name of the first service that the key
may charge for, so that no service can touch the reservations of another service or of this
one.
"""

import asyncio
import hmac
import logging
import re
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import msgspec

from toolserver.clock import Clock, milliseconds
from toolserver.core.caller import new_call_id
from toolserver.core.models import iso_ms
from toolserver.errors import AllowanceConflict, NotFound, PaymentRequired
from toolserver.money.ledger.allowance import TERMS, Allowance, check_end
from toolserver.money.ledger.client.messages import (
    ALLOWANCES,
    COMMIT,
    MOST_BYTES,
    REPLY_SIGNATURE,
    SILENT,
    SKEW_S,
    VALIDATE,
    AllowancesRefused,
    AskAllowances,
    Commit,
    CommitRefused,
    Committed,
    ToldAllowances,
    Validate,
    Validated,
    mac,
    reply_mac,
    signature,
)
from toolserver.money.ledger.protocol import CallReused, LedgerOwner, UnknownCall
from toolserver.money.ledger.state import AccountRef, Settlement, Who, name_call
from toolserver.settings import LedgerSettings as Settings

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
R = TypeVar("R")
T = TypeVar("T")

MOST_TTL_S = 3600.0
MOST_ENDPOINT = 200
MOST_NONCES = 500_000  # a window of two minutes at 4,000 requests a second
_HASH = re.compile(r"[0-9a-f]{64}")
_CALL_ID = re.compile(r"[A-Za-z0-9_.-]{1,100}")


class NotAllowed(Exception):
    """The key may not charge for that service."""


class LedgerHandlers:
    """Serves Validate and Commit over a ledger."""

    def __init__(self, ledger: LedgerOwner, clock: Clock) -> None:
        self._ledger, self._now = ledger, milliseconds(clock)

    async def validate(self, request: Validate, services: tuple[str, ...]) -> Validated:
        """Reserve credits. Raises NotAllowed, CallReused, ValueError, PaymentRequired: billing_unavailable."""
        service, who = _service(request.service, services), _who(request.token, request.account_ref)
        if not 0 < request.ttl_s <= MOST_TTL_S:
            raise ValueError(f"ttl_s must be more than 0 and at most {MOST_TTL_S:.0f}")
        if request.cost == 0:
            return await self._standing(who)
        call_id = _checked(request.call_id) if request.call_id is not None else new_call_id()
        try:
            held = await self._ledger.reserve(
                _name(call_id, services),
                who,
                request.cost,
                endpoint=request.endpoint[:MOST_ENDPOINT],
                ttl_s=request.ttl_s,
                service=service,
            )
            standing = await self._ledger.standing(who)
        except PaymentRequired as refusal:
            return _denied(refusal)
        return Validated(
            ok=True,
            sufficient=True,
            reservation_id=call_id,
            credits_remaining=held.remaining,
            expires_at=iso_ms(held.expires_at),
            account_ref=standing.ref.ref,
            token_fp=standing.fingerprint,
            payer=standing.payer,
            allowance=standing.allowance,
            issued_at=iso_ms(standing.issued_at),
            state=held.state,
            replayed=held.replayed,
        )

    async def commit(self, request: Commit, services: tuple[str, ...]) -> Committed | CommitRefused:
        """Charge or release a reservation. Raises as `validate` does.

        A commit that names no reservation is refused: if it came twice, it would be charged twice.
        """
        if request.outcome not in (None, "charge", "release"):
            raise ValueError("outcome must be charge or release")
        reason = _reason(request)
        _service(request.service, services)
        call_ids = {id for id in (request.call_id, request.reservation_id) if id is not None}
        if len(call_ids) > 1:
            raise ValueError("call_id and reservation_id must be the same")
        if not call_ids:
            raise ValueError("call_id or reservation_id must name a reservation: validate answers with its id")
        return await self._settled(_name(_checked(call_ids.pop()), services), request, reason)

    async def manage_allowances(
        self, request: AskAllowances, services: tuple[str, ...]
    ) -> ToldAllowances | AllowancesRefused:
        """Create, list, change or revoke. Raises ValueError, PaymentRequired: billing_unavailable.

        It takes the token itself. A sister service has the reference of every account that
        has ever called it; only who holds the token agrees to a second one. What a service
        creates pays for its own calls only. It lists and revokes every allowance of the
        token, so that people can wherever they are, and changes only its own.
        """
        try:
            allowances = await self._manage(request, services[0])
            return ToldAllowances(ok=True, allowances=[_shown_to(services[0], each) for each in allowances])
        except (AllowanceConflict, NotFound, PaymentRequired) as refusal:
            if refusal.code == "billing_unavailable":
                raise
            return AllowancesRefused(ok=False, reason=refusal.code, detail=refusal.detail)

    async def _manage(self, request: AskAllowances, service: str) -> list[Allowance]:
        ledger, who, id = self._ledger, _bearer(request), request.id or ""
        for terms in (request.terms, request.change and request.change.terms):
            if terms is not None:
                check_end(terms.expires_at, self._now())
        if request.action == "list":
            return await ledger.list_allowances(who)
        if request.action == "revoke":
            return [await ledger.revoke_allowance(who, id)]
        if request.action == "change" and request.change is not None:
            if not request.change.changed <= TERMS:
                raise ValueError("a change may name only terms of an allowance")
            return [await ledger.change_allowance(who, id, request.change, service=service)]
        if request.terms is None or request.hash is None or not _HASH.fullmatch(request.hash):
            raise ValueError("create needs terms and the hash of a token, and change needs a change")
        return [await ledger.create_allowance(who, request.hash, request.terms, service=service)]

    async def _settled(self, call_id: str, request: Commit, reason: str | None) -> Committed | CommitRefused:
        """Settle a reservation. If the caller names a token and a cost, they must match the reservation."""
        if request.token is not None or request.account_ref is not None:
            other = await self._other(call_id, request)
            if other is not None:
                return CommitRefused(ok=False, reason=other)
        try:
            return _committed(await self._ledger.settle(call_id, no_charge=reason))
        except UnknownCall:
            return CommitRefused(ok=False, reason="reservation_not_found")

    async def _other(self, call_id: str, request: Commit) -> str | None:
        """Return why token and cost do not match the reservation, by reserving again; None if they match."""
        who, cost = _who(request.token, request.account_ref), _cost(request)
        try:
            held = await self._ledger.reserve(call_id, who, cost, endpoint=request.endpoint[:MOST_ENDPOINT], ttl_s=0)
        except CallReused:
            return "reservation_mismatch"
        except PaymentRequired as refusal:
            if refusal.code == "billing_unavailable":
                raise
            # calls of a revoked token can be settled; a token with too few credits never had this reservation
            return {"invalid_token": "reservation_mismatch", "insufficient_credits": "reservation_not_found"}.get(
                refusal.code
            )
        if held.replayed:
            return None
        await self._ledger.settle(call_id, no_charge="reservation_not_found")
        return "reservation_not_found"

    async def _standing(self, who: Who) -> Validated:
        try:
            account = await self._ledger.standing(who)
        except PaymentRequired as refusal:
            return _denied(refusal)
        if account.revoked is not None:
            return Validated(ok=False, reason="expired")
        return Validated(
            ok=True,
            sufficient=True,
            credits_remaining=account.credits,
            account_ref=account.ref.ref,
            token_fp=account.fingerprint,
            payer=account.payer,
            allowance=account.allowance,
            issued_at=iso_ms(account.issued_at),
        )


def _committed(settled: Settlement) -> Committed:
    return Committed(
        ok=True,
        state=settled.state,
        credits_charged=settled.charged,
        balance_after=settled.remaining,
        no_charge_reason=settled.reason,
        replayed=settled.replayed,
    )


def _denied(refusal: PaymentRequired) -> Validated:
    """Return a refusal as a reply. Re-raises BillingUnavailable, which is not a refusal."""
    if refusal.code == "billing_unavailable":
        raise refusal
    left = refusal.extra.get("credits_remaining")
    return Validated(
        ok=False,
        reason=refusal.code,
        credits_remaining=left,
        sufficient=None if left is None else False,
        cap=(cap := refusal.extra.get("cap")),
        detail=None if cap is None else refusal.detail,
    )


def _who(token: str | None, ref: str | None) -> Who:
    if (token is None) == (ref is None):
        raise ValueError("give either token or account_ref, and not both")
    return token if token is not None else AccountRef(ref or "")


def _shown_to(service: str, allowance: Allowance) -> Allowance:
    """Return an allowance as a sister service sees it: without what charges it, if it was made elsewhere."""
    return allowance if allowance.service == service else replace(allowance, hash="", ref="")


def _bearer(request: AskAllowances) -> str:
    if request.token is None or request.account_ref is not None:
        raise ValueError("allowances are managed with the token whose credits they spend, not with account_ref")
    return request.token


def _cost(request: Commit) -> int:
    if request.cost is None:
        raise ValueError("cost is required with a token or account_ref")
    return request.cost


def _service(service: str | None, allowed: tuple[str, ...]) -> str:
    if service is not None and service not in allowed:
        raise NotAllowed("this key may not charge for that service")
    return service or allowed[0]


def _name(call_id: str, services: tuple[str, ...]) -> str:
    return name_call(services[0], call_id)


def _checked(call_id: str) -> str:
    if not _CALL_ID.fullmatch(call_id):
        raise ValueError("a call_id must have 1 to 100 letters, digits, dots, dashes and underscores")
    return call_id


def _reason(request: Commit) -> str | None:
    """Return the reason for not charging, as any text, or None if the call is to be charged."""
    reason = request.no_charge_reason
    if reason is not None:
        return reason if isinstance(reason, str) else str(reason)
    return SILENT if request.outcome == "release" else None


class ApiRefusal(Exception):
    """The request cannot be served: an HTTP status and an error code."""

    def __init__(self, status: int, error: str, detail: str = "", retry_after: str | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.error = error
        self.detail = detail
        self.retry_after = retry_after


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
        self._steps: set[asyncio.Task[Any]] = set()  # under way: the loop itself keeps no task alive

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for phase in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{phase}.complete"})
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})
        else:
            reply = await self._answered(scope, receive)
            body = msgspec.json.encode(reply.body)
            header = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
            await _respond(send, reply, body, self._keys.sign(header, reply.status, body))

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
            return await self._finish(self._books.validate(_parsed(body, Validate), services))
        if path == COMMIT:
            return await self._finish(self._books.commit(_parsed(body, Commit), services))
        return await self._books.manage_allowances(_parsed(body, AskAllowances), services)

    async def _finish(self, step: Coroutine[Any, Any, R]) -> R:
        """Carry out a step of a call to its end, even if the service that asked for it waits no longer.

        It asks again, by the same call_id, or has the call released. A step that was given back because nobody waited
        would be found as it is by the second request, and the call would cost nothing.
        """
        task = asyncio.create_task(step)
        self._steps.add(task)
        task.add_done_callback(self._steps.discard)
        return await asyncio.shield(task)


class Keys:
    """The keys of sister services, and the services that each may charge for."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._secrets = {name: secret.get_secret_value() for name, secret in settings.keys.items()}
        self._services = {name: tuple(services) for name, services in settings.services.items()}
        self._compat, self._clock = settings.compat_internal_auth, clock
        self._used: deque[tuple[float, str, str]] = deque()  # nonces until their window is over, and their keys
        self._nonces: set[tuple[str, str]] = set()

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
        signed = signature(header)
        if signed is None:
            return None
        secret = self._secrets.get(signed.key_id, "")  # an unknown key takes as long as a wrong signature
        good = hmac.compare_digest(mac(secret, path, signed.at, body, signed.nonce).encode(), signed.mac.encode())
        fresh = abs(self._clock.time() - signed.at) <= SKEW_S
        if not (good and fresh and secret) or (signed.nonce is not None and self._is_used(signed.key_id, signed.nonce)):
            return None
        return signed.key_id

    def _is_used(self, key_id: str, nonce: str) -> bool:
        """Return True if a nonce came before within its window, and keep it otherwise. Only who has a key adds any."""
        now = self._clock.time()
        while self._used and (self._used[0][0] < now or len(self._used) >= MOST_NONCES):
            self._nonces.discard(self._used.popleft()[1:])
        if (key_id, nonce) in self._nonces:
            return True
        self._used.append((now + 2 * SKEW_S, key_id, nonce))
        self._nonces.add((key_id, nonce))
        return False

    def sign(self, header: str, status: int, body: bytes) -> str | None:
        """Return the signature of the reply to a request with this Authorization header, None for an unknown key."""
        signed = signature(header)
        secret = None if signed is None else self._secrets.get(signed.key_id)
        return None if signed is None or not secret else reply_mac(secret, signed.mac, status, body)

    def _bare(self, presented: bytes) -> str | None:
        """Return the name of a key. Every key is compared, so that the time taken reveals nothing."""
        names = [name for name, secret in self._secrets.items() if hmac.compare_digest(secret.encode(), presented)]
        return names[0] if names else None


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


async def _respond(send: Send, reply: ApiReply, body: bytes, signed: str | None) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    ]
    if signed is not None:
        headers.append((REPLY_SIGNATURE.encode(), signed.encode()))
    if reply.retry_after is not None:
        headers.append((b"retry-after", reply.retry_after.encode("latin-1")))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
