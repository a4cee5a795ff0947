"""Selling one answer for one signed payment: no token, no credits.

    read the payment → verify → answer → settle → receipt

The money is moved last, and only for an answer that is owed: not for one that failed, is stale or holds nothing. Who
sends the same payment again gets the same bytes again; it buys nothing else.
"""

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

import anyio
from pydantic import BaseModel

from toolserver.access import Caller, token_hash
from toolserver.answers import Answers, SchemaFailure, key_of
from toolserver.billing.ledger import NoCharge
from toolserver.billing.receipts import Body, Receipts, Sale, request_text
from toolserver.errors import CallRejected, InternalError, PaymentRequired, UpstreamUnavailable
from toolserver.idempotency import Idempotency, fingerprint
from toolserver.metrics import Metrics
from toolserver.payments.units import NETWORK
from toolserver.payments.x402 import wire
from toolserver.payments.x402.offers import PRICE, Offer
from toolserver.payments.x402.settling import USED, Settling, refused
from toolserver.payments.x402.wire import Payment
from toolserver.registry import Operation
from toolserver.rendering import Rendered
from toolserver.till import OUR_FAULT, SETTLE_S, Sold, no_charge, packed, unpacked

log = logging.getLogger(__name__)

SCOPE = "x402"
ANSWER_AGAIN_S = 3600  # how long an answer that was paid for and never kept is made again
_SIGNED = ("X-Service-Receipt-Id", "X-Service-Receipt")


class Bought(NamedTuple):
    """A sale, and what PAYMENT-RESPONSE says of it; None when nothing was taken."""

    sold: Sold
    settlement: dict[str, Any] | None


class _Call(NamedTuple):
    """One call with its payment."""

    call_id: str
    operation: Operation
    arguments: BaseModel
    given: Mapping[str, Any]
    caller: Caller
    payment: Payment
    offer: Offer
    request: str


class _NotOwed(Exception):
    """An answer that is given and not paid for: not to be kept as what the payment bought."""

    def __init__(self, sold: Sold) -> None:
        self.sold = sold


