"""Runs one paid call: reserves credits, makes the answer, settles the reservation and signs a receipt.

Every failure ends as "not charged". The reservation is settled even if the caller disconnects. A caller who disconnects
after the charge, or for whom no receipt could be made, gets the credits back.
"""

import logging
from collections.abc import Awaitable, Hashable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.lowlevel

from toolserver.calls.cache_key import build_cache_key
from toolserver.calls.delivery import when_sent
from toolserver.calls.disconnect import run_unless_disconnected
from toolserver.calls.kept_results import KeptResult, KeyClaim, KeyedCharge, KeyTaken
from toolserver.calls.response import RenderedResponse
from toolserver.calls.response_cache import ResponseCache, SchemaFailure
from toolserver.calls.sale import (
    PaidCall,
    PaidCallResult,
    describe_body,
    describe_sale,
    no_charge_reason,
    show_answer,
    show_settled,
    split_sale,
)
from toolserver.calls.uncharged_limit import UnchargedLimit
from toolserver.core.caller import token_hash
from toolserver.core.metrics import Metrics
from toolserver.errors import CallRejected, InternalError, PaymentRequired, UpstreamUnavailable
from toolserver.money.ledger.protocol import Ledger, NoCharge, Settlement
from toolserver.money.receipts.sign import Receipts, Sale
from toolserver.registry.registry import Operation
from toolserver.sql.errors import StorageFailed

if TYPE_CHECKING:
    from toolserver.calls.charge_with_receipt import ReceiptedCharges
    from toolserver.money.receipts.issue import StoredReceipt

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
