"""One signed payment, made at most once, whatever happens on the way.

    read → fits the offer → verified → (the work) → written down → handed on → settled | not made | nobody knows

It is written down before the facilitator is told to make it. From then on the same payment, sent again, is never a
new one: it is asked about, on the chain if we can look there, until it is known what became of it.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Literal, NamedTuple, Protocol

import anyio

from toolserver.clock import Clock
from toolserver.errors import ChainUnavailable, InvalidArguments, PaymentRequired, SettlementPending
from toolserver.payments.units import ATOMIC, NETWORK
from toolserver.payments.x402 import books, wire
from toolserver.payments.x402.books import Kept, NonceUsed
from toolserver.payments.x402.facilitator import Facilitator, FacilitatorDown, Settled
from toolserver.payments.x402.offers import Offer, Terms, misfit
from toolserver.payments.x402.wire import Payment
from toolserver.storage.durable import Durable

log = logging.getLogger(__name__)

USED = "invalid_exact_evm_nonce_already_used"
AGAIN_S = 5
CHECKED_FROM = ATOMIC
LOOKS, LOOK_S = 4, 1.0  # how often the chain is looked at before it counts as not having a payment; it may lag
LATE_S = 120  # after its end of validity, how long a payment may still turn up on a chain that we see


class Seen(NamedTuple):
    """What the chain says of an authorisation: it paid us in `tx`, it was used otherwise, or not (until `at`)."""

    state: Literal["paid", "void", "unused"]
    tx: bytes | None = None
    at: float = 0.0


class Witness(Protocol):
    """Looks on the chain itself. None: it cannot tell."""

    async def __call__(self, payment: Payment, /) -> Seen | None: ...


class Settling:
    """Takes payments for whatever is sold. `witness` may be absent: then the facilitator is believed."""

    def __init__(
        self, file: Durable, facilitator: Facilitator, terms: Terms, clock: Clock, witness: Witness | None = None
    ) -> None:
        self.file, self.terms, self.clock = file, terms, clock
        self._facilitator, self._witness = facilitator, witness
        self._locks: dict[bytes, tuple[anyio.Lock, int]] = {}

    def read(self, text: str, offer: Offer) -> Payment:
        """The payment, if it is for this offer. Raises InvalidArguments, PaymentRequired."""
        try:
            payment = wire.read(text)
        except wire.Malformed as error:
            message = f"is no x402 payment: {error}"
            errors = [{"loc": wire.SIGNATURE, "msg": message, "type": "x402"}]
            raise InvalidArguments(f"{wire.SIGNATURE} {message}", errors=errors) from None
        reason = misfit(payment, offer.requirement, self.clock.time())
        if reason is not None:
            raise refused(payment, offer, reason)
        return payment

    async def alone(self, payment: Payment, work: Callable[[], Awaitable[Any]]) -> Any:
        """Do something while nobody else does anything with this payment."""
        lock, waiting = self._locks.get(payment.id, (anyio.Lock(), 0))
        self._locks[payment.id] = (lock, waiting + 1)
        try:
            async with lock:
                return await work()
        finally:
            lock, waiting = self._locks.pop(payment.id)
            if waiting > 1:
                self._locks[payment.id] = (lock, waiting - 1)

    async def kept(self, payment: Payment) -> Kept | None:
        return await self.file.read(lambda db: books.find(db, payment.id))

    async def verify(self, payment: Payment, offer: Offer) -> None:
        """Have it looked at before anything is done for it. Raises PaymentRequired, ChainUnavailable."""
        written = wire.written(payment, offer.requirement, offer.resource)
        try:
            reason = await self._facilitator.verify(written, offer.requirement, payment.shown_payer)
        except FacilitatorDown as down:
            raise _unavailable(down) from None
        if reason is not None:
            raise refused(payment, offer, reason)

    async def settle(self, payment: Payment, offer: Offer, request: str, claim: bytes | None = None) -> bytes:
        """Have it made; the transaction. A caller who hangs up does not stop it.

        Raises:
            PaymentRequired: it was certainly not made.
            ChainUnavailable: the same, because nobody could be asked to make it.
            SettlementPending: nobody can say.
        """
        with anyio.CancelScope(shield=True):
            tx = await self._settled(payment, offer, request, claim)
        return tx

    async def _settled(self, payment: Payment, offer: Offer, request: str, claim: bytes | None) -> bytes:
        kept = await self.kept(payment)
        if kept is None:
            await self._begin(payment, offer, request, claim)
            return await self._first(payment, offer)
        if kept.request != request:
            raise refused(payment, offer, USED)
        if kept.state == "settled":
            return kept.tx_hash or b""
        return await self._again(payment, offer)

    async def _begin(self, payment: Payment, offer: Offer, request: str, claim: bytes | None) -> None:
        now = self._now()
        try:
            await self.file.alone(lambda db: books.begin(db, payment, request, claim, now))
        except NonceUsed:
            raise refused(payment, offer, USED) from None

    async def _first(self, payment: Payment, offer: Offer) -> bytes:
        """Hand it on. That it was not made is believed only here, where nothing was done before."""
        try:
            outcome = await self._asked(payment, offer)
        except FacilitatorDown as down:
            await self.file.alone(lambda db: books.drop(db, payment.id))
            raise _unavailable(down) from None
        if outcome.state == "failed":
            if outcome.reason == USED and (seen := await self._look(payment)) is not None and seen.tx is not None:
                return await self._made(payment, seen.tx)  # whoever sent it: the money came to us
            await self.file.alone(lambda db: books.drop(db, payment.id))
            raise refused(payment, offer, outcome.reason)
        return await self._unless_pending(payment, outcome)

    async def _again(self, payment: Payment, offer: Offer) -> bytes:
        """It was handed on before, and nobody heard what became of it."""
        seen = await self._look(payment)
        if seen is not None and seen.tx is not None:
            return await self._made(payment, seen.tx)
        if seen is not None and (seen.state == "void" or seen.at > payment.valid_before + LATE_S):
            await self.file.alone(lambda db: books.drop(db, payment.id))
            raise refused(payment, offer, USED if seen.state == "void" else "invalid_transaction_state")
        try:
            outcome = await self._asked(payment, offer)
        except FacilitatorDown as down:
            log.warning("a pending payment could not be asked about", extra={"reason": str(down)})
            outcome = Settled("pending")
        if outcome.state == "failed":  # which may mean just that it was made
            outcome = Settled("pending")
        return await self._unless_pending(payment, outcome)

    async def _asked(self, payment: Payment, offer: Offer) -> Settled:
        """The facilitator's word. One that has sent it and does not see it yet is asked once more."""
        written = wire.written(payment, offer.requirement, offer.resource)
        outcome = await self._facilitator.settle(written, offer.requirement, payment.shown_payer)
        if outcome.state == "pending" and outcome.tx is not None:
            tx = outcome.tx
            await self.file.alone(lambda db: books.seen(db, payment.id, tx))
            try:
                again = await self._facilitator.settle(written, offer.requirement, payment.shown_payer)
            except FacilitatorDown:
                return outcome
            return again if again.state == "settled" else outcome
        return outcome

    async def _unless_pending(self, payment: Payment, outcome: Settled) -> bytes:
        if outcome.state == "settled" and outcome.tx is not None and await self._confirmed(payment):
            return await self._made(payment, outcome.tx)
        seen = await self._look(payment)
        if seen is not None and seen.tx is not None:
            return await self._made(payment, seen.tx)
        kept = await self.kept(payment)
        raise _pending(payment, outcome.tx or (kept.tx_hash if kept else None))

    async def _confirmed(self, payment: Payment) -> bool:
        """Whether the chain does not contradict the facilitator. It is not asked about less than a dollar."""
        if payment.amount < CHECKED_FROM:
            return True
        for turn in range(LOOKS):
            if turn:
                await self.clock.sleep(LOOK_S)
            seen = await self._look(payment)
            if seen is None or seen.state == "paid":
                return True
        log.error("the facilitator says settled, the chain does not", extra={"payer": payment.shown_payer})
        return False

    async def _made(self, payment: Payment, tx: bytes) -> bytes:
        now = self._now()
        await self.file.alone(lambda db: books.settled(db, payment.id, tx, now))
        facts = {"amount": payment.amount, "payer": payment.shown_payer, "tx": f"0x{tx.hex()}"}
        log.info("an x402 payment is settled", extra=facts)
        return tx

    async def _look(self, payment: Payment) -> Seen | None:
        return None if self._witness is None else await self._witness(payment)

    def _now(self) -> int:
        return int(self.clock.time() * 1000)


def refused(payment: Payment, offer: Offer, reason: str) -> PaymentRequired:
    """402: this payment was not made; the offer stands."""
    told = wire.settlement(payment.shown_payer, NETWORK, tx=None, reason=reason)
    headers = {wire.REQUIRED: wire.header(offer.required(reason)), wire.RESPONSE: wire.header(told)}
    return PaymentRequired("payment_required", f"The payment was not made: {reason}.", headers=headers)


def _pending(payment: Payment, tx: bytes | None) -> SettlementPending:
    """503: never an offer, for who accepts it pays twice."""
    told = wire.settlement(payment.shown_payer, NETWORK, tx=tx, reason="settlement_pending")
    return SettlementPending(
        "It is not known yet whether the payment was made. Send the same payment again; do not sign another one.",
        headers={wire.RESPONSE: wire.header(told), "Retry-After": str(AGAIN_S)},
        retry_after_seconds=AGAIN_S,
    )


def _unavailable(down: FacilitatorDown) -> ChainUnavailable:
    log.warning("the facilitator gives no usable answer", extra={"reason": str(down)})
    return ChainUnavailable(
        "Payments cannot be checked at the moment. This one was not made.",
        headers={"Retry-After": "10"},
        retry_after_seconds=10,
    )
