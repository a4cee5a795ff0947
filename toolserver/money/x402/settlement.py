"""Makes a signed payment at most once, whatever goes wrong on the way.

    read → fits the offer → verified → (the work) → stored → handed on → settled | not made | unknown

A payment is stored before the facilitator gets it to make it. From then on the same payment,
sent again, never counts as a new one: its state is looked up (on the chain if RPC servers are
configured) until its outcome is known.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import anyio

from toolserver.clock import Clock
from toolserver.core.waiting_room import WaitingRoom, WaitLimits, WaitRefused
from toolserver.errors import (
    CallRejected,
    ChainUnavailable,
    InvalidArguments,
    PaymentRequired,
    PaymentUsed,
    SettlementPending,
    UnpaidCall,
)
from toolserver.money.purchases.credit_price import ATOMIC, credits_for
from toolserver.money.purchases.quotes import SalesCeilings
from toolserver.money.purchases.units import NETWORK
from toolserver.money.x402 import wire
from toolserver.money.x402.finality import PaymentFinality
from toolserver.money.x402.offers import Offer, X402Terms, misfit
from toolserver.money.x402.records import (
    FIRST,
    MOST_LISTED,
    BegunPayment,
    NonceUsed,
    PaymentBacklog,
    StoredPayment,
    TopupCredit,
    UnsettledPayment,
    describe_request,
    owner_of,
    recovered_id,
)
from toolserver.money.x402.store import SqlPaymentStore
from toolserver.money.x402.wire import Accepted, FacilitatorDown, Payment, SettleAnswer
from toolserver.sql.errors import StorageFailed
from toolserver.sql.leases import Turn, is_our_turn

if TYPE_CHECKING:
    from toolserver.money.x402.facilitator import Facilitator

log = logging.getLogger(__name__)

USED = "invalid_exact_evm_nonce_already_used"
CHECKED_FROM = ATOMIC
VERIFY_WAITS = WaitLimits(most=64, share=8, crowd_share=16)  # of a hundred connections: the others are for settlements
LOOKS, LOOK_S = 4, 1.0  # looks at the chain before it counts as not having a payment, because a server may lag
LATE_S = 120  # how many seconds after its end of validity a payment may still appear on the chain as we see it


class AuthorisationState(NamedTuple):
    """The state of an authorisation on the chain: it paid us in `tx`, it was used otherwise or
    cancelled (`void`), or it was not used until `at` (epoch seconds).
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

    async def is_spent(self, payment: Payment, /) -> bool | None:
        """Return True if a payment's authorisation was used or cancelled, by whomever and for whatever."""
        ...

    async def find_height(self) -> int | None:
        """Return the number of the newest block."""
        ...