class Exact:
    """Sells premium answers by the call. `receipts` may be absent in tests."""

    def __init__(
        self,
        settling: Settling,
        *,
        answers: Answers,
        idempotency: Idempotency,
        metrics: Metrics,
        receipts: Receipts | None,
    ) -> None:
        self._settling, self._answers, self._idempotency = settling, answers, idempotency
        self._metrics, self._receipts = metrics, receipts

    def offer(self, operation: Operation) -> Offer:
        """What a call costs."""
        terms = self._settling.terms
        return Offer(terms.requirement(operation.credits * PRICE), terms.resource(operation.path, operation.title))

    def offered(self, operation: Operation, rejected: PaymentRequired) -> None:
        """Every refusal for want of payment says how to pay, unless it says so already."""
        if operation.credits and wire.REQUIRED not in rejected.headers:
            rejected.headers[wire.REQUIRED] = wire.header(self.offer(operation).required(rejected.code))

    async def sell(
        self, operation: Operation, arguments: BaseModel, given: Mapping[str, Any], caller: Caller
    ) -> Bought:
        """Make a call that comes with a payment.

        Raises:
            CallRejected: the caller gets no payload. Unless it is SettlementPending, nothing was taken.
        """
        offer = self.offer(operation)
        payment = self._settling.read(caller.payment or "", offer)
        request = fingerprint(f"{operation.name} {arguments.model_dump_json()}")

        async def work(call_id: str) -> Bought:
            call = _Call(call_id, operation, arguments, given, caller, payment, offer, request)
            found: Bought = await self._settling.alone(payment, lambda: self._sell(call))
            return found

        try:
            return await self._idempotency.once(
                SCOPE, payment.id.hex(), request, work, pack=_packed, unpack=_unpacked(payment)
            )
        except _NotOwed as free:
            return Bought(free.sold, None)

    async def told(self, text: str | None) -> dict[str, Any] | None:
        """What became of a payment that was sent along; None when it was not made, or is none."""
        try:
            payment = wire.read(text or "")
        except wire.Malformed:
            return None
        kept = await self._settling.kept(payment)
        return None if kept is None or kept.state != "settled" else _settlement(payment, kept.tx_hash)

    async def _sell(self, call: _Call) -> Bought:
        if not await self._paid_before(call):
            await self._settling.verify(call.payment, call.offer)
        rendered = await self._made(call)
        reason = no_charge(rendered)
        if rendered.nothing:
            told = "No source of this payload answered. The payment was not made."
            raise await self._refused(call, UpstreamUnavailable(told, headers={"Retry-After": "15"}), "5xx")
        if reason is not None:
            raise _NotOwed(await self._sold(call, rendered, reason))
        tx = await self._settling.settle(call.payment, call.offer, call.request)
        sold = await self._sold(call, rendered, None)
        return Bought(sold, _settlement(call.payment, tx))

    async def _paid_before(self, call: _Call) -> bool:
        """Whether this call was paid for, and its answer lost. Raises PaymentRequired when the payment is spent."""
        kept = await self._settling.kept(call.payment)
        if kept is None:
            return False
        lately = kept.settled_at is None or self._settling.clock.time() * 1000 - kept.settled_at < ANSWER_AGAIN_S * 1000
        if kept.request != call.request or not lately:
            raise refused(call.payment, call.offer, USED)
        return True

    async def _made(self, call: _Call) -> Rendered:
        """The answer. Raises CallRejected."""
        operation = call.operation
        try:
            return await self._answers.get(operation, call.arguments, key_of(operation, call.arguments))
        except CallRejected:
            raise
        except SchemaFailure:
            log.exception("a tool broke its schema", extra=_who(call))
            raise await self._refused(call, InternalError(OUR_FAULT), "schema_failure") from None
        except Exception:
            log.exception("a call that came with a payment failed", extra=_who(call))
            raise await self._refused(call, InternalError(OUR_FAULT), "5xx") from None

    async def _sold(self, call: _Call, rendered: Rendered, reason: str | None) -> Sold:
        """The answer with its receipt. Once it is paid for, it is given with or without one."""
        charged = call.operation.credits if reason is None else 0
        self._metrics.settled(call.operation.name, call.operation.credits, reason)
        body = Body(rendered.sha256().hex(), rendered.size())
        try:
            signed = await self._signed(call, reason, charged=charged, body=body, captured_at=rendered.oldest_at)
        except Exception:
            log.exception("no receipt could be made", extra=_who(call))
            signed = None
        return Sold(rendered, charged, None, reason, *(signed or (None, None)))

    async def _refused(self, call: _Call, rejected: CallRejected, reason: NoCharge) -> CallRejected:
        """The refusal with a receipt that says that nothing was taken."""
        self._metrics.settled(call.operation.name, call.operation.credits, reason)
        try:
            signed = await self._signed(call, reason, charged=0, status=rejected.status)
        except Exception:
            log.exception("no receipt could be made of a call that failed", extra=_who(call))
            signed = None
        rejected.headers |= dict(zip(_SIGNED, signed, strict=True)) if signed else {}
        return rejected

    async def _signed(self, call: _Call, reason: str | None, *, charged: int, **more: Any) -> tuple[str, str] | None:
        if self._receipts is None:
            return None
        operation = call.operation
        sale = Sale(
            call.call_id,
            owner_of(call.payment),
            operation.endpoint,
            request_text(operation.method, operation.path, call.given),
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


def owner_of(payment: Payment) -> str:
    """Whose receipt it is: the payer's address on its chain, in the place of a token's hash."""
    return token_hash(f"{NETWORK}:{payment.shown_payer}").hex()


def _settlement(payment: Payment, tx: bytes | None) -> dict[str, Any]:
    return wire.settlement(payment.shown_payer, NETWORK, tx=tx)


def _packed(bought: Bought) -> bytes:
    """A sale as bytes; the transaction before it."""
    return str((bought.settlement or {}).get("transaction", "")).encode() + b"\n" + packed(bought.sold)


def _unpacked(payment: Payment) -> Any:
    def unpack(kept: bytes) -> Bought:
        tx, _, sold = kept.partition(b"\n")
        return Bought(unpacked(sold), _settlement(payment, wire.tx_hash(tx.decode())))

    return unpack


def _who(call: _Call) -> dict[str, str]:
    return {"tool": call.operation.name, "request_id": call.caller.request_id, "call_id": call.call_id}
