"""Sells one answer for one signed payment, without token and credits.

    read the payment → verify → answer → settle → receipt

The money is moved last, and only for an answer that has its price: not for one that failed,
is stale or is empty. The stored record of a payment is looked up before the payment is
judged. A payment that was made and is sent again gets the same bytes for a while. After that
it is refused without an offer, because a client that accepts an offer pays twice.
"""

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import anyio
from pydantic import BaseModel

from toolserver.calls.arguments import build_cache_key
from toolserver.calls.idempotency import Idempotency, KeptResult, fingerprint
from toolserver.calls.paid_call import (
    OUR_FAULT,
    SETTLE_S,
    PaidCallResult,
    PaymentSale,
    describe_body,
    show_answer,
    split_sale,
    unpack_sale,
)
from toolserver.calls.rate_limit import UnchargedLimit
from toolserver.calls.response import RenderedResponse, find_no_charge_reason
from toolserver.calls.response_cache import ResponseCache, SchemaFailure
from toolserver.core.caller import Caller, token_hash
from toolserver.core.metrics import Metrics
from toolserver.errors import (
    CallRejected,
    IdempotencyConflict,
    InternalError,
    PaymentRequired,
    PaymentUsed,
    UpstreamUnavailable,
)
from toolserver.money.ledger.protocol import NoCharge
from toolserver.money.purchases.listing import show_time
from toolserver.money.purchases.units import NETWORK
from toolserver.money.receipts.service import ReceiptService
from toolserver.money.receipts.sign import Sale, request_text
from toolserver.money.x402 import wire
from toolserver.money.x402.offers import Offer, offer_call
from toolserver.money.x402.records import StoredPayment, describe_request, hash_key, is_same_key
from toolserver.money.x402.settlement import SettlementService
from toolserver.money.x402.wire import Payment
from toolserver.registry.registry import Operation

log = logging.getLogger(__name__)

SCOPE = "x402"
AGAIN_S = 600  # how many seconds after its settlement a payment is answered again
AGAIN_WITH_KEY_S = 86_400  # the same, with the Idempotency-Key of the first request
BY_X402 = "premium tools by x402"  # all of them together, in the limit of uncharged calls of an address
_SIGNED = ("X-Service-Receipt-Id", "X-Service-Receipt")


class _CalledOperation(NamedTuple):
    """A call with its payment."""

    call_id: str
    operation: Operation
    arguments: BaseModel
    sent: Mapping[str, Any]
    caller: Caller
    payment: Payment
    offer: Offer
    request: str


class _NotOwed(Exception):
    """A stale or empty answer to a payment that was made before. The caller gets it, and is still owed a better one."""

    def __init__(self, sold: PaidCallResult) -> None:
        self.sold = sold