class SettlementService:
    """Takes payments for everything that is sold. Without a `lookup`, the facilitator is believed."""

    def __init__(
        self,
        store: SqlPaymentStore,
        facilitator: "Facilitator",
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
        self.room = WaitingRoom("facilitator", VERIFY_WAITS)

    def read(self, text: str) -> Payment:
        """Return the well-formed payment in a header or in `_meta`, not judged yet. Raises InvalidArguments."""
        try:
            return wire.read_payment(text)
        except wire.Malformed as error:
            message = f"is not an x402 payment: {error}"
            errors = [{"loc": wire.SIGNATURE, "msg": message, "type": "x402"}]
            raise InvalidArguments(f"{wire.SIGNATURE} {message}", errors=errors) from None

    async def check_fit(self, payment: Payment, offer: Offer) -> None:
        """Compare a payment that is not stored with the offer. Raises as `refuse` if it does
        not fit, and PaymentUsed if its authorisation is stored with another signature.
        """
        if not await self.store.find_unknown([(payment.payer, payment.nonce)]):
            if await self.find_stored(payment) is None:
                raise refuse_other_signature()
            return  # another instance has begun this very payment since it was looked for
        reason = misfit(payment, offer.requirement, self.clock.time())
        if reason is not None:
            raise await self.refuse(payment, offer, reason)

    async def refuse(self, payment: Payment, offer: Offer, reason: str) -> CallRejected:
        """Return the refusal of a payment that is not stored. It repeats the offer only if
        nothing can have been paid with its authorisation: a client that accepts an offer signs
        another payment.

        PaymentUsed: the chain has its nonce. ChainUnavailable: no server can tell. PaymentRequired: the offer.
        """
        spent = False if self._lookup is None else await self._lookup.is_spent(payment)
        if spent is None:
            return say_chain_silent()
        return refuse_unknown_use() if spent else refuse_payment(payment, offer, reason)

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

        Anyone can write a payment that is worth nothing, and each takes as long as the
        facilitator likes. So a client has few places to wait for it.

        Raises:
            PaymentUsed: the chain has its nonce already, and the payment is not stored. The error carries no offer,
                because a client that accepts one may pay twice. If the payment is stored by now, another instance has
                begun it, and nothing is raised.
            PaymentRequired, ChainUnavailable: it cannot be made, or the facilitator cannot say.
        """
        try:
            async with self.room.wait():
                await self._verify(payment, offer)
        except WaitRefused:
            raise _say_later("Too many payments are being checked. This one was not made.") from None

    async def _verify(self, payment: Payment, offer: Offer) -> None:
        written = wire.write_payment(payment, offer.requirement, offer.resource, offer.extensions)
        try:
            reason = await self._facilitator.verify(written, offer.requirement, payment.shown_payer)
        except FacilitatorDown as down:
            raise say_unavailable(down) from None
        if reason == USED:
            if await self.find_stored(payment) is None:
                raise refuse_unknown_use()
        elif reason is not None:
            raise await self.refuse(payment, offer, reason)

    async def settle(self, payment: Payment, offer: Offer, request: str, claim: bytes | None = None) -> bytes:
        """Have a payment made, and return the transaction's hash. A caller who hangs up does
        not stop this. The outcome is durable when this returns.

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
                raise refuse_other_signature()
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
            return await self._judge_failure(payment, offer, outcome.reason, since)
        return await self._finish(payment, outcome, since)

    async def _judge_failure(self, payment: Payment, offer: Offer, reason: str, since: Handover) -> bytes:
        """Look up a payment that the facilitator says it did not make: another account may have submitted it."""
        seen = await self._look(payment, since)
        if seen is not None and seen.tx is not None:  # the money came to us
            return await self._record_settled(payment, seen.tx)
        if seen is None and self._lookup is not None:
            raise leave_pending(payment, None)
        await self.store.drop_payment(payment.id)
        if reason == USED or (seen is not None and seen.state == "void"):
            raise refuse_unknown_use()
        raise refuse_payment(payment, offer, reason)

    async def _again(self, payment: Payment, offer: Offer, since: Handover) -> bytes:
        """Look up a payment that was handed on before with an unknown outcome, then ask the facilitator again."""
        seen = await self._look(payment, since)
        if seen is not None and seen.tx is not None:
            return await self._record_settled(payment, seen.tx)
        if seen is not None and (seen.state == "void" or seen.at > payment.valid_before + LATE_S):
            await self.store.drop_payment(payment.id)
            if seen.state == "void":
                raise refuse_unknown_use()
            raise refuse_payment(payment, offer, "invalid_transaction_state")
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
        written = wire.write_payment(payment, offer.requirement, offer.resource, offer.extensions)
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


AGAIN_S = 5


def refuse_payment(payment: Payment, offer: Offer, reason: str) -> PaymentRequired:
    """Return a 402 that says the payment was not made and repeats the offer."""
    response = wire.settlement(payment.shown_payer, NETWORK, tx=None, reason=reason)
    headers = {wire.REQUIRED: wire.header(offer.required(reason)), wire.RESPONSE: wire.header(response)}
    return UnpaidCall(f"The payment was not made: {reason}.", headers=headers)


def leave_pending(payment: Payment, tx: bytes | None) -> SettlementPending:
    """Return a 503 without an offer, because a client that accepts an offer pays twice."""
    response = wire.settlement(payment.shown_payer, NETWORK, tx=tx, reason="settlement_pending")
    return SettlementPending(
        "It is not known yet whether the payment was made. Send the same payment again; do not sign another one.",
        headers={wire.RESPONSE: wire.header(response), "Retry-After": str(AGAIN_S)},
        retry_after_seconds=AGAIN_S,
    )


def say_chain_silent() -> ChainUnavailable:
    """Return a 503 without an offer, for a payment that does not fit while nobody can tell whether it was made."""
    return ChainUnavailable(
        "This payment does not pay for this request, and the chain cannot be asked at the moment whether it was used"
        " before. Send it again later, and do not sign another one until then.",
        headers={"Retry-After": "10"},
        retry_after_seconds=10,
    )


def say_unavailable(down: FacilitatorDown) -> ChainUnavailable:
    log.warning("the facilitator gives no usable answer", extra={"reason": str(down)})
    return _say_later("Payments cannot be checked at the moment. This one was not made.")


def _say_later(text: str) -> ChainUnavailable:
    return ChainUnavailable(text, headers={"Retry-After": "10"}, retry_after_seconds=10)


def refuse_other_signature() -> PaymentUsed:
    """Return a 409 for an authorisation that was handed on before with another signature."""
    return PaymentUsed(
        "The authorisation of this payment was used before with another signature. Send the payment with the signature"
        " of the first time; do not sign another one."
    )


def refuse_unknown_use() -> PaymentUsed:
    """Return a 409 for a payment whose nonce the chain has already and that is not stored, as after a restored backup.

    It carries no offer, because a client that accepts an offer may pay twice.
    """
    return PaymentUsed(
        "The authorisation of this payment was already used or cancelled, and this service has no record of a purchase"
        " with it. If the money was taken, ask the operator of this service to look for it on the chain."
    )


SWEEP_S, OLD_S = 60.0, 60.0
AT_ONCE = 8  # payments that are looked up side by side
_NOTHING = Accepted("", "", "", "", "")


class SettlementSweep:
    """Looks open payments up. A top-up of a known token is credited; everything else waits until its sender comes back.

    Payments that stay open are counted, and listed for the operator. Without a `lookup`
    nothing else is possible. Where instances share the payments, the one whose `turn` it is
    looks them up, and all of them count.
    """

    def __init__(
        self,
        settling: SettlementService,
        lookup: AuthorisationLookup | None,
        turn: Turn | None = None,
        *,
        at_once: int = MOST_LISTED,
    ) -> None:
        """`at_once` payments are read from the store at a time."""
        self._settling = settling
        self._lookup = lookup
        self._turn = turn
        self._at_once = at_once

    async def run(self) -> None:
        """Look or count once a minute, until cancelled."""
        while True:
            await self._settling.clock.sleep(SWEEP_S)
            try:
                await (self.look() if await is_our_turn(self._turn) else self.count())
            except Exception:
                log.exception("unsettled payments could not be looked at")

    async def look(self) -> None:
        """Look once at all open payments that were handed on more than `OLD_S` ago, and delete old encrypted tokens."""
        store, now = self._settling.store, int(self._settling.clock.time() * 1000)
        await store.forget_old_tokens(now)
        place, before = FIRST, now - int(OLD_S * 1000)
        while self._lookup is not None and (page := await store.list_unsettled(before, place, self._at_once)):
            slots = anyio.CapacityLimiter(AT_ONCE)
            async with anyio.create_task_group() as tasks:
                for row in page:
                    tasks.start_soon(self._look_at, self._lookup, row, slots)
            place = page[-1].begun_at, page[-1].payload
        await self.count()

    async def count(self) -> None:
        """Count the open payments, for the metrics."""
        now = int(self._settling.clock.time() * 1000)
        self._settling.backlog = await self._settling.store.measure_backlog(now)

    async def _look_at(self, lookup: AuthorisationLookup, row: UnsettledPayment, slots: anyio.CapacityLimiter) -> None:
        """Look at one payment. A failure is logged and does not stop the look at the others."""
        payment = self._payment(row)
        try:
            async with slots:
                seen = await lookup(payment, handover_of(row))
                if seen is not None:
                    await self._settling.alone(payment, lambda: self._end(row, seen))
        except Exception:
            log.exception("an unsettled payment could not be looked at", extra={"payer": payment.shown_payer})

    async def _end(self, row: UnsettledPayment, seen: AuthorisationState) -> None:
        stored = await self._settling.store.find_payment(row.payload)
        if stored is None or stored.state != "settling":
            return  # its sender has come back, and its outcome is known
        facts = {"amount": row.amount, "payer": f"0x{row.payer.hex()}"}
        if seen.tx is not None:
            await self._record_settled(row, seen.tx)
            log.warning("a payment turned out to be settled", extra=facts | {"tx": f"0x{seen.tx.hex()}"})
        elif seen.state == "void" or seen.at > row.valid_before + LATE_S:
            await self._settling.store.drop_payment(row.payload)
            log.warning("a payment turned out never to be made", extra=facts)

    async def _record_settled(self, row: UnsettledPayment, tx: bytes) -> None:
        now, owner = int(self._settling.clock.time() * 1000), owner_of(row.request)
        finality = self._settling.finality
        if owner is not None and (finality is None or not finality.is_large(row.amount)):
            credit = TopupCredit(row.payload, tx, owner, credits_for(row.amount), None, None, now)
            try:
                await self._settling.store.credit_topup(credit)
                return
            except PaymentRequired:
                log.error("a settled top-up could not be credited to its token", extra={"tx": f"0x{tx.hex()}"})
        await self._settling.store.record_settled(row.payload, tx, now)

    def _payment(self, row: UnsettledPayment) -> Payment:
        """Return the payment with the fields that a search on the chain needs."""
        payee = self._settling.terms.pay_to
        return Payment(row.payload, row.payer, payee, row.amount, 0, row.valid_before, row.nonce, b"", _NOTHING)
