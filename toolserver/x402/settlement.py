"""One signed payment, made at most once, whatever happens on the way.

    read → fits the offer → verified → (the work) → written down → handed on → settled | not made | nobody knows

A payment is stored before the facilitator is asked to make it. From then on the same payment, sent again, is never a
new one: its state is looked up, on the chain if RPC servers are configured, until it is known how it ended.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Literal, NamedTuple, Protocol

import anyio

from toolserver.clock import Clock
from toolserver.core.credit_price import ATOMIC
from toolserver.errors import (
    InvalidArguments,
    PaymentUsed,
)
from toolserver.purchases.ceilings import SalesCeilings
from toolserver.storage.errors import StorageFailed
from toolserver.x402 import wire
from toolserver.x402.facilitator import Facilitator, FacilitatorDown, SettleAnswer
from toolserver.x402.finality import PaymentFinality
from toolserver.x402.offers import Offer, X402Terms, misfit
from toolserver.x402.recovery import recovered_id
from toolserver.x402.refusals import leave_pending, refuse_payment, refuse_unknown_use, say_unavailable
from toolserver.x402.store import (
    BegunPayment,
    NonceUsed,
    PaymentBacklog,
    PaymentStore,
    StoredPayment,
    UnsettledPayment,
    describe_request,
)
from toolserver.x402.wire import Payment

log = logging.getLogger(__name__)

USED = "invalid_exact_evm_nonce_already_used"
CHECKED_FROM = ATOMIC
LOOKS, LOOK_S = 4, 1.0  # how often the chain is looked at before it counts as not having a payment; it may lag
LATE_S = 120  # after its end of validity, how long a payment may still turn up on a chain that we see


class AuthorisationState(NamedTuple):
    """What the chain says of an authorisation: it paid us in `tx`, it was used otherwise, or not (until `at`)."""

    state: Literal["paid", "void", "unused"]
    tx: bytes | None = None
    at: float = 0.0


class Handover(NamedTuple):
    """When a payment was handed to the facilitator: the height of the chain, if it was known, and epoch seconds."""

    block: int | None
    at: float


class AuthorisationLookup(Protocol):
    """Looks on the chain itself. None: it cannot tell."""

    async def __call__(self, payment: Payment, since: Handover, /) -> AuthorisationState | None:
        """The state of a payment's authorisation, which is looked for from its hand-over on."""
        ...

    async def find_height(self) -> int | None:
        """The number of the newest block."""
        ...


