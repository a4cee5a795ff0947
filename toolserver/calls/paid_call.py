"""Runs one paid call: reserves credits, makes the answer, settles the reservation and signs a receipt.

Every failure ends as "not charged". The reservation is settled even if the caller disconnects. A caller who disconnects
after the charge, or for whom no receipt could be made, gets the credits back.
"""

import logging
from collections.abc import Awaitable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import anyio
import anyio.lowlevel
import msgspec
from pydantic import BaseModel

from toolserver.calls.arguments import build_cache_key
from toolserver.calls.connection import Receive, run_unless_disconnected, when_sent
from toolserver.calls.idempotency import (
    Idempotency,
    KeptResult,
    KeyClaim,
    KeyedCharge,
    KeyTaken,
    SharedBytes,
    fingerprint,
)
from toolserver.calls.rate_limit import UnchargedLimit
from toolserver.calls.response import RenderedResponse
from toolserver.calls.response_cache import ResponseCache, SchemaFailure
from toolserver.core.caller import Caller, token_hash
from toolserver.core.metrics import Metrics
from toolserver.errors import (
    BillingUnavailable,
    CallRejected,
    InternalError,
    InvalidArguments,
    PaymentRequired,
    UpstreamUnavailable,
)
from toolserver.money.ledger.protocol import Ledger, NoCharge, Settlement
from toolserver.money.receipts.sign import Body, Receipts, Sale, request_text
from toolserver.registry.registry import Operation
from toolserver.sql.errors import StorageFailed

if TYPE_CHECKING:
    from toolserver.calls.charge_store import ReceiptedCharges
    from toolserver.money.receipts.issue import StoredReceipt

_FACTS = ("generated_at", "expires_at", "oldest_at", "stale", "nothing", "no_charge")
_WITH_CREDITS = ("mcp", "stdio")  # on these channels the answer says what is left, and the receipt covers it


class PaidCall(NamedTuple):
    """A call to a premium tool, and the token that pays for it. `given` are the arguments as the caller wrote them.

    `receive` is the caller's connection, if there is one; it is watched while an answer is made.
    """

    call_id: str
    operation: Operation
    arguments: BaseModel
    given: Mapping[str, Any]
    caller: Caller
    token: str
    receive: Receive | None = None

    @property
    def log_fields(self) -> dict[str, str]:
        """The fields that identify the call in the log."""
        return {"tool": self.operation.name, "request_id": self.caller.request_id, "call_id": self.call_id}


class PaidCallResult(NamedTuple):
    """The answer to a paid call, the credits charged and left, and the receipt.

    `reason` says why nothing was charged. `remaining` is None if the ledger did not answer.
    """

    rendered: RenderedResponse
    charged: int
    remaining: int | None
    reason: str | None = None
    receipt_id: str | None = None
    receipt: str | None = None


class PaymentSale(NamedTuple):
    """An answer sold for its own payment. `settlement` is shown to the caller; it is None if nothing was taken."""

    sold: PaidCallResult
    settlement: dict[str, Any] | None


class CallPayments(Protocol):
    """Sells single answers for payments that come with the call, without a token."""

    def add_offer(self, operation: Operation, rejected: PaymentRequired) -> None:
        """Add a payment offer to a refusal, unless it already has one."""
        ...

    async def sell(
        self, operation: Operation, arguments: BaseModel, given: Mapping[str, Any], caller: Caller
    ) -> PaymentSale:
        """Answer a call that comes with a payment. Raise CallRejected."""
        ...

    async def find_settlement(self, text: str | None) -> dict[str, Any] | None:
        """Return how a payment sent with the call was settled, or None if it was not settled or cannot be read."""
        ...


def show_answer(caller: Caller, rendered: RenderedResponse) -> RenderedResponse:
    """Return the answer in the form that this caller requested, which its receipt covers."""
    return rendered.short if caller.short_meta else rendered


def describe_body(call: PaidCall, rendered: RenderedResponse, settled: Settlement | None) -> Body:
    """Return the hash and the size of the delivered bytes."""
    counted = settled.remaining if settled and call.caller.transport in _WITH_CREDITS else None
    return Body(rendered.sha256(counted).hex(), rendered.size(counted))


