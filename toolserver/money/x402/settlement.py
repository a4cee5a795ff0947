"""Makes a signed payment at most once, whatever goes wrong on the way.

    read → fits the offer → verified → (the work) → stored → handed on → settled | not made | unknown

A payment is stored before the facilitator gets it to make it. From then on the same payment, sent again, never counts
as a new one: its state is looked up (on the chain if RPC servers are configured) until its outcome is known.
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
from toolserver.money.purchases.ceilings import SalesCeilings
from toolserver.money.x402 import wire
from toolserver.money.x402.facilitator import Facilitator, FacilitatorDown, SettleAnswer
from toolserver.money.x402.finality import PaymentFinality
from toolserver.money.x402.offers import Offer, X402Terms, misfit
from toolserver.money.x402.recovery import recovered_id
from toolserver.money.x402.refusals import leave_pending, refuse_payment, refuse_unknown_use, say_unavailable
from toolserver.money.x402.store import (
    BegunPayment,
    NonceUsed,
    PaymentBacklog,
    PaymentStore,
    StoredPayment,
    UnsettledPayment,
    describe_request,
)
from toolserver.money.x402.wire import Payment
from toolserver.sql.errors import StorageFailed

log = logging.getLogger(__name__)

USED = "invalid_exact_evm_nonce_already_used"
CHECKED_FROM = ATOMIC
LOOKS, LOOK_S = 4, 1.0  # looks at the chain before it counts as not having a payment, because a server may lag
LATE_S = 120  # how many seconds after its end of validity a payment may still appear on the chain as we see it


class AuthorisationState(NamedTuple):
    """The state of an authorisation on the chain: it paid us in `tx`, it was used otherwise or cancelled (`void`), or
    it was not used until `at` (epoch seconds).
    """

    state: Literal["paid", "void", "unused"]
    tx: bytes | None = None
    at: float = 0.0


class Handover(NamedTuple):
    """The moment when a payment was handed to the facilitator: the height of the chain, if known, and epoch seconds."""

    block: int | None
    at: float


class AuthorisationLookup(Protocol):
    """Looks payments up on the chain. A result of None means that it cannot tell."""

    async def __call__(self, payment: Payment, since: Handover, /) -> AuthorisationState | None:
        """Return the state of a payment's authorisation, searched from the hand-over on."""
        ...

    async def find_height(self) -> int | None:
        """Return the number of the newest block."""
        ...


