"""Looks payments with an unknown outcome up on the chain once a minute, whether or not their sender comes back."""

import logging

import anyio

from toolserver.core.credit_price import credits_for
from toolserver.errors import PaymentRequired
from toolserver.money.x402.settlement import (
    LATE_S,
    AuthorisationLookup,
    AuthorisationState,
    SettlementService,
    handover_of,
)
from toolserver.money.x402.store import FIRST, TopupCredit, UnsettledPayment
from toolserver.money.x402.topup_owner import owner_of
from toolserver.money.x402.wire import Accepted, Payment
from toolserver.sql.leased_task import Turn, is_our_turn

log = logging.getLogger(__name__)

LOOK_S, OLD_S = 60.0, 60.0
AT_ONCE = 8  # payments that are looked up side by side
_NOTHING = Accepted("", "", "", "", "")


class SettlementSweep:
    """Looks open payments up. A top-up of a known token is credited; everything else waits until its sender comes back.

    Payments that stay open are counted, and listed for the operator. Without a `lookup` nothing else is possible. Where
    instances share the payments, the one whose `turn` it is looks them up, and all of them count.
    """

    def __init__(
        self, settling: SettlementService, lookup: AuthorisationLookup | None, turn: Turn | None = None
    ) -> None:
        self._settling, self._lookup, self._turn = settling, lookup, turn

    async def run(self) -> None:
        """Look or count once a minute, until cancelled."""
        while True:
            await self._settling.clock.sleep(LOOK_S)
            try:
                await (self.look() if await is_our_turn(self._turn) else self.count())
            except Exception:
                log.exception("unsettled payments could not be looked at")

    async def look(self) -> None:
        """Look once at all open payments that were handed on more than `OLD_S` ago, and delete old encrypted tokens."""
        store, now = self._settling.store, int(self._settling.clock.time() * 1000)
        await store.forget_old_tokens(now)
        place = FIRST
        while self._lookup is not None and (page := await store.list_unsettled(now - int(OLD_S * 1000), place)):
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