class SettlementService:
    """Takes payments for whatever is sold. `lookup` may be absent: then the facilitator is believed."""

    def __init__(
        self,
        store: PaymentStore,
        facilitator: Facilitator,
        terms: X402Terms,
        clock: Clock,
        lookup: AuthorisationLookup | None = None,
        *,
        finality: PaymentFinality | None = None,
        ceilings: SalesCeilings | None = None,
    ) -> None:
        self.finality, self._ceilings, self._beginning = finality, ceilings, anyio.Lock()
        self.store, self.terms, self.clock = store, terms, clock
        self._facilitator, self._lookup = facilitator, lookup
        self._locks: dict[bytes, tuple[anyio.Lock, int]] = {}
        self.backlog = PaymentBacklog()  # as the sweep has counted it

    def read(self, text: str) -> Payment:
        """The payment that was sent along, well formed and not judged. Raises InvalidArguments."""
        try:
            return wire.read_payment(text)
        except wire.Malformed as error:
            message = f"is no x402 payment: {error}"
            errors = [{"loc": wire.SIGNATURE, "msg": message, "type": "x402"}]
            raise InvalidArguments(f"{wire.SIGNATURE} {message}", errors=errors) from None

    def check_fit(self, payment: Payment, offer: Offer) -> None:
        """Compare a payment that nothing is stored about with the offer. Raises PaymentRequired."""
        reason = misfit(payment, offer.requirement, self.clock.time())
        if reason is not None:
            raise refuse_payment(payment, offer, reason)

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

    async def find_stored(self, payment: Payment) -> StoredPayment | None:
        """What is stored about a payment, by its id or as one that was recovered; None when it was never handed on."""
        kept = await self.store.find_payment(payment.id)
        return kept or await self.store.find_payment(recovered_id(payment.payer, payment.nonce))

    async def verify(self, payment: Payment, offer: Offer) -> None:
        """Have it looked at before anything is done for it. Nothing is stored about it.

        Raises:
            PaymentUsed: the chain has its nonce already, and nothing is stored. No offer goes with this: who accepts
                one may pay twice. Where something is stored now, another instance has begun it meanwhile.
            PaymentRequired, ChainUnavailable: it cannot be made, or nobody can say.
        """
        written = wire.write_payment(payment, offer.requirement, offer.resource)
        try:
            reason = await self._facilitator.verify(written, offer.requirement, payment.shown_payer)
        except FacilitatorDown as down:
            raise say_unavailable(down) from None
        if reason == USED:
            if await self.find_stored(payment) is None:
                raise refuse_unknown_use()
        elif reason is not None:
            raise refuse_payment(payment, offer, reason)

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
        kept = await self.find_stored(payment)
        if kept is None:
            since = await self._begin(payment, offer, request, claim)
            if since is not None:
                return await self._first(payment, offer, since)
            kept = await self.find_stored(payment)  # another instance began it meanwhile
            if kept is None:
                raise refuse_payment(payment, offer, USED)
        if kept.request != request:
            raise PaymentUsed(f"This payment was used for {describe_request(kept.request)}. It buys nothing else.")
        if kept.state == "settled":
            return kept.tx_hash or b""
        return await self._again(payment, offer, handover_of(kept))

    def measure_backlog(self) -> tuple[int, float, int]:
        """How many payments are open, the age of the oldest in seconds, and how many a person has to look at."""
        pending, oldest_at, in_review = self.backlog
        age_s = 0.0 if oldest_at is None else max(0.0, self.clock.time() - oldest_at / 1000)
        return pending, age_s, in_review

    async def record_answered(self, payment: Payment) -> None:
        """Note that a paid call got its answer. The answer is given even when this cannot be written."""
        try:
            await self.store.record_answered(payment.id, self._now())
        except StorageFailed:
            log.exception("it could not be noted that a paid call was answered")

    async def _begin(self, payment: Payment, offer: Offer, request: str, claim: bytes | None) -> Handover | None:
        """Store the payment with the height of the chain, where every later search starts. Raises PaymentRequired.

        None: its nonce is stored already, with this signature or with another one.
        """
        block = None if self._lookup is None else await self._lookup.find_height()
        async with self._beginning:  # two payments that fit under a ceiling one by one may not fit together
            if self._ceilings is not None:
                await self._ceilings.refuse_excess(payment.amount)
            return await self._keep(payment, request, claim, block)

    async def _keep(self, payment: Payment, request: str, claim: bytes | None, block: int | None) -> Handover | None:
        begun = BegunPayment(
            *(payment.id, payment.payer, payment.nonce, payment.amount, request),
            *(payment.valid_before, claim, self._now(), block),
        )
        try:
            await self.store.begin_payment(begun)
        except NonceUsed:
            return None
        return Handover(block, begun.begun_at / 1000)

    async def _first(self, payment: Payment, offer: Offer, since: Handover) -> bytes:
        """Hand it on. That it was not made is believed only here, where nothing was done before."""
        try:
            outcome = await self._ask_facilitator(payment, offer)
        except FacilitatorDown as down:
            await self.store.drop_payment(payment.id)
            raise say_unavailable(down) from None
        if outcome.state == "failed":
            seen = await self._look(payment, since) if outcome.reason == USED else None
            if seen is not None and seen.tx is not None:  # somebody else submitted it, and the money came to us
                return await self._record_settled(payment, seen.tx)
            await self.store.drop_payment(payment.id)
            raise refuse_payment(payment, offer, outcome.reason)
        return await self._finish(payment, outcome, since)

    async def _again(self, payment: Payment, offer: Offer, since: Handover) -> bytes:
        """It was handed on before, and its end is not known yet: look it up, then ask the facilitator again."""
        seen = await self._look(payment, since)
        if seen is not None and seen.tx is not None:
            return await self._record_settled(payment, seen.tx)
        if seen is not None and (seen.state == "void" or seen.at > payment.valid_before + LATE_S):
            await self.store.drop_payment(payment.id)
            raise refuse_payment(payment, offer, USED if seen.state == "void" else "invalid_transaction_state")
        try:
            outcome = await self._ask_facilitator(payment, offer)
        except FacilitatorDown as down:
            log.warning("a pending payment could not be asked about", extra={"reason": str(down)})
            outcome = SettleAnswer("pending")
        if outcome.state == "failed":  # which may mean just that it was made
            outcome = SettleAnswer("pending")
        return await self._finish(payment, outcome, since)

    async def _ask_facilitator(self, payment: Payment, offer: Offer) -> SettleAnswer:
        """The facilitator's word. One that has sent it and does not see it yet is asked once more."""
        written = wire.write_payment(payment, offer.requirement, offer.resource)
        outcome = await self._facilitator.settle(written, offer.requirement, payment.shown_payer)
        if outcome.state == "pending" and outcome.tx is not None:
            await self.store.record_transaction(payment.id, outcome.tx)
            try:
                again = await self._facilitator.settle(written, offer.requirement, payment.shown_payer)
            except FacilitatorDown:
                return outcome
            return again if again.state == "settled" else outcome
        return outcome

    async def _finish(self, payment: Payment, outcome: SettleAnswer, since: Handover) -> bytes:
        if outcome.state == "settled" and outcome.tx is not None and await self._is_confirmed(payment, since):
            return await self._record_settled(payment, outcome.tx)
        seen = await self._look(payment, since)
        if seen is not None and seen.tx is not None:
            return await self._record_settled(payment, seen.tx)
        kept = await self.find_stored(payment)
        raise leave_pending(payment, outcome.tx or (kept.tx_hash if kept else None))

    async def _is_confirmed(self, payment: Payment, since: Handover) -> bool:
        """Whether the chain does not contradict the facilitator. It is not asked about less than a dollar."""
        if payment.amount < CHECKED_FROM:
            return True
        for turn in range(LOOKS):
            if turn:
                await self.clock.sleep(LOOK_S)
            seen = await self._look(payment, since)
            if seen is None or seen.state == "paid":
                return True
        log.error("the facilitator says settled, the chain does not", extra={"payer": payment.shown_payer})
        return False

    async def require_finality(self, payment: Payment, tx: bytes) -> None:
        """Wait for what the policy requires of an amount beyond the small ones. Raises SettlementPending until then."""
        if self.finality is not None and not await self.finality.wait(payment, tx):
            raise leave_pending(payment, tx)

    async def _record_settled(self, payment: Payment, tx: bytes) -> bytes:
        await self.store.record_settled(payment.id, tx, self._now())
        facts = {"amount": payment.amount, "payer": payment.shown_payer, "tx": f"0x{tx.hex()}"}
        log.info("an x402 payment is settled", extra=facts)
        return tx

    async def _look(self, payment: Payment, since: Handover) -> AuthorisationState | None:
        return None if self._lookup is None else await self._lookup(payment, since)

    def _now(self) -> int:
        return int(self.clock.time() * 1000)


def handover_of(stored: StoredPayment | UnsettledPayment) -> Handover:
    """Where the search for a stored payment starts."""
    return Handover(stored.begun_block, stored.begun_at / 1000)
