"""Charges with their receipts in SQLite, where both stand in the ledger's file, and in memory."""

import copy
import hashlib
from collections.abc import Sequence
from functools import partial

import msgspec

from toolserver.calls.charge_with_receipt import ChargeWithReceipt
from toolserver.ledger.memory import MemoryLedger
from toolserver.ledger.operations import Settle
from toolserver.ledger.protocol import Settlement
from toolserver.ledger.sqlite import SqliteLedger, unavailable
from toolserver.ledger.sqlite_tables import release_undelivered
from toolserver.ledger.state import DIED
from toolserver.receipts.issue import RecordUncharged, StoredReceipt
from toolserver.receipts.log_buckets import BucketNamer, UnchargedCall
from toolserver.receipts.memory import MemoryReceiptStore
from toolserver.receipts.sign import receipt_id
from toolserver.receipts.sqlite import delete_receipts, find_receipts, issue_receipts, record_uncharged
from toolserver.storage.connection import SqlConnection
from toolserver.storage.errors import OutcomeUnknown, StorageFailed
from toolserver.storage.group_commit import GroupCommit

Charged = tuple[Settlement, StoredReceipt]


class SqliteChargeStore:
    """A `ChargeStore` over the ledger's file: charges that are made at the same time share a transaction.

    `buckets` names those of the log of uncharged calls.
    """

    def __init__(self, ledger: SqliteLedger, buckets: BucketNamer) -> None:
        self._ledger, self._buckets = ledger, buckets

    async def charge(self, operation: ChargeWithReceipt) -> Charged:
        try:
            return await self._ledger.file.together(self._charge_group, operation)
        except OutcomeUnknown as failure:
            self.withdraw(operation.charge.call_id, operation.charge.key)  # it may have been charged
            raise unavailable(failure) from failure
        except StorageFailed as failure:
            raise unavailable(failure) from failure

    def withdraw(self, call_id: str, key: str) -> None:
        self._ledger.file.soon(self._withdraw_group, (call_id, key))

    async def release_undelivered(self) -> int:
        """Release the charges whose answers were not sent when the process before ended: their credits, the answers
        kept for their Idempotency-Keys, and an event in the public log, in one transaction. Returns how many.
        """
        return await self._ledger.file.alone(partial(_release_undelivered, self._buckets, self._ledger.now()))

    def _charge_group(self, db: SqlConnection, operations: Sequence[ChargeWithReceipt]) -> list[Charged | Exception]:
        """An outcome for each operation. A receipt that cannot be issued raises and undoes the transaction; the file
        then applies each operation of the group in a transaction of its own.
        """
        settled = self._ledger.apply_group(db, [operation.charge for operation in operations])
        drafts = [
            operation.issue(outcome)
            for operation, outcome in zip(operations, settled, strict=True)
            if not isinstance(outcome, Exception)
        ]
        receipts = iter(issue_receipts(db, drafts))
        return [
            outcome if isinstance(outcome, Exception) else (outcome, _check_issued(next(receipts)))
            for outcome in settled
        ]

    def _withdraw_group(self, db: SqlConnection, calls: Sequence[tuple[str, str]]) -> list[Exception | None]:
        """Release calls, each with the key of its account, so that one that is just being charged is waited for."""
        outcomes = self._ledger.apply_group(db, [Settle(call, "cancelled", key=key) for call, key in calls])
        delete_receipts(db, [receipt_id(call) for call, _ in calls])
        return [outcome if isinstance(outcome, Exception) else None for outcome in outcomes]


def _release_undelivered(buckets: BucketNamer, now: int, db: SqlConnection) -> int:
    released = release_undelivered(db, now)
    receipts = find_receipts(db, [receipt_id(hold.call_id) for hold in released])
    calls = []
    for hold in released:
        receipt = receipts.get(receipt_id(hold.call_id))
        owner = f"account {hold.account}" if receipt is None else receipt.owner
        calls.append(_died(now / 1000, owner, hold.endpoint, hold.credits, receipt))
    record_uncharged(db, [RecordUncharged(buckets, call) for call in calls])
    return len(released)


async def record_died(file: GroupCommit, buckets: BucketNamer, call_ids: Sequence[str], now: float) -> None:
    """Record in the public log those of a follower's calls that have a receipt and that their owner releases now.

    `now` is in epoch seconds.
    """
    await file.alone(partial(_record_died, buckets, call_ids, now))


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
    """The receipt. Raises the exception that stands in its place."""
    if isinstance(receipt, Exception):
        raise receipt
    return receipt


class MemoryChargeStore:
    """A `ChargeStore` over a ledger and receipts in memory."""

    def __init__(self, ledger: MemoryLedger, receipts: MemoryReceiptStore) -> None:
        self._ledger, self._receipts = ledger, receipts

    async def charge(self, operation: ChargeWithReceipt) -> Charged:
        before = copy.deepcopy(self._ledger.books)
        try:
            settled = operation.charge.on(self._ledger.books)
            return settled, await self._receipts.issue(operation.issue(settled))
        except Exception:
            self._ledger.books = before
            raise

    def withdraw(self, call_id: str, key: str) -> None:
        Settle(call_id, "cancelled").on(self._ledger.books)
        self._receipts.receipts.pop(receipt_id(call_id), None)
