"""Uses a followed ledger for callers that store their calls, and retry until they know how each of them ended.

After a crash, the caller of an API is gone, so the journal releases its calls. A webhook is not gone: its fire is in
the database, and a delivery that its receiver accepted is owed, even if the owner could not be reached at that moment.
So only the caller releases a call here, and the release stays in the journal until the owner has acknowledged it.
"""

from toolserver.errors import BillingUnavailable
from toolserver.money.ledger.client.codec import denial, question, reservation, settlement
from toolserver.money.ledger.client.http import OwnerRefusal, Unanswered
from toolserver.money.ledger.client.ledger import HttpLedger
from toolserver.money.ledger.client.messages import COMMIT, VALIDATE, Commit, Committed, Validated
from toolserver.money.ledger.operations import Reserve
from toolserver.money.ledger.protocol import UnknownCall
from toolserver.money.ledger.state import Reservation, Settlement, Who, key_of


class KeptCalls:
    """Reserves and settles as a `Ledger` does. Every step may be repeated, even after a crash."""

    def __init__(self, ledger: HttpLedger) -> None:
        self._ledger = ledger

    async def reserve(
        self, call_id: str, who: Who, credits: int, *, endpoint: str, ttl_s: float, service: str = ""
    ) -> Reservation:
        Reserve(call_id, key_of(who), credits, endpoint)  # an amount that no ledger accepts is not sent
        service = service or self._ledger.service
        asked = question(who, credits, call_id=call_id, endpoint=endpoint, ttl_s=ttl_s, service=service)
        try:
            said = await self._ledger.owner.ask(VALIDATE, asked, Validated)
        except Unanswered as failure:
            raise _unavailable() from failure
        if isinstance(said, OwnerRefusal):
            raise denial(said, credits)
        return reservation(call_id, credits, said)

    async def settle(self, call_id: str, *, no_charge: str | None) -> Settlement:
        if no_charge is not None:
            return await self._ledger.settle(call_id, no_charge=no_charge)
        asked = Commit(call_id=call_id, reservation_id=call_id, outcome="charge")
        try:
            said = await self._ledger.owner.ask(COMMIT, asked, Committed)
        except Unanswered as failure:
            raise _unavailable() from failure
        if isinstance(said, OwnerRefusal):
            raise UnknownCall(f"{call_id}: {said.reason}")
        return settlement(call_id, said)

    async def balance(self, who: Who) -> int:
        return await self._ledger.balance(who)


def _unavailable() -> BillingUnavailable:
    return BillingUnavailable("The credit ledger cannot be reached at the moment.", headers={"Retry-After": "5"})
