"""Charging for a cached answer: the charge and its receipt are one value, stored in one transaction with one fsync."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple, Protocol

from toolserver.clock import Clock
from toolserver.ledger.operations import Charge
from toolserver.ledger.protocol import Settlement
from toolserver.ledger.state import key_of
from toolserver.receipts.issue import IssueReceipt, StoredReceipt
from toolserver.receipts.service import ReceiptService
from toolserver.receipts.sign import Sale, SignedReceipt


class ChargeWithReceipt(NamedTuple):
    """A charge, and the receipt to issue for its settlement. A store applies both or neither."""

    charge: Charge
    issue: Callable[[Settlement], IssueReceipt]


class ChargeStore(Protocol):
    """The ledger and the receipts of one service, written together."""

    async def charge(self, operation: ChargeWithReceipt) -> tuple[Settlement, StoredReceipt]:
        """Charge and issue the receipt; both are durable on return.

        Raises:
            PaymentRequired: the token cannot pay, or the store cannot be written.
            Exception: the receipt could not be issued, and nothing was charged.
        """
        ...

    def withdraw(self, call_id: str, key: str) -> None:
        """Release a charge of the account with this key and delete its receipt, after what is waiting to be written.

        Nobody waits for it.
        """
        ...


class ReceiptedCharges:
    """Charges tokens and signs receipts over one store."""

    def __init__(self, store: ChargeStore, receipts: ReceiptService, clock: Clock) -> None:
        self._store, self._receipts, self._clock = store, receipts, clock

    async def charge(
        self, call_id: str, token: str, credits: int, *, endpoint: str, sale: Callable[[Settlement], Sale]
    ) -> tuple[Settlement, SignedReceipt]:
        """Charge a token and sign the receipt that `sale` describes: both, or nothing. The store may call `sale` on a
        thread of its own. The charge of a caller who is cancelled meanwhile is withdrawn.

        Raises:
            PaymentRequired: the token cannot pay, or the store cannot be written.
            Exception: no receipt could be made, so nothing was charged.
        """
        now = self._clock.time()
        operation = ChargeWithReceipt(
            Charge(call_id, key_of(token), credits, endpoint, "", undelivered=True),
            lambda settled: self._receipts.issue(sale(settled), now),
        )
        try:
            settled, receipt = await self._store.charge(operation)
        except asyncio.CancelledError:
            self._store.withdraw(call_id, operation.charge.key)
            raise
        return settled, SignedReceipt(receipt.id, receipt.jws)
