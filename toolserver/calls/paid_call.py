"""Sells the answer of one paid call to the owner of a token, with or without an Idempotency-Key.

    cached, billed in full    charge + receipt (+ key and kept result) in one transaction
    otherwise                 reserve -> compose -> settle (charge, or release with a reason) -> receipt

Every failure ends as "not charged". The reservation is settled even if the caller
disconnects. A caller who disconnects after the charge, or for whom no receipt could be made,
gets the credits back. `toolserver.calls.pipeline` describes the states of a sale.
"""

import logging
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import anyio
import anyio.lowlevel
import msgspec
from pydantic import BaseModel

from toolserver.calls.arguments import Call
from toolserver.calls.idempotency import (
    Idempotency,
    KeptResult,
    KeyClaim,
    Keyed,
    KeyedCharge,
    KeyTaken,
    SharedBytes,
    check_key,
    fingerprint,
)
from toolserver.calls.rate_limit import UnchargedLimit
from toolserver.calls.response import (
    ChargeNote,
    RenderedResponse,
    find_no_charge_reason,
    pack_rendered,
    run_unless_disconnected,
    unpack_rendered,
    when_sent,
)
from toolserver.calls.response_cache import ResponseCache, SchemaFailure
from toolserver.core.caller import Caller, new_call_id, token_hash
from toolserver.core.metrics import Metrics
from toolserver.core.waiting_room import WaitingRoom, WaitLimits, WaitRefused
from toolserver.errors import (
    BillingUnavailable,
    CallRejected,
    InternalError,
    PaymentRequired,
    UpstreamUnavailable,
)
from toolserver.money.ledger.protocol import Ledger, NoCharge, Settlement, UnknownCall
from toolserver.money.receipts.service import ReceiptService
from toolserver.money.receipts.sign import Body, Sale, request_text
from toolserver.registry.registry import Operation
from toolserver.sql.errors import StorageFailed

if TYPE_CHECKING:
    from toolserver.calls.charge_store import ReceiptedCharges
    from toolserver.money.receipts.sign import StoredReceipt

log = logging.getLogger(__name__)

R = TypeVar("R")

HOLD_S = 300.0
LEDGER_WAITS = WaitLimits(most=1024, share=256, crowd_share=512, longest_s=15.0)
SETTLE_S = 5.0
OUR_FAULT = "Something went wrong on our side. Include the request id if you report it."
_WITH_NOTE = ("mcp", "stdio")  # the transports on which an answer says what the call cost, and the receipt covers it


@dataclass(slots=True)
class PaidCall:
    """A call, the token that pays for it, and the id under which the ledger charges for it once."""

    call: Call
    token: str
    call_id: str

    @property
    def operation(self) -> Operation:
        return self.call.operation

    @property
    def log_fields(self) -> dict[str, str]:
        """The fields that identify the call in the log."""
        return {"tool": self.operation.name, "request_id": self.call.caller.request_id, "call_id": self.call_id}