class ExactScheme:
    """Sells premium answers by the call. `receipts` may be None in tests."""

    def __init__(
        self,
        settling: SettlementService,
        *,
        answers: ResponseCache,
        idempotency: Idempotency,
        metrics: Metrics,
        receipts: ReceiptService | None,
        uncharged: UnchargedLimit,
    ) -> None:
        self._settling, self._answers, self._idempotency = settling, answers, idempotency
        self._metrics, self._receipts, self._uncharged = metrics, receipts, uncharged

    def offer(self, operation: Operation) -> Offer:
        """Return the offer for a call."""
        return offer_call(self._settling.terms, operation)

    def add_offer(self, operation: Operation, rejected: PaymentRequired) -> None:
        """Add an offer to a refusal of a paid operation, unless it has one already."""
        if operation.credits and wire.REQUIRED not in rejected.headers:
            rejected.headers[wire.REQUIRED] = wire.header(self.offer(operation).required(rejected.code))

    async def sell(
        self, operation: Operation, arguments: BaseModel, sent: Mapping[str, Any], caller: Caller
    ) -> PaymentSale:
        """Make a call that comes with a payment.

        Raises:
            CallRejected: the caller gets no payload. Unless it is SettlementPending or PaymentUsed, no new payment was
                made.
        """
        offer, payment = self.offer(operation), self._settling.read(caller.payment or "")
        request = name_request(operation, arguments)
        stored = await self._settling.find_stored(payment)
        if stored is None:
            await self._settling.check_fit(payment, offer)
        else:
            self._check_known(stored, request, caller.idempotency_key)

        async def work(call_id: str) -> PaymentSale:
            call = _CalledOperation(call_id, operation, arguments, sent, caller, payment, offer, request)
            sale: PaymentSale = await self._settling.alone(payment, lambda: self._sell(call))
            return sale

        try:
            keyed = await self._idempotency.once(
                SCOPE, payment.id.hex(), request, work, pack=_packed, unpack=_unpacked(payment)
            )
            sale: PaymentSale = keyed.result
            if sale.settlement is not None and (stored is None or stored.answered_at is None):
                await self._settling.record_answered(payment)
            return sale
        except _NotOwed as free:
            return PaymentSale(free.sold, None)
        except IdempotencyConflict:
            detail = "This payment was already sent with another call. It pays for nothing else."
            raise IdempotencyConflict(detail) from None

    async def find_settlement(self, text: str | None) -> dict[str, Any] | None:
        """Return the settlement of the payment in `text`, or None if it was not settled or cannot be read."""
        try:
            payment = wire.read_payment(text or "")
        except wire.Malformed:
            return None
        stored = await self._settling.find_stored(payment)
        return None if stored is None or stored.state != "settled" else _settlement(payment, stored.tx_hash)

    def _check_known(self, stored: StoredPayment, request: str, key: str | None) -> None:
        """Check that a stored payment may be answered again. Raises IdempotencyConflict, PaymentUsed."""
        used_for = f"This payment was used for {describe_request(stored.request)}"
        if not _is_same_request(stored.request, request):
            raise IdempotencyConflict(f"{used_for}. It pays for nothing else.")
        if stored.settled_at is None:
            return
        again_s = AGAIN_WITH_KEY_S if is_same_key(stored.claim, key) else AGAIN_S
        if self._settling.clock.time() * 1000 >= stored.settled_at + again_s * 1000:
            at = show_time(stored.settled_at)
            raise PaymentUsed(f"{used_for} at {at}, and it is not answered again. No second payment was taken.")

    async def _sell(self, call: _CalledOperation) -> PaymentSale:
        if await self._settling.find_stored(call.payment) is not None:
            return await self._answer_paid(call)
        await self._settling.verify(call.payment, call.offer)
        rendered = await self._made(call)
        reason = find_no_charge_reason(rendered)
        if rendered.nothing:
            detail = "No source of this payload answered. The payment was not made."
            raise await self._refused(call, UpstreamUnavailable(detail, headers={"Retry-After": "15"}), "5xx")
        if reason is not None:  # this answer is kept too: one authorisation gets one answer
            await self._count_uncharged(call)
            return PaymentSale(await self._sold(call, rendered, reason), None)
        tx = await self._settle(call)
        return PaymentSale(await self._sold(call, rendered, None), _settlement(call.payment, tx))

    async def _answer_paid(self, call: _CalledOperation) -> PaymentSale:
        """Answer a payment that was handed on before and whose answer is not stored, once it is known to be made."""
        tx = await self._settle(call)
        rendered = await self._made(call)
        reason = find_no_charge_reason(rendered)
        if rendered.nothing:
            detail = "No source of this payload answered. The payment was made. Send it again for the answer."
            raise UpstreamUnavailable(detail, headers={"Retry-After": "15"})
        if reason is not None:
            await self._count_uncharged(call)
            raise _NotOwed(await self._sold(call, rendered, reason))
        return PaymentSale(await self._sold(call, rendered, None), _settlement(call.payment, tx))

    async def _settle(self, call: _CalledOperation) -> bytes:
        """Have the payment made, and return the transaction's hash. Raises the same as SettlementService.settle."""
        claim = hash_key(call.caller.idempotency_key)
        return await self._settling.settle(call.payment, call.offer, call.request, claim)

    async def _made(self, call: _CalledOperation) -> RenderedResponse:
        """Run the tool and return its answer. Raises CallRejected."""
        operation = call.operation
        try:
            key = build_cache_key(operation, call.arguments)
            return show_answer(call.caller, await self._answers.get(operation, call.arguments, key))
        except CallRejected:
            raise
        except SchemaFailure:
            log.exception("a tool broke its schema", extra=_who(call))
            raise await self._refused(call, InternalError(OUR_FAULT), "schema_failure") from None
        except Exception:
            log.exception("a call that came with a payment failed", extra=_who(call))
            raise await self._refused(call, InternalError(OUR_FAULT), "5xx") from None

    async def _count_uncharged(self, call: _CalledOperation) -> None:
        """Count a call that is not charged. Raises RateLimited after too many; then the caller gets no answer."""
        await self._uncharged.count(f"x402 {call.payment.shown_payer}", call.operation.name)
        if call.caller.limited:  # signing another authorisation is free, and another account costs little
            await self._uncharged.count(call.caller.client, BY_X402)

    async def _sold(self, call: _CalledOperation, rendered: RenderedResponse, reason: str | None) -> PaidCallResult:
        """Return the answer with its receipt, or without one if no receipt can be made: it may be paid for already."""
        charged = call.operation.credits if reason is None else 0
        self._metrics.settled(call.operation.name, call.operation.credits, reason)
        body = partial(describe_body, call.caller, rendered, charged, None)
        try:
            signed = await self._signed(call, reason, charged=charged, body=body, captured_at=rendered.oldest_at)
        except Exception:
            log.exception("no receipt could be made", extra=_who(call))
            signed = None
        return PaidCallResult(rendered, charged, None, reason, *(signed or (None, None)))

    async def _refused(self, call: _CalledOperation, rejected: CallRejected, reason: NoCharge) -> CallRejected:
        """Return the refusal, with a receipt that says that nothing was charged. Raises
        RateLimited if there were too many uncharged calls.
        """
        await self._count_uncharged(call)
        self._metrics.settled(call.operation.name, call.operation.credits, reason)
        try:
            signed = await self._signed(call, reason, charged=0, status=rejected.status)
        except Exception:
            log.exception("no receipt could be made of a call that failed", extra=_who(call))
            signed = None
        rejected.headers |= dict(zip(_SIGNED, signed, strict=True)) if signed else {}
        return rejected

    async def _signed(
        self, call: _CalledOperation, reason: str | None, *, charged: int, **more: Any
    ) -> tuple[str, str] | None:
        if self._receipts is None:
            return None
        operation = call.operation
        sale = Sale(
            call.call_id,
            owner_of(call.payment),
            operation.endpoint,
            request_text(operation.method, operation.path, call.sent),
            operation.credits,
            charged,
            None,
            operation.method,
            reason,
            sla_s=operation.ttl(call.arguments) if operation.sla_s is None else operation.sla_s,
            nonce=call.caller.nonce,
            **more,
        )
        with anyio.fail_after(SETTLE_S, shield=True):
            return await self._receipts.sign(sale)


