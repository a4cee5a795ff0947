"""Charges for a cached answer: the charge, its receipt and the kept result are one value, stored with one fsync.

The store is the ledger's database, where charges and receipts are both.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import msgspec

from toolserver.calls.idempotency import KeyedCharge, KeyName, KeyTaken, NewKeyedCall
from toolserver.calls.idempotency_store import delete_keyed, find_keyed, store_keyed
from toolserver.clock import Clock
from toolserver.money.ledger.operations import Charge, Settle
from toolserver.money.ledger.protocol import Settlement
from toolserver.money.ledger.sql_tables import release_undelivered
from toolserver.money.ledger.state import DIED, key_of
from toolserver.money.ledger.store import SqlLedger, unavailable
from toolserver.money.receipts.issue import IssueReceipt, ReceiptIssuer, RecordUncharged
from toolserver.money.receipts.log import BucketNamer, UnchargedCall
from toolserver.money.receipts.sign import Sale, SignedReceipt, StoredReceipt, receipt_id
from toolserver.money.receipts.sql_store import delete_receipts, find_receipts, issue_receipts, record_uncharged
from toolserver.sql.connection import SqlConnection
from toolserver.sql.errors import OutcomeUnknown, StorageFailed
from toolserver.sql.group_commit import GroupCommit

log = logging.getLogger(__name__)


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

    def __init__(self, store: ChargeStore, issuer: ReceiptIssuer, clock: Clock) -> None:
        self._store, self._issuer, self._clock = store, issuer, clock

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

        The store may call `sale` and the function that packs the result in its own thread. If
        the caller is cancelled in the meantime, the charge is withdrawn.

        Raises:
            KeyTaken: the key belongs to another call, so nothing was charged.
            PaymentRequired: the token cannot pay, or the store cannot be written.
            Exception: no receipt could be made, so nothing was charged.
        """
        now = self._clock.time()
        operation = ChargeWithReceipt(
            Charge(call_id, key_of(token), credits, endpoint, "", undelivered=True),
            lambda settled: IssueReceipt(self._issuer, sale(settled), now),
            keyed,
        )
        try:
            settled, receipt = await self._store.charge(operation)
        except asyncio.CancelledError:
            self._store.withdraw(call_id, operation.charge.key, operation.key_name)
            raise
        return settled, SignedReceipt(receipt.id, receipt.jws)


Charged = tuple[Settlement, StoredReceipt]


class SqlChargeStore:
    """A `ChargeStore` over the ledger's file. Simultaneous charges share a transaction.

    `buckets` names the buckets of the log of uncharged calls.
    """

    def __init__(self, ledger: SqlLedger, buckets: BucketNamer) -> None:
        self._ledger, self._buckets = ledger, buckets

    async def charge(self, operation: ChargeWithReceipt) -> Charged:
        try:
            return await self._ledger.file.together(self._charge_group, operation)
        except OutcomeUnknown as failure:
            self.withdraw(
                operation.charge.call_id, operation.charge.key, operation.key_name
            )  # it may have been charged
            raise unavailable(failure) from failure
        except StorageFailed as failure:
            raise unavailable(failure) from failure

    def withdraw(self, call_id: str, key: str, name: KeyName | None = None) -> None:
        self._ledger.file.soon(self._withdraw_group, (call_id, key, name))

    async def release_undelivered(self) -> int:
        """Release the calls whose answers the previous process did not send before it ended, and return their number.

        One transaction returns the credits, deletes the answers kept for their
        Idempotency-Keys, and adds events to the public log.
        """
        return await self._release(only_due=False)

    async def renew_and_release(self) -> int:
        """Renew the leases of calls in progress, release the calls whose leases have ended, and return their number.

        These are calls whose answers could not be sent, and where instances share the ledger, those of a dead process.
        """
        await self._ledger.renew_leases()
        if not await self._ledger.has_due_calls():
            return 0
        if released := await self._release(only_due=True):
            log.warning("calls whose answers were not sent were released", extra={"count": released})
        return released

    async def _release(self, *, only_due: bool) -> int:
        now = self._ledger.now()
        return await self._ledger.file.alone(lambda db: _release_undelivered(db, self._buckets, now, only_due=only_due))

    def _charge_group(self, db: SqlConnection, operations: Sequence[ChargeWithReceipt]) -> list[Charged | Exception]:
        """Return an outcome for each operation.

        If a receipt cannot be issued, or another instance stores the same key at the same
        time, this raises and undoes the transaction; the file then applies each operation of
        the group in a separate transaction.
        """
        named = [name for name in (operation.key_name for operation in operations) if name is not None]
        if not named:
            return self._charge_new(db, operations)
        taken = find_keyed(db, named, self._ledger.now())
        charged = iter(self._charge_new(db, [operation for operation in operations if operation.key_name not in taken]))
        return [
            KeyTaken(taken[name]) if (name := operation.key_name) in taken else next(charged)
            for operation in operations
        ]

    def _charge_new(self, db: SqlConnection, operations: Sequence[ChargeWithReceipt]) -> list[Charged | Exception]:
        """Return an outcome for each operation. Their keys are not in use yet."""
        settled = self._ledger.apply_group(db, [operation.charge for operation in operations])
        drafts = [
            operation.issue(outcome)
            for operation, outcome in zip(operations, settled, strict=True)
            if not isinstance(outcome, Exception)
        ]
        receipts = iter(issue_receipts(db, drafts))
        charged = [
            outcome if isinstance(outcome, Exception) else (outcome, _check_issued(next(receipts)))
            for outcome in settled
        ]
        if results := list(_pack_results(operations, charged)):
            store_keyed(db, results, self._ledger.now())
        return charged

    def _withdraw_group(
        self, db: SqlConnection, calls: Sequence[tuple[str, str, KeyName | None]]
    ) -> list[Exception | None]:
        """Release calls, each with the key of its account, so that a charge in progress is waited for."""
        outcomes = self._ledger.apply_group(db, [Settle(call, "cancelled", key=key) for call, key, _ in calls])
        delete_receipts(db, [receipt_id(call) for call, *_ in calls])
        for call, _, name in calls:
            if name is not None:
                delete_keyed(db, name, call)
        return [outcome if isinstance(outcome, Exception) else None for outcome in outcomes]


