"""Receipts and the log of uncharged calls in SQLite, in the file of the ledger."""

import sqlite3
from collections.abc import Sequence

import msgspec

from toolserver.receipts import merkle, sqlite_log
from toolserver.receipts.issue import IssueReceipt, ReceiptState, RecordUncharged, StoredReceipt
from toolserver.receipts.log_state import SignCheckpoint, SignedCheckpoint
from toolserver.receipts.store import DayRecord, LogHead
from toolserver.storage.bulk_rows import insert
from toolserver.storage.group_commit import GroupCommit

_COLUMNS = "id, owner, core, key, signature, at"


class SqliteReceiptStore:
    """A `ReceiptStore` over a file with group commit: receipts of calls that end at the same time share an fsync."""

    def __init__(self, file: GroupCommit) -> None:
        self._file = file

    async def issue(self, operation: IssueReceipt) -> StoredReceipt:
        return await self._file.together(issue_receipts, operation)

    async def record(self, operation: RecordUncharged) -> None:
        await self._file.together(record_uncharged, operation)

    async def sign_checkpoint(self, operation: SignCheckpoint) -> SignedCheckpoint:
        await self._file.check_rows()
        return await self._file.alone(lambda db: sqlite_log.sign_checkpoint(db, operation))

    async def receipt(self, id: str) -> StoredReceipt | None:
        return await self._file.read(lambda db: find_receipts(db, [id]).get(id))

    async def list_known(self, ids: Sequence[str]) -> set[str]:
        return await self._file.read(lambda db: _list_known(db, ids))

    async def head(self) -> LogHead:
        return await self._file.read(lambda db: LogHead(sqlite_log.last_checkpoint(db), sqlite_log.log_size(db)))

    async def leaf(self, index: int) -> bytes | None:
        return await self._file.read(lambda db: sqlite_log.find_leaf(db, index)) if index < 2**63 else None

    async def tile(self, tile: merkle.Tile) -> bytes | None:
        return await self._file.read(lambda db: sqlite_log.read_tile(db, tile))

    async def inclusion(self, index: int, size: int) -> list[bytes] | None:
        return await self._file.read(lambda db: sqlite_log.prove_inclusion(db, index, size))

    async def consistency(self, old: int, new: int) -> list[bytes] | None:
        return await self._file.read(lambda db: sqlite_log.prove_consistency(db, old, new))

    async def day(self, day: str, events: int) -> DayRecord:
        return await self._file.read(lambda db: sqlite_log.read_day(db, day, events))

    async def days(self, limit: int) -> list[tuple[str, int]]:
        return await self._file.read(lambda db: sqlite_log.list_days(db, limit))


def issue_receipts(db: sqlite3.Connection, operations: Sequence[IssueReceipt]) -> list[StoredReceipt | Exception]:
    """Load, decide, sign and store within the caller's transaction: a receipt for each operation, in their order.

    Other SQLite stores call this to write receipts in the same transaction as their own tables. Signing happens on the
    writer's thread: on the event loop it would release the GIL and wait for it again after every call.
    """
    state = ReceiptState(find_receipts(db, [operation.needs for operation in operations]), sqlite_log.log_size(db))
    receipts: list[StoredReceipt | Exception] = [operation.on(state) for operation in operations]
    _store_state(db, state)
    return receipts


def record_uncharged(db: sqlite3.Connection, operations: Sequence[RecordUncharged]) -> list[Exception | None]:
    """Append a leaf for each operation within the caller's transaction."""
    state = ReceiptState({}, sqlite_log.log_size(db))
    for operation in operations:
        operation.on(state)
    _store_state(db, state)
    return [None] * len(operations)


def _store_state(db: sqlite3.Connection, state: ReceiptState) -> None:
    insert(db, f"INSERT INTO receipt({_COLUMNS}) VALUES", state.new_receipts)
    if state.new_events:
        sqlite_log.append_leaves(db, state.new_events, state.log_size)


def find_receipts(db: sqlite3.Connection, ids: Sequence[str]) -> dict[str, StoredReceipt]:
    """The stored receipts among these ids."""
    sql = f"SELECT {_COLUMNS} FROM receipt WHERE id IN (SELECT value FROM json_each(?))"
    return {row[0]: StoredReceipt(*row) for row in db.execute(sql, (msgspec.json.encode(ids).decode(),))}


def _list_known(db: sqlite3.Connection, ids: Sequence[str]) -> set[str]:
    sql = "SELECT id FROM receipt WHERE id IN (SELECT value FROM json_each(?))"
    return {id for (id,) in db.execute(sql, (msgspec.json.encode(ids).decode(),))}


def delete_receipts(db: sqlite3.Connection, ids: Sequence[str]) -> None:
    """Delete receipts that nobody was given, because their calls were taken back."""
    db.execute("DELETE FROM receipt WHERE id IN (SELECT value FROM json_each(?))", (msgspec.json.encode(ids).decode(),))