def name_request(operation: Operation, arguments: BaseModel) -> str:
    """Return the stored name of what a payment pays for: method, path, and a hash of tool name and arguments."""
    hashed = fingerprint(f"{operation.name} {arguments.model_dump_json()}")
    return f"{operation.method} {operation.path} {hashed}"


def _is_same_request(stored: str, request: str) -> bool:
    """Return True if a payment was made for exactly this call. Older rows have the hash alone."""
    return stored.rpartition(" ")[2] == request.rpartition(" ")[2]


def owner_of(payment: Payment) -> str:
    """Return the owner of a receipt: a hash of the payer's address on its chain, in place of a token's hash."""
    return token_hash(f"{NETWORK}:{payment.shown_payer}").hex()


def _settlement(payment: Payment, tx: bytes | None) -> dict[str, Any]:
    return wire.settlement(payment.shown_payer, NETWORK, tx=tx)


def _packed(bought: PaymentSale) -> KeptResult:
    """Return a sale in the form that is stored, preceded by the hash of its transaction."""
    tx, sold = str((bought.settlement or {}).get("transaction", "")).encode(), split_sale(bought.sold)
    return sold._replace(own=tx + b"\n" + sold.own)


def _unpacked(payment: Payment) -> Any:
    def unpack(_call_id: str, packed: bytes) -> PaymentSale:
        shown, _, sold = packed.partition(b"\n")
        tx = wire.tx_hash(shown.decode())
        return PaymentSale(unpack_sale(sold), None if tx is None else _settlement(payment, tx))

    return unpack


def _who(call: _CalledOperation) -> dict[str, str]:
    return {"tool": call.operation.name, "request_id": call.caller.request_id, "call_id": call.call_id}
