"""Sells the credits of a sister service: it passes requests on to that service and returns its responses.

REST and MCP use it alike, as `RemotePurchases`. A payment by x402 is bound to headers, so
`forward_to` passes such a request on unchanged.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import urlencode

import msgspec

from toolserver.core.caller import bearer, is_visitor_token
from toolserver.core.http import (
    BodyTooLarge,
    HttpAnswer,
    HttpClient,
    Transport,
    Unreachable,
    read_body,
    request_pieces,
)
from toolserver.core.models import iso_ms
from toolserver.errors import (
    AlreadyCredited,
    BelowMinimum,
    BillingUnavailable,
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
from toolserver.money.ledger.operations import Who
from toolserver.money.ledger.statements import (
    AccountPayment,
    CallState,
    EntryKind,
    NoStatements,
    StatementLine,
    StatementLines,
    StatementRange,
    Statements,
)
from toolserver.money.purchases.credit_price import ATOMIC
from toolserver.money.purchases.credit_sales import Balance, Claim, CreditedPurchase, NoCreditSales, PurchaseQuote
from toolserver.settings import LedgerSettings as Settings

if TYPE_CHECKING:
    from toolserver.money.ledger.client.codec import OwnerAccount

log = logging.getLogger(__name__)

T = TypeVar("T")
Asgi = Callable[[MutableMapping[str, Any], Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Any]

ASK_S, CONFIRM_S, TOPUP_S = 5.0, 28.0, 58.0  # a confirmation waits for the chain, a top-up for its settlement
MOST_BYTES = 65_536
AGAIN_S = "15"
_PASSED_ON: tuple[type[CallRejected], ...] = (
    AlreadyCredited,
    BelowMinimum,
    ChainUnavailable,
    InvalidArguments,
    NoMatchingTransfer,
    NotFound,
    PayerProofRequired,
    PaymentPending,
    RateLimited,
    *PaymentRequired.__subclasses__(),
)
_KNOWN = {kind.code: kind for kind in _PASSED_ON}
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
    review: str | None = None


class _Confirmed(msgspec.Struct):
    token: str
    credits: int
    late: bool = False


class _HeldPurchase(msgspec.Struct):
    credits: int
    issued_at: datetime
    reissue_at: datetime | None = None


class _CancelledReissue(msgspec.Struct):
    cancelled: bool


class Accounts(Protocol):
    """The ledger of the owner, which this service follows."""

    async def account(self, who: Who) -> "OwnerAccount":
        """Return the account of a token. Raises PaymentRequired: invalid_token or expired."""
        ...


@asynccontextmanager
async def open_remote_sales(
    settings: Settings, ledger: Accounts, *, transport: Transport | None = None
) -> AsyncIterator["RemoteBalances | RemotePurchases"]:
    """Yield what a follower of a ledger sells: what the owner sells, or nothing where `public_url` is not set."""
    if settings.public_url is None:
        yield RemoteBalances(ledger)
        return
    async with open_remote_purchases(settings.public_url, ledger, transport=transport) as desk:
        yield desk


@asynccontextmanager
async def open_remote_purchases(
    public_url: str, ledger: Accounts | None = None, *, transport: Transport | None = None
) -> AsyncIterator["RemotePurchases"]:
    """Yield a client for the purchases of the service at that address, and close it afterwards.

    Only the `ledger` of that service says which tokens are allowances.
    """
    remote = HttpClient(public_url, transport=transport)
    try:
        yield RemotePurchases(remote, ledger)
    finally:
        await remote.aclose()


class RemoteBalances(NoCreditSales):
    """Sells nothing, and only returns the balance of a token of the ledger that is followed."""

    statements: Statements = NoStatements()

    def __init__(self, ledger: Accounts) -> None:
        self._ledger = ledger

    async def balance(self, token: str) -> Balance:
        account = await self._ledger.account(token)
        issued_at, is_allowance = datetime.fromtimestamp(int(account.issued_at), UTC), account.allowance is not None
        return Balance(account.credits, issued_at, is_allowance=is_allowance)


class RemotePurchases:
    """Sells what the owner of the ledger sells, as `Payments` does."""

    def __init__(self, remote: HttpClient, ledger: Accounts | None = None) -> None:
        self._remote, self._ledger = remote, ledger
        self.statements: Statements = RemoteStatements(self)

    def count_servers(self) -> None:
        """Return None: the owner watches the chain."""

    async def quote(
        self, amount_usd: Decimal, *, challenge: str | None = None, credits_per_day: int | None = None
    ) -> PurchaseQuote:
        body: dict[str, Any] = {"amount_usd": float(amount_usd)}
        body |= {"claim_challenge": challenge} if challenge else {}
        body |= {"credits_per_day": credits_per_day} if credits_per_day else {}
        offered = await self._post("/api/payment/buy-credits", body, _Offered)
        return PurchaseQuote(
            offered.wallet,
            offered.memo,
            offered.amount_atomic,
            offered.quote.credits,
            offered.expires_at,
            offered.memo_commitment,
            offered.payment_uri,
            offered.review,
        )

    async def confirm(self, claim: Claim) -> CreditedPurchase:
        members = {
            "tx_hash": claim.tx_hash,
            "nonce": claim.memo,
            "claim_verifier": claim.verifier,
            "payer_signature": claim.signature,
        }
        body = {name: value for name, value in members.items() if value is not None}
        confirmed = await self._post("/api/payment/confirm", body, _Confirmed, within_s=CONFIRM_S)
        return CreditedPurchase(confirmed.token, confirmed.credits, confirmed.late)

    async def quote_topup(self, who: Who | None, amount_usd: Decimal) -> PurchaseQuote:
        raise self._refuse_topup()

    async def confirm_topup(self, who: Who | None, claim: Claim) -> CreditedPurchase:
        raise self._refuse_topup()

    def _refuse_topup(self) -> NotFound:
        return NotFound("A token is topped up at the service that sells credits: POST /api/payment/topup passes it on.")

    async def find_payment(self, memo: str) -> str | None:
        """Return None: the owner offers no search for payments."""
        return None

    async def balance(self, token: str) -> Balance:
        headers = {"authorization": f"Bearer {token}"}
        purchase = read_answer(await self.pass_on("GET", "/api/payment/balance", None, headers, ASK_S), _HeldPurchase)
        account = None if self._ledger is None else await self._ledger.account(token)
        is_allowance = account is not None and account.allowance is not None
        return Balance(purchase.credits, purchase.issued_at, purchase.reissue_at, is_allowance=is_allowance)

    async def cancel_reissue(self, token: str) -> bool:
        headers = {"authorization": f"Bearer {token}"}
        path = "/api/payment/reissue/cancel"
        return read_answer(await self.pass_on("POST", path, b"", headers, ASK_S), _CancelledReissue).cancelled

    async def pass_on(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], within_s: float
    ) -> HttpAnswer:
        """Return the response of the service that sells. Raises PaymentRequired: billing_unavailable."""
        try:
            return await self._remote.ask(method, path, body=body, headers=headers, within_s=within_s)
        except Unreachable as failure:
            raise report_unreachable(str(failure)) from failure

    async def _post(self, path: str, body: Mapping[str, Any], kind: type[T], *, within_s: float = ASK_S) -> T:
        headers = {"content-type": "application/json"}
        return read_answer(await self.pass_on("POST", path, msgspec.json.encode(body), headers, within_s), kind)


def read_answer(answer: HttpAnswer, kind: type[T]) -> T:
    """Return the decoded body of a response with status 200.

    Raises the error that the response describes, or billing_unavailable if it cannot be understood.
    """
    try:
        if answer.status == 200:
            return msgspec.json.decode(answer.body, type=kind)
        problem = msgspec.json.decode(answer.body, type=dict[str, Any])
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise report_unreachable(f"HTTP {answer.status}, and its body cannot be decoded") from error
    raise read_problem(answer, problem)


def read_problem(answer: HttpAnswer, problem: Mapping[str, Any]) -> CallRejected:
    """Return the error of the other service as one of ours, or billing_unavailable if it is not one to pass on."""
    code, detail = str(problem.get("error", "")), str(problem.get("detail", ""))
    again = answer.headers.get("retry-after")
    more = {name: value for name, value in problem.items() if name not in _FRAME}
    headers = {"Retry-After": again} if again else {}
    kind = _KNOWN.get(code)
    if kind is None or kind.status != answer.status:
        return report_unreachable(f"HTTP {answer.status} {code}")
    return kind(detail, headers=headers, **more)


def report_unreachable(why: str) -> PaymentRequired:
    log.warning("the service that sells credits gave no usable response: %s", why)
    detail = "The service that sells credits cannot be reached at the moment."
    return BillingUnavailable(detail, headers={"Retry-After": AGAIN_S})


def forward_to(desk: RemotePurchases, path: str, *, refused: Callable[[CallRejected], tuple[int, bytes]]) -> Asgi:
    """Return an ASGI callable that passes a request on unchanged and returns status and bytes of the response.

    Only a visitor token, which is known here alone, is left out.

    `refused` renders our own errors: that the other service cannot be reached, or that the body is too large.
    """

    async def app(
        scope: MutableMapping[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"] if k.lower() in _THERE}
        if is_visitor_token(bearer(headers.get("authorization"))):
            del headers["authorization"]
        try:
            body = await _read_body(receive)
            answer = await desk.pass_on(scope["method"], path, body, headers, TOPUP_S)
        except CallRejected as rejection:
            status, content = refused(rejection)
            own = {"content-type": "application/problem+json", **rejection.headers}
            await _respond(send, status, own, content)
            return
        await _respond(send, answer.status, {n: v for n in _BACK if (v := answer.headers.get(n))}, answer.body)

    return app


async def _read_body(receive: Callable[[], Awaitable[Any]]) -> bytes:
    """Return the body of a request. Raises InvalidArguments when it is too large."""
    try:
        return await read_body(request_pieces(receive), MOST_BYTES)
    except BodyTooLarge:
        raise InvalidArguments(f"The body has more than {MOST_BYTES} bytes.", errors=[]) from None


async def _respond(send: Callable[[Any], Awaitable[None]], status: int, fields: Mapping[str, str], body: bytes) -> None:
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in fields.items()]
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


PATH = "/api/payment/statement"


class _Line(msgspec.Struct):
    at: datetime
    kind: EntryKind
    credits: int
    call_id: str | None
    endpoint: str | None
    state: CallState | None
    receipt_id: str | None
    no_charge_reason: str | None
    transaction: str | None
    allowance: str | None = None


class _Payment(msgspec.Struct):
    at: datetime
    amount_usd: float
    way: str
    state: str
    state_since: datetime
    transaction: str


class _Part(msgspec.Struct):
    credits: int
    entries: list[_Line]
    next_cursor: str | None
    payments: list[_Payment] = []


class RemoteStatements:
    """Returns the statements of the service that sells."""

    def __init__(self, desk: RemotePurchases) -> None:
        self._desk = desk

    async def read(self, token: str, wanted: StatementRange) -> StatementLines:
        """Return a page of a token's statement. Raises PaymentRequired; NotFound if the owner offers no statements."""
        parameters = {
            "from": None if wanted.since is None else iso_ms(wanted.since.timestamp()),
            "to": None if wanted.until is None else iso_ms(wanted.until.timestamp()),
            "cursor": wanted.cursor,
            "limit": str(wanted.limit),
        }
        query = urlencode({name: value for name, value in parameters.items() if value is not None})
        headers = {"authorization": f"Bearer {token}"}
        page = read_answer(await self._desk.pass_on("GET", f"{PATH}?{query}", None, headers, ASK_S), _Part)
        lines, payments = [_line_of(entry) for entry in page.entries], tuple(map(_payment_of, page.payments))
        return StatementLines(page.credits, lines, page.next_cursor, payments)


def _payment_of(each: _Payment) -> AccountPayment:
    amount = round(each.amount_usd * ATOMIC)
    return AccountPayment(each.at, amount, each.way, each.state, each.state_since, each.transaction)


def _line_of(entry: _Line) -> StatementLine:
    return StatementLine(
        entry.at,
        entry.kind,
        entry.credits,
        entry.call_id,
        entry.endpoint,
        entry.state,
        entry.no_charge_reason,
        entry.receipt_id,
        entry.transaction,
        entry.allowance,
    )