def _pack_results(
    operations: Sequence[ChargeWithReceipt], charged: Sequence[Charged | Exception]
) -> Iterator[NewKeyedCall]:
    """Return the results to keep for the keys of the charged operations."""
    for operation, outcome in zip(operations, charged, strict=True):
        if (keyed := operation.keyed) is not None and not isinstance(outcome, Exception):
            yield NewKeyedCall(keyed.claim, operation.charge.call_id, keyed.pack(*outcome))


def _release_undelivered(db: SqlConnection, buckets: BucketNamer, now: int, *, only_due: bool) -> int:
    released = release_undelivered(db, now, only_due=only_due)
    receipts = find_receipts(db, [receipt_id(hold.call_id) for hold in released])
    calls = []
    for hold in released:
        receipt = receipts.get(receipt_id(hold.call_id))
        owner = f"account {hold.account}" if receipt is None else receipt.owner
        calls.append(_died(now / 1000, owner, hold.endpoint, hold.credits, receipt))
    record_uncharged(db, [RecordUncharged(buckets, call) for call in calls])
    return len(released)


async def record_died(file: GroupCommit, buckets: BucketNamer, died: list[str], clock: Clock) -> None:
    """Record in the public log the calls of a follower that have a receipt and that their owner now releases.

    `died` are their call_ids, which are removed from the list once they are recorded.
    """
    if call_ids := died.copy():
        await file.alone(partial(_record_died, buckets, call_ids, clock.time()))
        del died[: len(call_ids)]


def _record_died(buckets: BucketNamer, call_ids: Sequence[str], now: float, db: SqlConnection) -> None:
    calls = []
    for receipt in find_receipts(db, [receipt_id(call_id) for call_id in call_ids]).values():
        core = msgspec.json.decode(receipt.core)
        calls.append(_died(now, receipt.owner, core["endpoint"], core["cost"], receipt))
    record_uncharged(db, [RecordUncharged(buckets, call) for call in calls])


def _died(now: float, owner: str, endpoint: str, credits: int, receipt: StoredReceipt | None) -> UnchargedCall:
    digest = None if receipt is None else hashlib.sha256(receipt.core).hexdigest()
    return UnchargedCall(now, owner, DIED, endpoint, credits, digest)


def _check_issued(receipt: StoredReceipt | Exception) -> StoredReceipt:
    """Return the receipt, or raise the exception that replaces it."""
    if isinstance(receipt, Exception):
        raise receipt
    return receipt