@dataclass(frozen=True, slots=True)
class PaidCallResult:
    """The answer to a paid call, the credits charged and left, and the receipt.

    `reason` says why nothing was charged. `remaining` is None if the ledger did not answer.
    `alerts` names the thresholds of the token's owner that are crossed; an answer that is
    repeated has none.
    """

    rendered: RenderedResponse
    charged: int
    remaining: int | None
    reason: str | None = None
    receipt_id: str | None = None
    receipt: str | None = None
    alerts: tuple[str, ...] = ()

    @property
    def note(self) -> ChargeNote | None:
        """What the answer says of the call on transports without headers; None if nobody's credits are concerned."""
        if not self.charged and self.remaining is None and self.receipt_id is None:
            return None
        return ChargeNote(self.charged, self.remaining, self.receipt_id)


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
        self, operation: Operation, arguments: BaseModel, sent: Mapping[str, Any], caller: Caller
    ) -> PaymentSale:
        """Answer a call that comes with a payment. Raise CallRejected."""
        ...

    async def find_settlement(self, text: str | None) -> dict[str, Any] | None:
        """Return how a payment sent with the call was settled, or None if it was not settled or cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class CallMoney:
    """What sells calls: the ledger, the keys of repeated calls, the receipts, and payments that come with calls.

    `receipts` is None if no receipts are signed, `x402` if x402 payments are off.
    `receipted_charges` charges and signs in one transaction; it is None if the ledger and the
    receipts are not in the same file.
    """

    ledger: Ledger
    idempotency: Idempotency
    receipts: ReceiptService | None = None
    receipted_charges: "ReceiptedCharges | None" = None
    x402: CallPayments | None = None


class PaidCallRunner:
    """Sells answers for the credits of a token."""

    def __init__(self, answers: ResponseCache, money: CallMoney, metrics: Metrics, uncharged: UnchargedLimit) -> None:
        self._answers, self._metrics, self._uncharged = answers, metrics, uncharged
        self._ledger, self._idempotency = money.ledger, money.idempotency
        self._receipts, self.charges = money.receipts, money.receipted_charges
        self._room = WaitingRoom("ledger", LEDGER_WAITS)
        metrics.follow_waits(self._room.count)

    async def sell(self, call: Call, token: str, rendered: RenderedResponse | None = None) -> Keyed[PaidCallResult]:
        """Sell the answer to a call, or the one that was sold before for its Idempotency-Key.

        `rendered` is the cached answer, if a look at the cache has found one that may be sold.

        Raises:
            InvalidArguments: the key is too long, or empty.
            IdempotencyConflict: the key was used for another call.
            CallRejected: the caller gets no payload, and nothing was charged. Its headers contain
                the receipt that says so, if one could be signed.
            StorageFailed: the key cannot be stored, so nothing was done.
            Disconnected: the caller disconnected while the answer was made; nothing was charged.
        """
        key = call.caller.idempotency_key
        if key is None:
            return Keyed(await self.run(PaidCall(call, token, new_call_id()), rendered), is_repeated=False)

        async def work(call_id: str) -> PaidCallResult:
            return await self.run(PaidCall(call, token, call_id))

        async def work_at_once(call_id: str, claim: KeyClaim) -> PaidCallResult | None:
            return await self._sell_at_once(PaidCall(call, token, call_id), claim)

        def send_again(call_id: str, stored: bytes) -> PaidCallResult:
            """Send the kept result now, in case another instance sold it and died before it was sent."""
            return self._hand_over(PaidCall(call, token, call_id), unpack_sale(stored))

        return await self._idempotency.once(
            fingerprint(token),
            check_key(key),
            fingerprint(f"{call.operation.name} {call.arguments.model_dump_json()}"),
            work,
            pack=split_sale,
            unpack=send_again,
            at_once=None if self.charges is None else work_at_once,
        )

    async def run(self, paid: PaidCall, rendered: RenderedResponse | None = None) -> PaidCallResult:
        """Sell a cached answer in one step if there is one, otherwise a new one. A call_id is charged for once."""
        rendered = rendered or self._peek(paid.call)
        return await (self._sell_watched(paid) if rendered is None else self._charge_cached(paid, rendered))

    async def _sell_at_once(self, paid: PaidCall, claim: KeyClaim) -> PaidCallResult | None:
        """Sell a cached answer and keep it for the key in one transaction. Return None if there is none.

        Raises:
            KeyTaken: the key belongs to another call, so nothing was charged.
        """
        rendered = self._peek(paid.call)
        return None if rendered is None else await self._charge_cached(paid, rendered, claim)

    def _peek(self, call: Call) -> RenderedResponse | None:
        return self._answers.peek(call.operation, call.key, self._answers.clock.time())

    async def _sell_watched(self, paid: PaidCall) -> PaidCallResult:
        """Sell an answer, unless the caller disconnects. A sale made just before that is released."""
        results: list[PaidCallResult] = []

        async def sell() -> PaidCallResult:
            results.append(await self._sell_admitted(paid))
            return results[0]

        try:
            return await run_unless_disconnected(paid.call.receive, sell)
        except anyio.get_cancelled_exc_class():  # also while the watch ends, after all other work is done
            if results and results[0].charged:
                await self._release(paid)
            raise

    async def _sell_admitted(self, paid: PaidCall) -> PaidCallResult:
        """Sell an answer that is not cached, when the limit on uncharged calls admits another call of the payer."""
        async with self._uncharged.admit(await self._find_payer(paid.token), paid.operation.name) as open_call:
            if (rendered := self._peek(paid.call)) is not None:  # it was made while this call waited
                result = await self._charge_cached(paid, rendered)
            else:
                result = await self._sell_new(paid)
            open_call.charged = result.charged > 0
            return result

    async def _find_payer(self, token: str) -> str:
        """Return the payer that an uncharged call counts for: a token and its allowances are one payer."""
        try:
            return await self._ledger.find_payer(token) or token
        except PaymentRequired:  # the ledger is unavailable and will refuse the call
            return token

    async def _sell_new(self, paid: PaidCall) -> PaidCallResult:
        """Sell an answer that is made for this call and for other callers that wait for the same answer."""
        operation = paid.operation
        hold = self._ledger.reserve(
            paid.call_id,
            paid.token,
            operation.credits,
            endpoint=operation.path,
            ttl_s=HOLD_S,
            undelivered=True,
        )
        await self._ask_ledger(paid, hold)
        rendered = show_answer(paid.call.caller, await self._make_answer(paid))
        reason = find_no_charge_reason(rendered)
        try:
            settled = await self._settle(paid, reason)
        except anyio.get_cancelled_exc_class():
            await self._release(paid)
            raise
        if rendered.nothing:
            detail = "No source of this payload answered. Nothing was charged."
            refusal = UpstreamUnavailable(detail, headers={"Retry-After": "15"})
            raise await self._add_receipt(paid, refusal, "5xx", settled)
        return await self._deliver(paid, rendered, settled, reason)

    async def _charge_cached(
        self, paid: PaidCall, rendered: RenderedResponse, claim: KeyClaim | None = None
    ) -> PaidCallResult:
        """Charge for a cached answer, together with its receipt and the claimed key if `receipted_charges` supports it.

        Raises:
            KeyTaken: the key belongs to another call, so nothing was charged.
            CallRejected: nothing was charged.
        """
        operation, price = paid.operation, paid.operation.credits
        rendered = show_answer(paid.call.caller, rendered)
        if self.charges is None:
            charge = self._ledger.charge(paid.call_id, paid.token, price, endpoint=operation.path, undelivered=True)
            settled = await self._ask_ledger(paid, charge)
            self._metrics.settled(operation.name, price, None)
            return await self._deliver(paid, rendered, settled)

        def describe(settled: Settlement) -> Sale:
            body = partial(describe_body, paid.call.caller, rendered, settled.charged, settled.remaining)
            return describe_sale(paid, settled, settled.reason, body=body, captured_at=rendered.oldest_at)

        def pack(settled: Settlement, receipt: "StoredReceipt") -> KeptResult:
            result = PaidCallResult(rendered, settled.charged, settled.remaining, settled.reason, receipt.id)
            return split_sale(result)

        charge_with_receipt = self.charges.charge(
            paid.call_id,
            paid.token,
            price,
            endpoint=operation.path,
            sale=describe,
            keyed=None if claim is None else KeyedCharge(claim, pack),
        )
        try:
            settled, receipt = await self._ask_ledger(paid, charge_with_receipt)
        except (CallRejected, KeyTaken):
            raise
        except Exception:
            log.exception("no receipt could be made, so the call is not charged", extra=paid.log_fields)
            raise InternalError(OUR_FAULT) from None
        self._metrics.settled(operation.name, price, None)
        result = PaidCallResult(
            rendered, settled.charged, settled.remaining, settled.reason, receipt.id, receipt.jws, settled.alerts
        )
        return self._hand_over(paid, result)

    async def _ask_ledger(self, paid: PaidCall, request: Coroutine[Any, Any, R]) -> R:
        """Wait for the ledger. A call that fails because the ledger is unavailable is recorded in the public log.

        Raises:
            PaymentRequired: the ledger refuses the call or cannot be reached.
        """
        try:
            async with self._room.wait(paid.call.caller.waits_as):
                return await request
        except WaitRefused:
            request.close()  # it may not have been begun
            await self._record_uncharged(paid, "circuit_breaker")
            raise BillingUnavailable(
                "Too many paid calls wait for the ledger. Nothing was charged.", headers={"Retry-After": "2"}
            ) from None
        except PaymentRequired as refusal:
            if refusal.code == "billing_unavailable":
                await self._record_uncharged(paid, "circuit_breaker")
            raise

    async def _make_answer(self, paid: PaidCall) -> RenderedResponse:
        """Return the answer. If it cannot be made, settle the reservation before raising.

        Raises:
            CallRejected: the tool refused the call or failed; nothing was charged.
        """
        call = paid.call
        try:
            return await self._answers.get(call.operation, call.arguments, call.key)
        except anyio.get_cancelled_exc_class():
            await self._release(paid)
            raise
        except CallRejected:  # the tool itself refuses the call
            await self._settle(paid, "rejected")
            raise
        except SchemaFailure:
            log.exception("the answer of a tool does not match its schema", extra=paid.log_fields)
            raise await self._fail(paid, "schema_failure") from None
        except Exception:
            log.exception("a paid call failed", extra=paid.log_fields)
            raise await self._fail(paid, "5xx") from None

    async def _fail(self, paid: PaidCall, reason: NoCharge) -> CallRejected:
        return await self._add_receipt(paid, InternalError(OUR_FAULT), reason, await self._settle(paid, reason))

    async def _settle(self, paid: PaidCall, reason: str | None) -> Settlement | None:
        """Settle the reservation: charge it, or release it for a `reason`. Return None if the ledger did not answer."""
        settled = None
        try:
            with anyio.move_on_after(SETTLE_S, shield=True):
                settled = await self._ledger.settle(paid.call_id, no_charge=reason, undelivered=True)
                self._metrics.settled(paid.operation.name, paid.operation.credits, settled.reason)
        except PaymentRequired:
            log.warning("the ledger did not confirm the settlement of a call", extra=paid.log_fields)
        except UnknownCall:
            log.warning("the ledger does not know the reservation of a call", extra=paid.log_fields)
            if reason is None:  # nothing is held, so the answer would be given away
                await self._record_uncharged(paid, "circuit_breaker")
                raise BillingUnavailable(
                    "The credit ledger does not know this call any more. Nothing was charged.",
                    headers={"Retry-After": "5"},
                ) from None
        return settled

    async def _deliver(
        self, paid: PaidCall, rendered: RenderedResponse, settled: Settlement | None, reason: str | None = None
    ) -> PaidCallResult:
        """Return the answer with its receipt. If the caller has disconnected, release the charge.

        Raises:
            InternalError: no receipt could be signed; the charge was released.
        """
        try:
            await anyio.lowlevel.checkpoint_if_cancelled()
            return await self._add_receipt_of_sale(paid, rendered, settled, reason)
        except anyio.get_cancelled_exc_class():
            await self._release(paid)
            raise

    async def _add_receipt_of_sale(
        self, paid: PaidCall, rendered: RenderedResponse, settled: Settlement | None, reason: str | None
    ) -> PaidCallResult:
        """Return the answer with its receipt. Raise InternalError or StorageFailed: no receipt, and no charge."""
        charged = settled.charged if settled else 0
        reason = reason or (settled.reason if settled else None)
        left, alerts = (settled.remaining, settled.alerts) if settled else (None, ())
        result = PaidCallResult(rendered, charged, left, reason, alerts=alerts)
        if self._receipts is None:
            return self._hand_over(paid, result)
        body = partial(describe_body, paid.call.caller, rendered, charged, result.remaining)
        try:
            receipt_id, receipt = await self._sign(paid, settled, reason, body=body, captured_at=rendered.oldest_at)
        except Exception as failure:
            log.exception("no receipt could be made, so the call is not charged", extra=paid.log_fields)
            await self._settle(paid, "5xx")
            if isinstance(failure, StorageFailed | TimeoutError):
                raise StorageFailed("no receipt could be stored") from None
            raise InternalError(OUR_FAULT) from None
        return self._hand_over(paid, replace(result, receipt_id=receipt_id, receipt=receipt))

    def _hand_over(self, paid: PaidCall, result: PaidCallResult) -> PaidCallResult:
        """Return the answer, to be sent now. Once it is sent, the charge is final. If it is not, it is given back."""
        if result.charged:
            when_sent(partial(self._ledger.delivered, paid.call_id), partial(self._ledger.lost, paid.call_id))
        return result

    async def _add_receipt(
        self, paid: PaidCall, rejected: CallRejected, reason: NoCharge, settled: Settlement | None
    ) -> CallRejected:
        """Return the rejection, with a receipt in its headers that says that nothing was charged."""
        if settled is not None:
            rejected.headers["X-Credits-Remaining"] = str(settled.remaining)
        if self._receipts is not None:
            try:
                receipt_id, receipt = await self._sign(paid, settled, reason, status=rejected.status)
                rejected.headers |= {"X-Service-Receipt-Id": receipt_id, "X-Service-Receipt": receipt}
            except Exception:
                log.exception("no receipt could be made for a failed call", extra=paid.log_fields)
        return rejected

    async def _sign(
        self, paid: PaidCall, settled: Settlement | None, reason: str | None, **more: Any
    ) -> tuple[str, str]:
        assert self._receipts is not None
        sale = describe_sale(paid, settled, reason, **more)
        with anyio.fail_after(SETTLE_S, shield=True):
            return await self._receipts.sign(sale)

    async def _release(self, paid: PaidCall) -> None:
        """Release the reservation or charge of a caller who disconnected."""
        await self._settle(paid, "cancelled")
        await self._record_uncharged(paid, "cancelled")

    async def _record_uncharged(self, paid: PaidCall, reason: NoCharge) -> None:
        """Record in the public log an uncharged call for which no receipt is issued."""
        if self._receipts is None:
            return
        owner, operation = token_hash(paid.token).hex(), paid.operation
        try:
            with anyio.move_on_after(SETTLE_S, shield=True):
                await self._receipts.unheard(reason, owner, operation.endpoint, operation.credits)
        except Exception:
            log.exception("an uncharged call could not be recorded in the public log", extra=paid.log_fields)


def show_answer(caller: Caller, rendered: RenderedResponse) -> RenderedResponse:
    """Return the answer in the form that this caller requested, which its receipt covers."""
    return rendered.short if caller.short_meta else rendered


def says_charge(caller: Caller) -> bool:
    """Return True if answers to this caller say in their `_meta` what the call cost."""
    return caller.transport in _WITH_NOTE


def describe_body(
    caller: Caller, rendered: RenderedResponse, charged: int, remaining: int | None, receipt_id: str
) -> Body:
    """Return the hash and the size of the delivered bytes, which may name the receipt that signs them."""
    note = ChargeNote(charged, remaining, receipt_id) if says_charge(caller) else None
    return Body(rendered.sha256(note).hex(), rendered.size(note))


def describe_sale(paid: PaidCall, settled: Settlement | None, reason: str | None, **more: Any) -> Sale:
    """Return what the receipt says of the call. Without a settlement the charge is unknown: it is being released."""
    operation, call = paid.operation, paid.call
    return Sale(
        paid.call_id,
        token_hash(paid.token).hex(),
        operation.endpoint,
        request_text(operation.method, operation.path, call.sent),
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


def split_sale(result: PaidCallResult) -> KeptResult:
    """Split the result for repeats of the call with its Idempotency-Key.

    Its own part belongs to this call alone; all buyers of the answer share the facts and the payload.
    """
    rendered = result.rendered
    shared = rendered.memo.get("shared")
    if shared is None:
        shared = rendered.memo["shared"] = SharedBytes(pack_rendered(rendered))
    own = msgspec.json.encode((result.charged, result.remaining, result.reason, result.receipt_id)) + b"\n"
    return KeptResult(own, shared, result.receipt or "")


def unpack_sale(stored: bytes) -> PaidCallResult:
    """Restore the result that `split_sale` split. Earlier versions wrote facts and receipt on the first line too."""
    own, _, rest = stored.partition(b"\n")
    about = msgspec.json.decode(own)
    if isinstance(about[0], dict):
        return PaidCallResult(RenderedResponse(rest, **about[0]), *about[1:])
    receipt, _, packed = rest.partition(b"\n")
    charged, remaining, reason, receipt_id = about
    return PaidCallResult(unpack_rendered(packed), charged, remaining, reason, receipt_id, receipt.decode() or None)
