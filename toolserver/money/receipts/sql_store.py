"""Stores receipts and the log of uncharged calls in the ledger's database."""

from collections.abc import Sequence

from toolserver.money.receipts import merkle, sql_booked, sql_log
from toolserver.money.receipts.issue import IssueReceipt, ReceiptState, RecordUncharged, StoredReceipt
from toolserver.money.receipts.log import AppendHour, BookedCall, LogLease, SignCheckpoint, SignedCheckpoint
from toolserver.money.receipts.store import BucketRecord, DayRecord, LogHead
from toolserver.sql.connection import SqlConnection, among, insert
from toolserver.sql.group_commit import GroupCommit

_COLUMNS = "id, owner, core, key, signature, at"


def has_receipts(db: SqlConnection) -> bool:
    """Return True if a receipt was ever issued and is still stored."""
    return db.execute("SELECT 1 FROM receipt LIMIT 1").fetchone() is not None


class SqlReceiptStore:
    """A `ReceiptStore` with group commit: receipts of calls that end at the same time share an fsync."""

    def __init__(self, file: GroupCommit) -> None:
        self._file = file

    async def issue(self, operation: IssueReceipt) -> StoredReceipt:
        return await self._file.together(issue_receipts, operation)

    async def record(self, operation: RecordUncharged) -> None:
        await self._file.together(record_uncharged, operation)

    async def list_hours(self, until: int) -> list[int]:
        return await self._file.read(lambda db: sql_booked.list_hours(db, until))

    async def list_booked(self, hour: int) -> list[BookedCall]:
        return await self._file.apart(lambda db: sql_booked.list_booked(db, hour))

    async def append(self, operation: AppendHour) -> bool:
        return await self._file.alone(lambda db: sql_log.append_hour(db, operation), room="log")

    async def take_lease(self, lease: LogLease) -> bool:
        return await self._file.alone(lambda db: sql_log.take_log_lease(db, lease))

    async def find_bucket(self, hour: int, key: bytes) -> BucketRecord:
        return await self._file.read(lambda db: sql_booked.find_bucket(db, hour, key))

    async def sign_checkpoint(self, operation: SignCheckpoint) -> SignedCheckpoint:
        await self._file.check_rows()
        return await self._file.alone(lambda db: sql_log.sign_checkpoint(db, operation), room="log")

    async def receipt(self, id: str) -> StoredReceipt | None:
        return await self._file.read(lambda db: find_receipts(db, [id]).get(id))

    async def list_known(self, ids: Sequence[str]) -> set[str]:
        return await self._file.read(lambda db: _list_known(db, ids))

    async def head(self) -> LogHead:
        return await self._file.read(_read_head)

    async def leaf(self, index: int) -> bytes | None:
        return await self._file.read(lambda db: sql_log.find_leaf(db, index)) if index < 2**63 else None

    async def tile(self, tile: merkle.Tile) -> bytes | None:
        return await self._file.read(lambda db: sql_log.read_tile(db, tile))

    async def inclusion(self, index: int, size: int) -> list[bytes] | None:
        return await self._file.read(lambda db: sql_log.prove_inclusion(db, index, size))

    async def consistency(self, old: int, new: int) -> list[bytes] | None:
        return await self._file.read(lambda db: sql_log.prove_consistency(db, old, new))

    async def day(self, day: str, events: int) -> DayRecord:
        return await self._file.read(lambda db: sql_booked.read_day(db, day, events))

    async def days(self, limit: int) -> list[tuple[str, int]]:
        return await self._file.read(lambda db: sql_booked.list_days(db, limit))


def issue_receipts(db: SqlConnection, operations: Sequence[IssueReceipt]) -> list[StoredReceipt | Exception]:
    """Load, decide, sign and store within the caller's transaction. Return a receipt for each operation.

    Other stores call this to write receipts in the same transaction as their own tables. Signing happens on the
    writer's thread: on the event loop it would release the GIL and wait for it again after every call.
    """
    books = any(operation.sale.reason is not None for operation in operations)
    hour = sql_booked.open_hour(db) if books else sql_booked.last_hour(db)
    state = ReceiptState(find_receipts(db, [operation.needs for operation in operations]), hour)
    receipts: list[StoredReceipt | Exception] = [operation.on(state) for operation in operations]
    _store_state(db, state)
    return receipts


def record_uncharged(db: SqlConnection, operations: Sequence[RecordUncharged]) -> list[Exception | None]:
    """Book the call of each operation within the caller's transaction."""
    state = ReceiptState({}, sql_booked.open_hour(db))
    for operation in operations:
        operation.on(state)
    _store_state(db, state)
    return [None] * len(operations)


def _store_state(db: SqlConnection, state: ReceiptState) -> None:
    insert(db, f"INSERT INTO receipt({_COLUMNS}) VALUES", state.new_receipts)
    sql_booked.book_calls(db, state.new_calls)


def _read_head(db: SqlConnection) -> LogHead:
    return LogHead(sql_log.last_checkpoint(db), sql_log.log_size(db), sql_booked.last_hour(db))


def find_receipts(db: SqlConnection, ids: Sequence[str]) -> dict[str, StoredReceipt]:
    """Return the stored receipts with these ids, by id."""
    wanted, values = among(db, "id", ids)
    rows = db.execute(f"SELECT {_COLUMNS} FROM receipt WHERE {wanted}", (values,))
    return {row[0]: StoredReceipt(*row) for row in rows}


def _list_known(db: SqlConnection, ids: Sequence[str]) -> set[str]:
    wanted, values = among(db, "id", ids)
    return {id for (id,) in db.execute(f"SELECT id FROM receipt WHERE {wanted}", (values,))}


def delete_receipts(db: SqlConnection, ids: Sequence[str]) -> None:
    """Delete receipts that nobody was given, because their calls were reversed."""
    wanted, values = among(db, "id", ids)
    db.execute(f"DELETE FROM receipt WHERE {wanted}", (values,))
