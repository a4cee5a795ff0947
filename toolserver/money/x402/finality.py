"""Applies the finality rules of transfers to signed payments: large ones wait, all are watched until final.

A payment below the amount from which transfers wait for a safe block is credited as soon as
it is settled; if the chain undoes it later, what it bought is taken back. A second RPC server
confirms each payment. If servers keep disagreeing about one, it becomes a case for a person,
and the credits of a top-up cannot be spent until the servers agree.
"""

import logging

from toolserver.clock import Clock
from toolserver.errors import PaymentRequired
from toolserver.money.purchases.chain.reorg_watch import COMPARE_S, LAGS_S, MISSING_S, Sightings, sort_sightings
from toolserver.money.purchases.chain.rpc_pool import RpcPool
from toolserver.money.purchases.credit_price import credits_for
from toolserver.money.purchases.matching import AUTHORIZATION_USED, ObservedTransaction, Policy, transfers
from toolserver.money.purchases.units import USDC
from toolserver.money.x402.records import PaymentPlace, TopupCredit, WatchedPayment, owner_of
from toolserver.money.x402.store import SqlPaymentStore
from toolserver.money.x402.wire import Payment
from toolserver.sql.leases import Turn, is_our_turn

log = logging.getLogger(__name__)

POLL_S = 1.5


class PaymentFinality:
    """Waits for large payments, and watches all payments if it is this instance's `turn`."""

    def __init__(
        self,
        store: SqlPaymentStore,
        chain: RpcPool,
        clock: Clock,
        policy: Policy,
        *,
        pay_to: bytes,
        wait_s: float,
        turn: Turn | None = None,
    ) -> None:
        self._store, self._chain, self._clock, self._policy = store, chain, clock, policy
        self._pay_to, self._wait_s, self._turn = pay_to, wait_s, turn

    def is_large(self, amount: int) -> bool:
        """Return True if credits for this amount (0.000001 USDC) wait for more than the settlement."""
        return self._policy.finality(amount) != "blocks" or self._policy.needs_agreement(amount)

    async def is_undone(self, payload: bytes) -> bool:
        """Return True if the chain has undone a payment that was credited."""
        return await self._store.is_undone(payload)

    async def wait(self, payment: Payment, tx: bytes) -> bool:
        """Return True if a payment is as final as its amount requires; poll for up to `wait_s` if it is large."""
        if not self.is_large(payment.amount):
            return True
        for turn in range(1 + int(self._wait_s / POLL_S)):
            if turn:
                await self._clock.sleep(POLL_S)
            if self._is_enough(await self._sight(tx, payment.payer, payment.nonce, payment.amount), payment.amount):
                return True
        return False

    async def run(self) -> None:
        """Watch, until cancelled."""
        while True:
            try:
                if await is_our_turn(self._turn):
                    await self.look()
            except Exception:
                log.exception("signed payments could not be watched")
            await self._clock.sleep(COMPARE_S)

    async def look(self) -> None:
        """Look once at every payment that is not final."""
        for payment in await self._store.list_watched():
            await self._look_at(payment)

    async def _look_at(self, payment: WatchedPayment) -> None:
        seen = await self._sight(payment.tx_hash, payment.payer, payment.nonce, payment.amount)
        now, facts = int(self._clock.time() * 1000), {"tx": f"0x{payment.tx_hash.hex()}"}
        if seen.shown:
            await self._there(payment, seen, now)
            if seen.denied and now - payment.settled_at >= LAGS_S * 1000:
                await self._store.record_disputed(payment.payload, now)
                if payment.disputed_since is None:
                    log.error("RPC servers disagree about a signed payment", extra=facts)
        elif seen.denied >= min(2, len(self._chain)):
            await self._missing(payment, now)

    async def _there(self, payment: WatchedPayment, seen: Sightings, now: int) -> None:
        first = min(seen.shown, key=lambda each: each.finalized)
        agreed = len(seen.shown) >= min(2, len(self._chain)) and len({each.agreed_fields for each in seen.shown}) == 1
        agreed_at = payment.agreed_at or (now if agreed else None)
        final = agreed_at is not None and not seen.denied and first.finalized >= first.receipt.block_number
        place = PaymentPlace(
            payment.payload,
            first.receipt.block_number,
            first.receipt.block_hash,
            agreed_at,
            now if final else None,
        )
        await self._store.record_place(place, now)
        owner = owner_of(payment.request)
        if owner is not None and payment.token is None and self._is_enough(seen, payment.amount):
            await self._credit(payment, owner, now)

    async def _credit(self, payment: WatchedPayment, owner: str, now: int) -> None:
        """Credit a large top-up of a known token, which has waited to be final enough."""
        credit = TopupCredit(payment.payload, payment.tx_hash, owner, credits_for(payment.amount), None, None, now)
        try:
            await self._store.credit_topup(credit)
            log.info("a top-up is final enough and credited", extra={"tx": f"0x{payment.tx_hash.hex()}"})
        except PaymentRequired:
            log.error("a top-up could not be credited to its token", extra={"tx": f"0x{payment.tx_hash.hex()}"})

    async def _missing(self, payment: WatchedPayment, now: int) -> None:
        """Record that no server has a payment. The second time this is seen, take back what it bought."""
        facts = {"tx": f"0x{payment.tx_hash.hex()}"}
        if payment.missing_since is None:
            log.warning("a signed payment is gone from the chain", extra=facts)
            await self._store.record_missing(payment.payload, now)
        elif now - payment.missing_since >= MISSING_S * 1000:
            taken, lost = await self._store.undo_payment(payment.payload, now)
            log.error("a signed payment was undone", extra=facts | {"taken_back": taken, "lost": lost})

    async def _sight(self, tx: bytes, payer: bytes, nonce: bytes, amount: int) -> Sightings:
        def pays(seen: ObservedTransaction) -> bool:
            used = (AUTHORIZATION_USED, bytes(12) + payer, nonce)
            return any(log.address == USDC and log.topics == used for log in seen.receipt.logs) and any(
                (t.payer, t.payee, t.amount) == (payer, self._pay_to, amount) for t in transfers(seen.receipt)
            )

        return sort_sightings(await self._chain.survey(tx), pays)

    def _is_enough(self, seen: Sightings, amount: int) -> bool:
        least = 2 if self._policy.needs_agreement(amount) else 1
        if len(seen.shown) < least or len({each.agreed_fields for each in seen.shown}) != 1:
            return False
        return all(self._policy.progress(each, amount).enough for each in seen.shown[:least])
