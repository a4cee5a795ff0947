"""Charges with their receipts in SQLite, where both stand in the ledger's file, and in memory."""

import copy
import hashlib
import sqlite3
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
from toolserver.receipts.log_state import UnchargedCall
from toolserver.receipts.memory import MemoryReceiptStore
from toolserver.receipts.sign import receipt_id
from toolserver.receipts.sqlite import delete_receipts, find_receipts, issue_receipts, record_uncharged
from toolserver.storage.errors import StorageFailed
from toolserver.storage.group_commit import GroupCommit

Charged = tuple[Settlement, StoredReceipt]


class SqliteChargeStore:
    """A `ChargeStore` over the ledger's file: charges that are made at the same time share a transaction."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self._ledger = ledger

    async def charge(self, operation: ChargeWithReceipt) -> Charged:
        try:
            return await self._ledger.file.together(self._charge_group, operation)
        except StorageFailed as failure:
            raise unavailable(failure) from failure

    def withdraw(self, call_id: str) -> None:
        self._ledger.file.soon(self._withdraw_group, call_id)

    async def release_undelivered(self) -> int:
        """Release the charges whose answers were not sent when the process before ended: their credits, the answers
        kept for their Idempotency-Keys, and an event in the public log, in one transaction. Returns how many.
        """
        return await self._ledger.file.alone(partial(_release_undelivered, self._ledger.now()))

    def _charge_group(
        self, db: sqlite3.Connection, operations: Sequence[ChargeWithReceipt]
    ) -> list[Charged | Exception]:
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

    def _withdraw_group(self, db: sqlite3.Connection, calls: Sequence[str]) -> list[Exception | None]:
        outcomes = self._ledger.apply_group(db, [Settle(call, "cancelled") for call in calls])
        delete_receipts(db, [receipt_id(call) for call in calls])
        return [outcome if isinstance(outcome, Exception) else None for outcome in outcomes]


def _release_undelivered(now: int, db: sqlite3.Connection) -> int:
    released = release_undelivered(db, now)
    receipts = find_receipts(db, [receipt_id(hold.call_id) for hold in released])
    events = []
    for hold in released:
        receipt = receipts.get(receipt_id(hold.call_id))
        digest = None if receipt is None else hashlib.sha256(receipt.core).hexdigest()
        events.append(RecordUncharged(UnchargedCall(now / 1000, DIED, hold.endpoint, hold.credits, digest)))
    record_uncharged(db, events)
    return len(released)


async def record_died(file: GroupCommit, call_ids: Sequence[str], now: float) -> None:
    """Record in the public log those of a follower's calls that have a receipt and that their owner releases now.

    `now` is in epoch seconds.
    """
    await file.alone(partial(_record_died, call_ids, now))


def _record_died(call_ids: Sequence[str], now: float, db: sqlite3.Connection) -> None:
    events = []
    for receipt in find_receipts(db, [receipt_id(call_id) for call_id in call_ids]).values():
        core, digest = msgspec.json.decode(receipt.core), hashlib.sha256(receipt.core).hexdigest()
        events.append(RecordUncharged(UnchargedCall(now, DIED, core["endpoint"], core["cost"], digest)))
    record_uncharged(db, events)


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

    def withdraw(self, call_id: str) -> None:
        Settle(call_id, "cancelled").on(self._ledger.books)
        self._receipts.receipts.pop(receipt_id(call_id), None)
