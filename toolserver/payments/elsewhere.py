"""Credits that a sister service sells: what is asked of us is asked there, and its answer is ours.

Over REST and MCP alike through `Elsewhere`. A payment by x402 is bound to headers, so it is passed on as it comes, by
`forwarding`.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from toolserver.billing.rules import Who
from toolserver.errors import (
    AlreadyCredited,
    BelowMinimum,
    CallRejected,
    ChainUnavailable,
    InvalidArguments,
    NoMatchingTransfer,
    NotFound,
    PayerProofRequired,
    PaymentPending,
    PaymentRequired,
    RateLimited,
)
from toolserver.payments.offers import Balance, Bought, Claim, Payments, Quote, Unsold
from toolserver.settings import Ledger as Settings

if TYPE_CHECKING:
    from toolserver.billing.remote import Answer, Remote, Transport
    from toolserver.billing.replies import Account

log = logging.getLogger(__name__)

T = TypeVar("T")
Asgi = Callable[[MutableMapping[str, Any], Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Any]

ASK_S, CONFIRM_S, TOPUP_S = 5.0, 28.0, 58.0  # a confirmation waits for the chain, a top-up for its settlement
MOST_BYTES = 65_536
AGAIN_S = "15"
_KNOWN: dict[str, type[CallRejected]] = {
    kind.code: kind
    for kind in (
        AlreadyCredited,
        BelowMinimum,
        ChainUnavailable,
        InvalidArguments,
        NoMatchingTransfer,
        NotFound,
        PayerProofRequired,
        PaymentPending,
        RateLimited,
    )
}
_FRAME = frozenset(("type", "title", "status", "detail", "error", "request_id", "signup", "pricing"))
_THERE = (b"authorization", b"content-type", b"payment-signature", b"x-payment", b"idempotency-key")
_BACK = ("content-type", "retry-after", "allow", "x-service-pricing", "payment-required", "payment-response")


class _Terms(msgspec.Struct):
    credits: int


class _Offered(msgspec.Struct):
    wallet: str
    memo: str
    quote: _Terms
    expires_at: datetime
    amount_atomic: int
    payment_uri: str
    memo_commitment: str


class _Confirmed(msgspec.Struct):
    token: str
    credits: int
    late: bool = False


class _Held(msgspec.Struct):
    credits: int
    issued_at: datetime


class Accounts(Protocol):
    """A ledger that is followed."""

    async def account(self, who: Who) -> "Account":
        """Raises PaymentRequired: invalid_token or expired."""
        ...


@asynccontextmanager
async def opened_sales(
    settings: Settings, ledger: Accounts, *, transport: "Transport | None" = None
) -> AsyncIterator[Payments]:
    """What can be bought where a ledger is followed: what its owner sells, or nothing."""
    if settings.public_url is None:
        yield Told(ledger)
        return
    async with opened_elsewhere(settings.public_url, transport=transport) as desk:
        yield desk


@asynccontextmanager
async def opened_elsewhere(public_url: str, *, transport: "Transport | None" = None) -> AsyncIterator["Elsewhere"]:
    """The desk of the service at that address."""
    from toolserver.billing.remote import Remote

    remote = Remote(public_url, transport=transport)
    try:
        yield Elsewhere(remote)
    finally:
        await remote.aclose()


class Told(Unsold):
    """Where nothing is sold, but balances are told."""

    def __init__(self, ledger: Accounts) -> None:
        self._ledger = ledger

    async def balance(self, token: str) -> Balance:
        found = await self._ledger.account(token)
        return Balance(found.credits, datetime.fromtimestamp(int(found.issued_at), UTC))


class Elsewhere:
    """Sells what the owner of the ledger sells, as `Payments` does."""

    def __init__(self, remote: "Remote") -> None:
        self._remote = remote

    async def quote(self, amount_usd: Decimal, *, challenge: str | None = None) -> Quote:
        asked = {"amount_usd": float(amount_usd)} | ({"claim_challenge": challenge} if challenge else {})
        found = await self._post("/api/payment/buy-credits", asked, _Offered)
        return Quote(
            found.wallet,
            found.memo,
            found.amount_atomic,
            found.quote.credits,
            found.expires_at,
            found.memo_commitment,
            found.payment_uri,
        )

    async def confirm(self, claim: Claim) -> Bought:
        asked = {
            "tx_hash": claim.tx_hash,
            "nonce": claim.memo,
            "claim_verifier": claim.verifier,
            "payer_signature": claim.signature,
        }
        given = {name: value for name, value in asked.items() if value is not None}
        found = await self._post("/api/payment/confirm", given, _Confirmed, within_s=CONFIRM_S)
        return Bought(found.token, found.credits, found.late)

    async def balance(self, token: str) -> Balance:
        headers = {"authorization": f"Bearer {token}"}
        found = understood(await self.passed_on("GET", "/api/payment/balance", None, headers, ASK_S), _Held)
        return Balance(found.credits, found.issued_at)

    async def passed_on(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], within_s: float
    ) -> "Answer":
        """The answer of the service that sells. Raises PaymentRequired: billing_unavailable."""
        from toolserver.billing.remote import Unreachable

        try:
            return await self._remote.ask(method, path, body=body, headers=headers, within_s=within_s)
        except Unreachable as failure:
            raise away(str(failure)) from failure

    async def _post(self, path: str, asked: Mapping[str, Any], kind: type[T], *, within_s: float = ASK_S) -> T:
        headers = {"content-type": "application/json"}
        return understood(await self.passed_on("POST", path, msgspec.json.encode(asked), headers, within_s), kind)


def understood(answer: "Answer", kind: type[T]) -> T:
    """What was asked for. Raises what the answer says went wrong; billing_unavailable when it makes no sense."""
    try:
        if answer.status == 200:
            return msgspec.json.decode(answer.body, type=kind)
        problem = msgspec.json.decode(answer.body, type=dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise away(f"HTTP {answer.status}, and its body makes no sense") from error
    raise rejected(answer, problem)


def rejected(answer: "Answer", problem: Mapping[str, Any]) -> CallRejected:
    """A problem of the other service as ours."""
    code, detail = str(problem.get("error", "")), str(problem.get("detail", ""))
    again = answer.headers.get("retry-after")
    more = {name: value for name, value in problem.items() if name not in _FRAME}
    headers = {"Retry-After": again} if again else {}
    if answer.status == 402:
        return PaymentRequired(code, detail, headers=headers, **more)
    kind = _KNOWN.get(code)
    if kind is None or kind.status != answer.status:
        return away(f"HTTP {answer.status} {code}")
    return kind(detail, headers=headers, **more)


def away(why: str) -> PaymentRequired:
    log.warning("the service that sells credits could not be asked: %s", why)
    told = "The service that sells credits cannot be reached at the moment."
    return PaymentRequired("billing_unavailable", told, headers={"Retry-After": AGAIN_S})


def forwarding(desk: Elsewhere, path: str, *, refused: Callable[[CallRejected], tuple[int, bytes]]) -> Asgi:
    """An ASGI callable that passes a request on as it comes and hands back status and bytes.

    `refused` writes a problem of our own: that the other service is away, or that the body is too large.
    """

    async def app(
        scope: MutableMapping[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"] if k.lower() in _THERE}
        body, more = b"", True
        while more and len(body) <= MOST_BYTES:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        try:
            if len(body) > MOST_BYTES:
                raise InvalidArguments(f"The body has more than {MOST_BYTES} bytes.", errors=[])
            answer = await desk.passed_on(scope["method"], path, body, headers, TOPUP_S)
        except CallRejected as rejection:
            status, content = refused(rejection)
            own = {"content-type": "application/problem+json", **rejection.headers}
            await _respond(send, status, own, content)
            return
        await _respond(send, answer.status, {n: v for n in _BACK if (v := answer.headers.get(n))}, answer.body)

    return app


async def _respond(send: Callable[[Any], Awaitable[None]], status: int, told: Mapping[str, str], body: bytes) -> None:
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in told.items()]
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