def describe_sale(call: PaidCall, settled: Settlement | None, reason: str | None, **more: Any) -> Sale:
    """Return what the receipt says of the call. Without a settlement the charge is unknown: it is being released."""
    operation = call.operation
    return Sale(
        call.call_id,
        token_hash(call.token).hex(),
        operation.endpoint,
        request_text(operation.method, operation.path, call.given),
        operation.credits,
        settled.charged if settled else 0,
        settled.remaining if settled else None,
        operation.method,
        reason,
        sla_s=operation.ttl(call.arguments) if operation.sla_s is None else operation.sla_s,
        nonce=call.caller.nonce,
        pending=settled is None,
        **more,
    )


def split_sale(sold: PaidCallResult) -> KeptResult:
    """Split the result for repeats of the call with its Idempotency-Key.

    Its own part belongs to this call alone; all buyers of the answer share the facts and the payload.
    """
    rendered, (charged, remaining, reason, receipt_id, receipt) = sold.rendered, sold[1:]
    shared = rendered.memo.get("shared")
    if shared is None:
        facts = {name: getattr(rendered, name) for name in _FACTS}
        shared = rendered.memo["shared"] = SharedBytes(msgspec.json.encode(facts) + b"\n" + rendered.payload)
    own = msgspec.json.encode((charged, remaining, reason, receipt_id)) + b"\n"
    return KeptResult(own, shared, receipt or "")


def unpack_sale(kept: bytes) -> PaidCallResult:
    """Restore the result that `split_sale` split. Earlier versions wrote facts and receipt on the first line too."""
    own, _, rest = kept.partition(b"\n")
    about = msgspec.json.decode(own)
    if isinstance(about[0], dict):
        return PaidCallResult(RenderedResponse(rest, **about[0]), *about[1:])
    receipt, facts, payload = rest.split(b"\n", 2)
    rendered = RenderedResponse(payload, **msgspec.json.decode(facts))
    charged, remaining, reason, receipt_id = about
    return PaidCallResult(rendered, charged, remaining, reason, receipt_id, receipt.decode() or None)


def show_settled(settled: Settlement) -> tuple[int, int | None, str | None]:
    """Return the credits charged, the credits left, and why nothing was charged, or None."""
    return settled.charged, settled.remaining, settled.reason


def no_charge_reason(rendered: RenderedResponse) -> NoCharge | None:
    """Return why this answer is not charged, or None. Failed takes precedence over stale, and stale over empty."""
    if rendered.nothing:
        return "5xx"
    if rendered.stale:
        return "stale_data"
    return "empty_result" if rendered.no_charge == "empty_result" else None


@contextmanager
def name_storage_failure() -> Iterator[None]:
    """Raise the StorageFailed behind a BillingUnavailable, so that the caller learns that the storage failed."""
    try:
        yield
    except BillingUnavailable as refusal:
        if isinstance(refusal.__cause__, StorageFailed):
            raise refusal.__cause__ from None
        raise


log = logging.getLogger(__name__)

R = TypeVar("R")

HOLD_S = 300.0
SETTLE_S = 5.0
OUR_FAULT = "Something went wrong on our side. Include the request id if you report it."


