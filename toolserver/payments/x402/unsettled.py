"""Payments of which nobody knows the end are looked up on the chain once a minute, whether their sender asks or not."""

import logging

from toolserver.errors import PaymentRequired
from toolserver.payments.units import credits_for
from toolserver.payments.x402 import books
from toolserver.payments.x402.books import Credit, Open
from toolserver.payments.x402.settling import LATE_S, Seen, Settling, Witness
from toolserver.payments.x402.topup import owner_of
from toolserver.payments.x402.wire import Accepted, Payment

log = logging.getLogger(__name__)

LOOK_S, OLD_S = 60.0, 60.0
_NOTHING = Accepted("", "", "", "", "")


class Unsettled:
    """Looks after them. A top-up of a known token is credited; for everything else its sender has to come back."""

    def __init__(self, settling: Settling, witness: Witness) -> None:
        self._settling, self._witness = settling, witness

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._settling.clock.sleep(LOOK_S)
            try:
                await self.look()
            except Exception:
                log.exception("unsettled payments could not be looked at")

    async def look(self) -> None:
        """Look once at everything that is old enough not to be under way."""
        before = int((self._settling.clock.time() - OLD_S) * 1000)
        for row in await self._settling.file.read(lambda db: books.open_since(db, before)):
            payment = self._payment(row)
            seen = await self._witness(payment)
            if seen is not None:
                await self._settling.alone(payment, lambda row=row, seen=seen: self._end(row, seen))  # type: ignore[misc]

    async def _end(self, row: Open, seen: Seen) -> None:
        kept = await self._settling.file.read(lambda db: books.find(db, row.payload))
        if kept is None or kept.state != "settling":
            return  # its sender came back meanwhile
        facts = {"amount": row.amount, "payer": f"0x{row.payer.hex()}"}
        if seen.tx is not None:
            await self._made(row, seen.tx)
            log.warning("a payment turned out to be settled", extra=facts | {"tx": f"0x{seen.tx.hex()}"})
        elif seen.state == "void" or seen.at > row.valid_before + LATE_S:
            await self._settling.file.alone(lambda db: books.drop(db, row.payload))
            log.warning("a payment turned out never to be made", extra=facts)

    async def _made(self, row: Open, tx: bytes) -> None:
        now, owner = int(self._settling.clock.time() * 1000), owner_of(row.request)
        if owner is not None:
            credit = Credit(row.payload, tx, owner, credits_for(row.amount), None, None)
            try:
                await self._settling.file.alone(lambda db: books.credit(db, credit, now))
                return
            except PaymentRequired:
                log.error("a settled top-up could not be credited to its token", extra={"tx": f"0x{tx.hex()}"})
        await self._settling.file.alone(lambda db: books.settled(db, row.payload, tx, now))

    def _payment(self, row: Open) -> Payment:
        """As much of it as the chain can be asked about."""
        payee = self._settling.terms.pay_to
        return Payment(row.payload, row.payer, payee, row.amount, 0, row.valid_before, row.nonce, b"", _NOTHING)
