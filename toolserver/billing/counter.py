"""Selling what is at hand: the charge and its receipt in one transaction, one wait for the disk."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from typing import NamedTuple

from toolserver.billing.books import key_of
from toolserver.billing.evidence import Draft, Evidence
from toolserver.billing.ledger import Settlement
from toolserver.billing.receipts import Sale, Signed, receipt_id
from toolserver.billing.rules import Charge, Settle
from toolserver.billing.sqlite import SqliteLedger, unavailable
from toolserver.clock import Clock
from toolserver.storage.durable import StorageClosed


class _Asked(NamedTuple):
    """A charge, and what its receipt is to say once it is settled."""

    charge: Charge
    sale: Callable[[Settlement], Sale]
    now: float


class Counter:
    """Sells over the books and the receipts of one file."""

    def __init__(self, ledger: SqliteLedger, evidence: Evidence, clock: Clock) -> None:
        self._ledger, self._evidence, self._clock = ledger, evidence, clock

    async def sell(
        self, call_id: str, token: str, credits: int, *, endpoint: str, sale: Callable[[Settlement], Sale]
    ) -> tuple[Settlement, Signed]:
        """Charge a token and sign the receipt: both, or nothing. `sale` is called by the writer's thread.

        Raises:
            PaymentRequired: the token cannot pay, or the books cannot be written.
            Exception: no receipt could be made, so nothing was charged.
        """
        asked = _Asked(Charge(call_id, key_of(token), credits, endpoint, ""), sale, self._clock.time())
        try:
            return await self._ledger.file.together(self._sold, asked)
        except asyncio.CancelledError:
            self.take_back(call_id)
            raise
        except (sqlite3.Error, StorageClosed) as failure:
            raise unavailable(failure) from failure

    def take_back(self, call_id: str) -> None:
        """The caller is gone: release the charge, next in the queue, and drop the receipt that nobody was given."""
        self._ledger.file.soon(self._taken_back, call_id)

    def _sold(self, db: sqlite3.Connection, group: Sequence[_Asked]) -> list[tuple[Settlement, Signed] | Exception]:
        settled = self._ledger.decided(db, [asked.charge for asked in group])
        drafts = [
            Draft(asked.sale(outcome), asked.now)
            for asked, outcome in zip(group, settled, strict=True)
            if not isinstance(outcome, Exception)
        ]
        receipts = iter(self._evidence.write(db, drafts))
        told: list[tuple[Settlement, Signed] | Exception] = []
        for outcome in settled:
            if isinstance(outcome, Exception):
                told.append(outcome)
                continue
            receipt = next(receipts)
            told.append(receipt if isinstance(receipt, Exception) else (outcome, Signed(receipt.id, receipt.jws)))
        return told

    def _taken_back(self, db: sqlite3.Connection, calls: Sequence[str]) -> list[Exception | None]:
        outcomes = self._ledger.decided(db, [Settle(call, "cancelled") for call in calls])
        db.executemany("DELETE FROM receipt WHERE id=?", [(receipt_id(call),) for call in calls])
        return [outcome if isinstance(outcome, Exception) else None for outcome in outcomes]
