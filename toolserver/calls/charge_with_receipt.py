"""Charges for a cached answer: the charge and its receipt are one value, stored in one transaction with one fsync."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple, Protocol

from toolserver.calls.kept_results import KeyedCharge, KeyName
from toolserver.clock import Clock
from toolserver.money.ledger.operations import Charge
from toolserver.money.ledger.protocol import Settlement
from toolserver.money.ledger.state import key_of
from toolserver.money.receipts.issue import IssueReceipt, StoredReceipt
from toolserver.money.receipts.service import ReceiptService
from toolserver.money.receipts.sign import Sale, SignedReceipt


class ChargeWithReceipt(NamedTuple):
    """A charge, the receipt to issue for its settlement, and the key with its result, stored atomically."""

    charge: Charge
    issue: Callable[[Settlement], IssueReceipt]
    keyed: KeyedCharge | None = None

    @property
    def key_name(self) -> KeyName | None:
        """The name of the key, or None."""
        return None if self.keyed is None else self.keyed.claim.name


class ChargeStore(Protocol):
    """The ledger and the receipts of one service, written together."""

    async def charge(self, operation: ChargeWithReceipt) -> tuple[Settlement, StoredReceipt]:
        """Charge, issue the receipt and keep the result for the key. All are durable on return.

        Raises:
            KeyTaken: the key belongs to another call; nothing was charged.
            PaymentRequired: the token cannot pay, or the store cannot be written.
            Exception: the receipt could not be issued, and nothing was charged.
        """
        ...

    def withdraw(self, call_id: str, key: str, name: KeyName | None = None) -> None:
        """Release a charge of the account with this key, and delete its receipt and the result kept under this name.

        The release is queued behind pending writes, and this method does not wait for it.
        """
        ...


class ReceiptedCharges:
    """Charges tokens and signs receipts over one store."""

    def __init__(self, store: ChargeStore, receipts: ReceiptService, clock: Clock) -> None:
        self._store, self._receipts, self._clock = store, receipts, clock

    async def charge(
        self,
        call_id: str,
        token: str,
        credits: int,
        *,
        endpoint: str,
        sale: Callable[[Settlement], Sale],
        keyed: KeyedCharge | None = None,
    ) -> tuple[Settlement, SignedReceipt]:
        """Charge a token, sign the receipt that `sale` describes and keep the result for the key, atomically.

        The store may call `sale` and the function that packs the result in its own thread. If the caller is cancelled
        in the meantime, the charge is withdrawn.

        Raises:
            KeyTaken: the key belongs to another call, so nothing was charged.
            PaymentRequired: the token cannot pay, or the store cannot be written.
            Exception: no receipt could be made, so nothing was charged.
        """
        now = self._clock.time()
        operation = ChargeWithReceipt(
            Charge(call_id, key_of(token), credits, endpoint, "", undelivered=True),
            lambda settled: self._receipts.issue(sale(settled), now),
            keyed,
        )
        try:
            settled, receipt = await self._store.charge(operation)
        except asyncio.CancelledError:
            self._store.withdraw(call_id, operation.charge.key, operation.key_name)
            raise
        return settled, SignedReceipt(receipt.id, receipt.jws)