class PaidCallRunner:
    """Makes paid calls.

    `receipts` may be None in tests. `receipted_charges` charges and signs in one transaction; it is None if the ledger
    and the receipts are not in the same file.
    """

    def __init__(
        self,
        answers: ResponseCache,
        ledger: Ledger,
        metrics: Metrics,
        receipts: Receipts | None,
        receipted_charges: "ReceiptedCharges | None" = None,
        uncharged: UnchargedLimit | None = None,
    ) -> None:
        self._answers, self._ledger, self._metrics = answers, ledger, metrics
        self._receipts, self._charges = receipts, receipted_charges
        self._uncharged = uncharged or UnchargedLimit(monotonic=answers.clock.monotonic)

    async def run(self, call: PaidCall) -> PaidCallResult:
        """Make the call. A call_id that was charged before is not charged again.

        Raises:
            CallRejected: the caller gets no payload, and nothing was charged. Its headers contain
                the receipt that says so, if one could be signed.
            Disconnected: the caller disconnected while the answer was made; nothing was charged.
        """
        operation, key = call.operation, build_cache_key(call.operation, call.arguments)
        if (rendered := self.find_billable(operation, key, self._answers.clock.time())) is not None:
            return await self.charge_cached(call, rendered)
        return await self._sell_watched(call, key)

    async def _sell_watched(self, call: PaidCall, key: Hashable) -> PaidCallResult:
        """Sell an answer, unless the caller disconnects. A sale made just before that is released."""
        sold: list[PaidCallResult] = []

        async def sell() -> PaidCallResult:
            sold.append(await self._sell_admitted(call, key))
            return sold[0]

        try:
            return await run_unless_disconnected(call.receive, sell)
        except anyio.get_cancelled_exc_class():  # also while the watch ends, after all other work is done
            if sold and sold[0].charged:
                await self._release(call)
            raise

    async def _sell_admitted(self, call: PaidCall, key: Hashable) -> PaidCallResult:
        """Sell an answer that is not cached, when the limit on uncharged calls admits another call of the payer."""
        operation = call.operation
        async with self._uncharged.admit(await self._find_payer(call), operation.name) as open_call:
            if (rendered := self.find_billable(operation, key, self._answers.clock.time())) is not None:
                sold = await self.charge_cached(call, rendered)  # it was made while this call waited
            else:
                sold = await self._sell_new(call)
            open_call.charged = sold.charged > 0
            return sold

    async def _find_payer(self, call: PaidCall) -> str:
        """Return the payer that an uncharged call counts for: a token and its allowances are one payer."""
        try:
            return await self._ledger.find_payer(call.token) or call.token
        except PaymentRequired:  # the ledger is unavailable and will refuse the call
            return call.token

    async def _sell_new(self, call: PaidCall) -> PaidCallResult:
        """Sell an answer that is made for this call and for other callers that wait for the same answer."""
        operation = call.operation
        hold = self._ledger.reserve(call.call_id, call.token, operation.credits, endpoint=operation.path, ttl_s=HOLD_S)
        await self._ask_ledger(call, hold)
        rendered = show_answer(call.caller, await self._make_answer(call))
        reason = no_charge_reason(rendered)
        try:
            answer = await self._settle(call, reason)
        except anyio.get_cancelled_exc_class():
            await self._release(call)
            raise
        if rendered.nothing:
            told = "No source of this payload answered. Nothing was charged."
            raise await self._add_receipt(call, UpstreamUnavailable(told, headers={"Retry-After": "15"}), "5xx", answer)
        return await self._deliver(call, rendered, answer, reason)

    def find_billable(self, operation: Operation, key: Hashable, now: float) -> RenderedResponse | None:
        """Return a cached answer that is charged in full and can be charged in one step, or None."""
        rendered = self._answers.find(key, now)
        if rendered is None or no_charge_reason(rendered) or self._answers.needs_refresh(rendered, now):
            return None
        return rendered

    async def sell_at_once(self, call: PaidCall, claim: KeyClaim) -> PaidCallResult | None:
        """Sell a cached answer and keep it for the key in one transaction. Return None if one does not suffice.

        Raises:
            KeyTaken: the key belongs to another call, so nothing was charged.
            CallRejected: nothing was charged.
        """
        key, now = build_cache_key(call.operation, call.arguments), self._answers.clock.time()
        if self._charges is None or (rendered := self.find_billable(call.operation, key, now)) is None:
            return None
        return await self.charge_cached(call, rendered, claim)

    async def charge_cached(
        self, call: PaidCall, rendered: RenderedResponse, claim: KeyClaim | None = None
    ) -> PaidCallResult:
        """Charge for a cached answer, together with its receipt and the claimed key if `receipted_charges` supports it.

        Raises:
            KeyTaken: the key belongs to another call, so nothing was charged.
            CallRejected: nothing was charged.
        """
        operation, price = call.operation, call.operation.credits
        rendered = show_answer(call.caller, rendered)
        if self._charges is None:
            charge = self._ledger.charge(call.call_id, call.token, price, endpoint=operation.path, undelivered=True)
            settled = await self._ask_ledger(call, charge)
            self._metrics.settled(operation.name, price, None)
            return await self._deliver(call, rendered, settled)

        def sale(settled: Settlement) -> Sale:
            body = describe_body(call, rendered, settled)
            return describe_sale(call, settled, settled.reason, body=body, captured_at=rendered.oldest_at)

        def pack(settled: Settlement, receipt: "StoredReceipt") -> KeptResult:
            return split_sale(PaidCallResult(rendered, *show_settled(settled), receipt.id))

        keyed = None if claim is None else KeyedCharge(claim, pack)
        sold = self._charges.charge(call.call_id, call.token, price, endpoint=operation.path, sale=sale, keyed=keyed)
        try:
            settled, receipt = await self._ask_ledger(call, sold)
        except (CallRejected, KeyTaken):
            raise
        except Exception:
            log.exception("no receipt could be made, so the call is not charged", extra=call.log_fields)
            raise InternalError(OUR_FAULT) from None
        self._metrics.settled(operation.name, price, None)
        return self.hand_over(call, PaidCallResult(rendered, *show_settled(settled), *receipt))

    async def _ask_ledger(self, call: PaidCall, asked: Awaitable[R]) -> R:
        """Wait for the ledger. A call that fails because the ledger is unavailable is recorded in the public log.

        Raises:
            PaymentRequired: the ledger refuses the call or cannot be reached.
        """
        try:
            return await asked
        except PaymentRequired as refusal:
            if refusal.code == "billing_unavailable":
                await self._record_uncharged(call, "circuit_breaker")
            raise

    async def _make_answer(self, call: PaidCall) -> RenderedResponse:
        """Return the answer. If it cannot be made, settle the reservation before raising.

        Raises:
            CallRejected: the tool refused the call or failed; nothing was charged.
        """
        try:
            return await self._answers.get(
                call.operation, call.arguments, build_cache_key(call.operation, call.arguments)
            )
        except anyio.get_cancelled_exc_class():
            await self._release(call)
            raise
        except CallRejected:  # the tool itself refuses the call
            await self._settle(call, "rejected")
            raise
        except SchemaFailure:
            log.exception("the answer of a tool does not match its schema", extra=call.log_fields)
            raise await self._fail(call, "schema_failure") from None
        except Exception:
            log.exception("a paid call failed", extra=call.log_fields)
            raise await self._fail(call, "5xx") from None

    async def _fail(self, call: PaidCall, reason: NoCharge) -> CallRejected:
        return await self._add_receipt(call, InternalError(OUR_FAULT), reason, await self._settle(call, reason))

    async def _settle(self, call: PaidCall, reason: str | None) -> Settlement | None:
        """Settle the reservation: charge it, or release it for a `reason`. Return None if the ledger did not answer."""
        settled = None
        try:
            with anyio.move_on_after(SETTLE_S, shield=True):
                settled = await self._ledger.settle(call.call_id, no_charge=reason, undelivered=True)
                self._metrics.settled(call.operation.name, call.operation.credits, settled.reason)
        except PaymentRequired:
            log.warning("the ledger did not confirm the settlement of a call", extra=call.log_fields)
        return settled

    async def _deliver(
        self, call: PaidCall, rendered: RenderedResponse, settled: Settlement | None, reason: str | None = None
    ) -> PaidCallResult:
        """Return the answer with its receipt. If the caller has disconnected, release the charge.

        Raises:
            InternalError: no receipt could be signed; the charge was released.
        """
        try:
            await anyio.lowlevel.checkpoint_if_cancelled()
            return await self._add_receipt_of_sale(call, rendered, settled, reason)
        except anyio.get_cancelled_exc_class():
            await self._release(call)
            raise

    async def _add_receipt_of_sale(
        self, call: PaidCall, rendered: RenderedResponse, settled: Settlement | None, reason: str | None
    ) -> PaidCallResult:
        """Return the answer with its receipt. Raise InternalError or StorageFailed: no receipt, and no charge."""
        remaining = settled.remaining if settled else None
        charged = settled.charged if settled else 0
        reason = reason or (settled.reason if settled else None)
        if self._receipts is None:
            return self.hand_over(call, PaidCallResult(rendered, charged, remaining, reason))
        body = describe_body(call, rendered, settled)
        try:
            receipt_id, receipt = await self._sign(call, settled, reason, body=body, captured_at=rendered.oldest_at)
        except Exception as failure:
            log.exception("no receipt could be made, so the call is not charged", extra=call.log_fields)
            await self._settle(call, "5xx")
            if isinstance(failure, StorageFailed | TimeoutError):
                raise StorageFailed("no receipt could be stored") from None
            raise InternalError(OUR_FAULT) from None
        return self.hand_over(call, PaidCallResult(rendered, charged, remaining, reason, receipt_id, receipt))

    def hand_over(self, call: PaidCall, sold: PaidCallResult) -> PaidCallResult:
        """Return the answer, to be sent now. When it has been sent, the ledger is notified and the charge is final."""
        if sold.charged:
            when_sent(partial(self._ledger.delivered, call.call_id))
        return sold

    async def _add_receipt(
        self, call: PaidCall, rejected: CallRejected, reason: NoCharge, settled: Settlement | None
    ) -> CallRejected:
        """Return the rejection, with a receipt in its headers that says that nothing was charged."""
        if settled is not None:
            rejected.headers["X-Credits-Remaining"] = str(settled.remaining)
        if self._receipts is not None:
            try:
                names = ("X-Service-Receipt-Id", "X-Service-Receipt")
                signed = await self._sign(call, settled, reason, status=rejected.status)
                rejected.headers |= dict(zip(names, signed, strict=True))
            except Exception:
                log.exception("no receipt could be made for a failed call", extra=call.log_fields)
        return rejected

    async def _sign(
        self, call: PaidCall, settled: Settlement | None, reason: str | None, **more: Any
    ) -> tuple[str, str]:
        assert self._receipts is not None
        sale = describe_sale(call, settled, reason, **more)
        with anyio.fail_after(SETTLE_S, shield=True):
            return await self._receipts.sign(sale)

    async def _release(self, call: PaidCall) -> None:
        """Release the reservation or charge of a caller who disconnected."""
        await self._settle(call, "cancelled")
        await self._record_uncharged(call, "cancelled")

    async def _record_uncharged(self, call: PaidCall, reason: NoCharge) -> None:
        """Record in the public log an uncharged call for which no receipt is issued."""
        if self._receipts is None:
            return
        owner, operation = token_hash(call.token).hex(), call.operation
        try:
            with anyio.move_on_after(SETTLE_S, shield=True):
                await self._receipts.unheard(reason, owner, operation.endpoint, operation.credits)
        except Exception:
            log.exception("an uncharged call could not be recorded in the public log", extra=call.log_fields)