class SettlementService:
    """Takes payments for everything that is sold. Without a `lookup`, the facilitator is believed."""

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
        """Return the well-formed payment in a header or in `_meta`, not judged yet. Raises InvalidArguments."""
        try:
            return wire.read_payment(text)
        except wire.Malformed as error:
            message = f"is not an x402 payment: {error}"
            errors = [{"loc": wire.SIGNATURE, "msg": message, "type": "x402"}]
            raise InvalidArguments(f"{wire.SIGNATURE} {message}", errors=errors) from None

    def check_fit(self, payment: Payment, offer: Offer) -> None:
        """Compare a payment that is not stored with the offer. Raises PaymentRequired if it does not fit."""
        reason = misfit(payment, offer.requirement, self.clock.time())
        if reason is not None:
            raise refuse_payment(payment, offer, reason)

    async def alone(self, payment: Payment, work: Callable[[], Awaitable[Any]]) -> Any:
        """Run `work` while no other task of this process works on the payment, and return its result."""
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
        """Return the stored payment, by its id or as a recovered one, or None if it was never handed on."""
        stored = await self.store.find_payment(payment.id)
        return stored or await self.store.find_payment(recovered_id(payment.payer, payment.nonce))

    async def verify(self, payment: Payment, offer: Offer) -> None:
        """Have the facilitator check a payment before any work is done for it. Nothing is stored.

        Raises:
            PaymentUsed: the chain has its nonce already, and the payment is not stored. The error carries no offer,
                because a client that accepts one may pay twice. If the payment is stored by now, another instance has
                begun it, and nothing is raised.
            PaymentRequired, ChainUnavailable: it cannot be made, or the facilitator cannot say.
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
        """Have a payment made, and return the transaction's hash. A caller who hangs up does not stop this. The outcome
        is durable when this returns.

        Raises:
            PaymentRequired: the payment was certainly not made.
            ChainUnavailable: it was certainly not made, because the facilitator could not be reached.
            SalesCeilingReached: it would exceed a ceiling, and was not made.
            SettlementPending: it is not known whether it was made.
            PaymentUsed: it was used for another request.
        """
        with anyio.CancelScope(shield=True):
            tx = await self._settled(payment, offer, request, claim)
        return tx

    async def _settled(self, payment: Payment, offer: Offer, request: str, claim: bytes | None) -> bytes:
        stored = await self.find_stored(payment)
        if stored is None:
            since = await self._begin(payment, offer, request, claim)
            if since is not None:
                return await self._first(payment, offer, since)
            stored = await self.find_stored(payment)  # another instance has begun it
            if stored is None:
                raise refuse_payment(payment, offer, USED)
        if stored.request != request:
            raise PaymentUsed(
                f"This payment was used for {describe_request(stored.request)}. It pays for nothing else."
            )
        if stored.state == "settled":
            return stored.tx_hash or b""
        return await self._again(payment, offer, handover_of(stored))

    def measure_backlog(self) -> tuple[int, float, int]:
        """Return the number of open payments, the age of the oldest in seconds, and the number of cases."""
        pending, oldest_at, in_review = self.backlog
        age_s = 0.0 if oldest_at is None else max(0.0, self.clock.time() - oldest_at / 1000)
        return pending, age_s, in_review

    async def record_answered(self, payment: Payment) -> None:
        """Record that a paid call got its answer. A failure to store this is only logged."""
        try:
            await self.store.record_answered(payment.id, self._now())
        except StorageFailed:
            log.exception("it could not be noted that a paid call was answered")

    async def _begin(self, payment: Payment, offer: Offer, request: str, claim: bytes | None) -> Handover | None:
        """Store the payment with the height of the chain, at which later searches start. Raises SalesCeilingReached.

        Return None if its nonce is stored already, with this signature or with another one.
        """
        block = None if self._lookup is None else await self._lookup.find_height()
        async with self._beginning:  # two payments that each fit under a ceiling may not fit together
            if self._ceilings is not None:
                await self._ceilings.refuse_excess(payment.amount)
            return await self._keep(payment, request, claim, block)

    async def _keep(self, payment: Payment, request: str, claim: bytes | None, block: int | None) -> Handover | None:
        begun = BegunPayment(
            payload=payment.id,
            payer=payment.payer,
            nonce=payment.nonce,
            amount=payment.amount,
            request=request,
            valid_before=payment.valid_before,
            claim=claim,
            begun_at=self._now(),
            begun_block=block,
        )
        try:
            await self.store.begin_payment(begun)
        except NonceUsed:
            return None
        return Handover(block, begun.begun_at / 1000)

    async def _first(self, payment: Payment, offer: Offer, since: Handover) -> bytes:
        """Hand a payment on for the first time. Only here is the facilitator believed that it was not made."""
        try:
            outcome = await self._ask_facilitator(payment, offer)
        except FacilitatorDown as down:
            await self.store.drop_payment(payment.id)
            raise say_unavailable(down) from None
        if outcome.state == "failed":
            seen = await self._look(payment, since) if outcome.reason == USED else None
            if seen is not None and seen.tx is not None:  # another account submitted it, and the money came to us
                return await self._record_settled(payment, seen.tx)
            await self.store.drop_payment(payment.id)
            raise refuse_payment(payment, offer, outcome.reason)
        return await self._finish(payment, outcome, since)

    async def _again(self, payment: Payment, offer: Offer, since: Handover) -> bytes:
        """Look up a payment that was handed on before with an unknown outcome, then ask the facilitator again."""
        seen = await self._look(payment, since)
        if seen is not None and seen.tx is not None:
            return await self._record_settled(payment, seen.tx)
        if seen is not None and (seen.state == "void" or seen.at > payment.valid_before + LATE_S):
            await self.store.drop_payment(payment.id)
            raise refuse_payment(payment, offer, USED if seen.state == "void" else "invalid_transaction_state")
        try:
            outcome = await self._ask_facilitator(payment, offer)
        except FacilitatorDown as down:
            log.warning("the facilitator could not be asked about a pending payment", extra={"reason": str(down)})
            outcome = SettleAnswer("pending")
        if outcome.state == "failed":  # perhaps only because it was made already
            outcome = SettleAnswer("pending")
        return await self._finish(payment, outcome, since)

    async def _ask_facilitator(self, payment: Payment, offer: Offer) -> SettleAnswer:
        """Return the facilitator's outcome. If it has sent the transaction and does not see it yet, ask once more."""
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
        stored = await self.find_stored(payment)
        raise leave_pending(payment, outcome.tx or (stored.tx_hash if stored else None))

    async def _is_confirmed(self, payment: Payment, since: Handover) -> bool:
        """Return True if the chain does not contradict the facilitator. Below CHECKED_FROM it is not looked at."""
        if payment.amount < CHECKED_FROM:
            return True
        for turn in range(LOOKS):
            if turn:
                await self.clock.sleep(LOOK_S)
            seen = await self._look(payment, since)
            if seen is None or seen.state == "paid":
                return True
        log.error(
            "the facilitator reports a payment as settled, but the chain does not have it",
            extra={"payer": payment.shown_payer},
        )
        return False

    async def require_finality(self, payment: Payment, tx: bytes) -> None:
        """Wait a few seconds for a large payment to be as final as the policy requires, or raise SettlementPending."""
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
    """Return the moment at which the search for a stored payment starts."""
    return Handover(stored.begun_block, stored.begun_at / 1000)