KEY_LENGTH = 255


async def sell_once(idempotency: Idempotency, runner: PaidCallRunner, call: PaidCall, key: str) -> PaidCallResult:
    """Make the call unless the same token has already made one with the same key. The call_id is chosen here.

    Raises:
        InvalidArguments: the key is too long, or empty.
        IdempotencyConflict: the key was used for another call.
        CallRejected: nothing was charged.
        StorageFailed: the key cannot be stored, so nothing was done.
    """
    if not 1 <= len(key) <= KEY_LENGTH:
        raise InvalidArguments(f"An Idempotency-Key must have 1 to {KEY_LENGTH} characters.", errors=[])
    request = fingerprint(f"{call.operation.name} {call.arguments.model_dump_json()}")
    return await idempotency.once(
        fingerprint(call.token),
        key,
        request,
        partial(_sell, runner, call),
        pack=split_sale,
        unpack=partial(_send_again, runner, call),
        at_once=partial(_sell_at_once, runner, call),
    )


def _send_again(runner: PaidCallRunner, call: PaidCall, call_id: str, kept: bytes) -> PaidCallResult:
    """Return the result kept for the key. It is sent now if another instance sold it and died before sending it."""
    return runner.hand_over(call._replace(call_id=call_id), unpack_sale(kept))


async def _sell(runner: PaidCallRunner, call: PaidCall, call_id: str) -> PaidCallResult:
    return await runner.run(call._replace(call_id=call_id))


async def _sell_at_once(runner: PaidCallRunner, call: PaidCall, call_id: str, claim: KeyClaim) -> PaidCallResult | None:
    return await runner.sell_at_once(call._replace(call_id=call_id), claim)
