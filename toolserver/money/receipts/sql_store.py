"""Stores receipts, uncharged calls and their log in the ledger's database.

Uncharged calls are booked as they happen. The tables of calls, leaves and nodes refuse every
change of a row. Functions over a connection run inside a transaction that their caller
opened.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from toolserver.money.ledger.sql_removed import read_horizon
from toolserver.money.ledger.sql_removed_names import find_months
from toolserver.money.receipts import merkle
from toolserver.money.receipts.issue import (
    IssueReceipt,
    NewReceipt,
    PackedReceipt,
    ReceiptState,
    RecordUncharged,
    pack_id,
    pack_receipt,
    unpack_id,
    unpack_receipt,
)
from toolserver.money.receipts.log import (
    NOT_YET,
    AppendHour,
    BookedCall,
    DaySum,
    LogLease,
    LogMark,
    Place,
    SignCheckpoint,
    SignedCheckpoint,
    day_of,
    hours_of,
    sort_receipts,
)
from toolserver.money.receipts.sign import StoredReceipt
from toolserver.sql.connection import SqlConnection, among, among_values, hold_alone, hold_together, insert
from toolserver.sql.errors import RowsRewritten
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.leases import take_lease
from toolserver.sql.ledger_place import LedgerPlace, read_place

_WHOLE = "SELECT id, owner, core, key, signature, at FROM receipt"  # as versions before 0029 stored them
_PACKED = f"""SELECT f.terms, {", ".join(f"p.{name}" for name in PackedReceipt._fields)}
  FROM packed_receipt p LEFT JOIN receipt_form f ON f.number = p.form"""
PAGE = 2_000  # receipts in memory at a time


def has_receipts(db: SqlConnection) -> bool:
    """Return True if a receipt was ever issued and is still stored."""
    tables = ("packed_receipt", "receipt")
    return any(db.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None for table in tables)


def has_signed_log(db: SqlConnection) -> bool:
    """Return True if the log of uncharged calls was ever signed."""
    return last_checkpoint(db) is not None


class LogHead(NamedTuple):
    """The last signed checkpoint, if any, the number of leaves now, and the last hour that was appended or NOT_YET."""

    last: SignedCheckpoint | None
    size: int
    closed: int


class DayCall(NamedTuple):
    """An uncharged call. `seq` is the number of its leaf, or None while its hour is not in the
    log; `at` is in epoch milliseconds.
    """

    seq: int | None
    at: int
    reason: str
    endpoint: str
    credits: int
    receipt: bytes | None


class DayRecord(NamedTuple):
    """The uncharged calls of one day: their sums, and the last ones, newest first. `waiting`
    counts the calls of all days that are booked and not yet in the log.
    """

    sums: list[DaySum]
    calls: list[DayCall]
    waiting: int


class BucketRecord(NamedTuple):
    """A bucket: the number of its leaf, or None while its hour is not in the log; and the
    sorted hashes of its receipts, or None if they were archived and removed.
    """

    seq: int | None
    receipts: list[bytes] | None


class SqlReceiptStore:
    """Receipts and the log of uncharged calls, stored durably.

    Receipts of calls that end at the same time share an fsync. Any method may raise
    StorageFailed; then nothing was written.
    """

    def __init__(self, file: GroupCommit) -> None:
        self._file = file

    async def issue(self, operation: IssueReceipt) -> StoredReceipt:
        """Store a receipt and, if the call was not charged, book the call: both or neither."""
        return await self._file.together(issue_receipts, operation)

    async def record(self, operation: RecordUncharged) -> None:
        """Book an uncharged call that has no receipt."""
        await self._file.together(record_uncharged, operation)

    async def list_hours(self, until: int) -> list[int]:
        """Return the hours before `until` that have booked calls and are not in the log, in ascending order."""
        return await self._file.read(lambda db: list_hours(db, until))

    async def list_booked(self, hour: int) -> list[BookedCall]:
        """Return the calls that are booked in an hour. This may take long, but blocks no other reader or writer."""
        return await self._file.apart(lambda db: list_booked(db, hour))

    async def append(self, operation: AppendHour) -> bool:
        """Append an hour to the log. Return False, with nothing changed, if another process
        may append now, or if the hour is in the log already or not as it was read.

        No call may be booked in the hour between the count of its calls and the end of the
        transaction.
        """
        return await self._file.alone(lambda db: append_hour(db, operation), room="log")

    async def take_lease(self, lease: LogLease) -> bool:
        """Take or extend the right to append. Return False if another process has it."""
        return await self._file.alone(lambda db: take_log_lease(db, lease))

    async def find_bucket(self, hour: int, key: bytes) -> BucketRecord:
        """Return a bucket. A bucket in which nothing was booked has neither a leaf nor receipts."""
        return await self._file.read(lambda db: find_bucket(db, hour, key))

    async def sign_checkpoint(self, operation: SignCheckpoint) -> SignedCheckpoint:
        """Sign the log as it is now and store the checkpoint. Raises LogForked; then the last checkpoint stays."""
        await self._file.check_rows()
        return await self._file.alone(lambda db: sign_checkpoint(db, operation), room="log")

    async def receipt(self, id: str) -> StoredReceipt | None:
        """Return a receipt by its id, or None if there is none."""
        return await self._file.read(lambda db: find_receipts(db, [id]).get(id))

    async def find_month(self, id: str) -> str | None:
        """Return the month whose archive has a receipt that was removed, or None."""
        return await self._file.read(lambda db: find_month(db, id))

    async def list_known(self, ids: Sequence[str]) -> set[str]:
        """Return those of the ids under which a receipt is stored."""
        return await self._file.read(lambda db: _list_known(db, ids))

    async def head(self) -> LogHead:
        """Return how far the log has grown and how far it is signed."""
        return await self._file.read(_read_head)

    async def leaf(self, index: int) -> bytes | None:
        """Return the bytes of a leaf, or None if the log has none at this index."""
        return await self._file.read(lambda db: find_leaf(db, index)) if index < 2**63 else None

    async def tile(self, tile: merkle.Tile) -> bytes | None:
        """Return the content of a tile, or None if the log has not grown that far."""
        return await self._file.read(lambda db: read_tile(db, tile))

    async def inclusion(self, index: int, size: int) -> list[bytes] | None:
        """Return the proof that a leaf is in the log of `size` leaves, or None if there is no such log or leaf."""
        return await self._file.read(lambda db: prove_inclusion(db, index, size))

    async def consistency(self, old: int, new: int) -> list[bytes] | None:
        """Return the proof that the log of size `old` is the beginning of that of size `new`,
        or None if there is none.
        """
        return await self._file.read(lambda db: prove_consistency(db, old, new))

    async def day(self, day: str, events: int) -> DayRecord:
        """Return the account of a day (UTC, ISO 8601), with at most `events` calls."""
        return await self._file.read(lambda db: read_day(db, day, events))

    async def days(self, limit: int) -> list[tuple[str, int]]:
        """Return the last days with uncharged calls, the newest first, and the number of calls on each."""
        return await self._file.read(lambda db: list_days(db, limit))


def issue_receipts(db: SqlConnection, operations: Sequence[IssueReceipt]) -> list[StoredReceipt | Exception]:
    """Load, decide, sign and store within the caller's transaction. Return a receipt for each operation.

    Other stores call this to write receipts in the same transaction as their own tables.
    Signing happens on the writer's thread: on the event loop it would release the GIL and
    wait for it again after every call.
    """
    books = any(operation.sale.reason is not None for operation in operations)
    hour = open_hour(db) if books else last_hour(db)
    state = ReceiptState(find_receipts(db, [operation.needs for operation in operations]), hour)
    receipts: list[StoredReceipt | Exception] = [operation.on(state) for operation in operations]
    _store_state(db, state)
    return receipts


def record_uncharged(db: SqlConnection, operations: Sequence[RecordUncharged]) -> list[Exception | None]:
    """Book the call of each operation within the caller's transaction."""
    state = ReceiptState({}, open_hour(db))
    for operation in operations:
        operation.on(state)
    _store_state(db, state)
    return [None] * len(operations)


def _store_state(db: SqlConnection, state: ReceiptState) -> None:
    _store_new(db, state.new_receipts)
    book_calls(db, state.new_calls)


def store_receipts(db: SqlConnection, receipts: Sequence[StoredReceipt]) -> None:
    """Store new receipts within the caller's transaction, and their forms if they are new."""
    _store_new(db, [pack_receipt(receipt) for receipt in receipts])


def _store_new(db: SqlConnection, new_receipts: Sequence[NewReceipt]) -> None:
    if not new_receipts:
        return
    forms = {new.row.form: new.form for new in new_receipts}
    terms = {number: form.terms for number, form in forms.items()}
    wanted, numbers = among(db, "number", sorted(terms))
    stored = {number for (number,) in db.execute(f"SELECT number FROM receipt_form WHERE {wanted}", (numbers,))}
    new = [(number, text) for number, text in sorted(terms.items()) if number not in stored]
    insert(db, "INSERT INTO receipt_form VALUES", new, "ON CONFLICT DO NOTHING")  # another instance may have met it
    rows = [new.row for new in new_receipts]
    insert(db, "INSERT INTO packed_receipt VALUES", rows, types="bigint bigint bytea bytea bytea bytea")


def _read_head(db: SqlConnection) -> LogHead:
    return LogHead(last_checkpoint(db), log_size(db), last_hour(db))


def find_receipts(db: SqlConnection, ids: Sequence[str]) -> dict[str, StoredReceipt]:
    """Return the stored receipts with these ids, by id. Raises RowsRewritten."""
    wanted, keys = among_values(db, "p.id", [pack_id(id) for id in ids])
    found = [_unpack(*row) for row in db.execute(f"{_PACKED} WHERE {wanted}", keys)]
    wanted, texts = among(db, "id", ids)
    found += [StoredReceipt(*row) for row in db.execute(f"{_WHOLE} WHERE {wanted}", (texts,))]
    return {receipt.id: receipt for receipt in found}


def read_receipts(db: SqlConnection, since: int = 0, until: int = 2**62) -> Iterator[StoredReceipt]:
    """Yield the stored receipts of a time (epoch ms, `until` excluded), page by page: those of
    earlier versions in their order, then the packed ones in the order of their ids.

    Raises RowsRewritten.
    """
    seq, last = 0, b""
    sql = _WHOLE.replace("SELECT", "SELECT seq,") + " WHERE seq > ? AND at >= ? AND at < ? ORDER BY seq LIMIT ?"
    while page := db.execute(sql, (seq, since, until, PAGE)).fetchall():
        yield from (StoredReceipt(*row[1:]) for row in page)
        seq = page[-1][0]
    sql = f"{_PACKED} WHERE p.id > ? AND p.at >= ? AND p.at < ? ORDER BY p.id LIMIT ?"
    while page := db.execute(sql, (last, since, until, PAGE)).fetchall():
        yield from (_unpack(*row) for row in page)
        last = bytes(page[-1][1 + PackedReceipt._fields.index("id")])


def _unpack(terms: str | None, *row: Any) -> StoredReceipt:
    packed = PackedReceipt(*row)
    if terms is None:
        raise RowsRewritten(f"the form of the receipt {unpack_id(bytes(packed.id))} is missing")
    return unpack_receipt(terms, packed)


def _list_known(db: SqlConnection, ids: Sequence[str]) -> set[str]:
    wanted, keys = among_values(db, "id", [pack_id(id) for id in ids])
    known = {unpack_id(bytes(id)) for (id,) in db.execute(f"SELECT id FROM packed_receipt WHERE {wanted}", keys)}
    wanted, texts = among(db, "id", ids)
    return known | {id for (id,) in db.execute(f"SELECT id FROM receipt WHERE {wanted}", (texts,))}


def delete_receipts(db: SqlConnection, ids: Sequence[str]) -> None:
    """Delete receipts that nobody was given, because their calls were reversed."""
    wanted, keys = among_values(db, "id", [pack_id(id) for id in ids])
    db.execute(f"DELETE FROM packed_receipt WHERE {wanted}", keys)
    wanted, texts = among(db, "id", ids)
    db.execute(f"DELETE FROM receipt WHERE {wanted}", (texts,))


def find_month(db: SqlConnection, id: str) -> str | None:
    """Return the month (such as 2027-01) whose archive has a receipt that was removed; None if none has it."""
    month = find_months(db, [name := pack_id(id)]).get(name)
    return None if month is None else f"{month // 100:04d}-{month % 100:02d}"


HOUR_MS = 3_600_000
LOG = "log"  # the lock that instances share while they book calls, and hold alone while they append an hour
COLUMNS = "hour, key, reason, endpoint, credits, receipt, at"
_OPEN_SUMS = """SELECT reason, endpoint, count(*), sum(credits) FROM uncharged_call
  WHERE hour > ? AND hour BETWEEN ? AND ? GROUP BY reason, endpoint"""
_LAST = """SELECT n.seq, c.at, c.reason, c.endpoint, c.credits, c.receipt FROM uncharged_call c
  LEFT JOIN no_charge n ON n.hour = c.hour AND n.key = c.key WHERE c.hour = ? ORDER BY c.seq DESC LIMIT ?"""


def book_calls(db: SqlConnection, calls: Sequence[BookedCall]) -> None:
    """Book calls within the caller's transaction."""
    insert(db, f"INSERT INTO uncharged_call({COLUMNS}) VALUES", calls)


def open_hour(db: SqlConnection) -> int:
    """Return the last hour that was appended to the log, and keep others from being appended
    until the transaction ends, so that the calls that it books are counted.
    """
    hold_together(db, LOG)
    return last_hour(db)


def last_hour(db: SqlConnection) -> int:
    """Return the last hour that was appended to the log, or NOT_YET."""
    row = db.execute("SELECT max(hour) FROM no_charge WHERE hour IS NOT NULL").fetchone()
    return NOT_YET if row[0] is None else int(row[0])


def first_hour(db: SqlConnection) -> int:
    """Return the first hour whose booked calls are complete: earlier ones may have been archived and removed."""
    return read_horizon(db) // HOUR_MS


def list_hours(db: SqlConnection, until: int) -> list[int]:
    """Return the hours before `until` that have booked calls and are not in the log."""
    sql = "SELECT DISTINCT hour FROM uncharged_call WHERE hour > ? AND hour < ? ORDER BY hour"
    return [hour for (hour,) in db.execute(sql, (last_hour(db), until))]


def list_booked(db: SqlConnection, hour: int) -> list[BookedCall]:
    """Return the calls that are booked in an hour."""
    rows = db.execute(f"SELECT {COLUMNS} FROM uncharged_call WHERE hour=? ORDER BY seq", (hour,))
    return [BookedCall(*row) for row in rows]


def count_booked(db: SqlConnection, hour: int) -> int:
    """Return the number of calls that are booked in an hour."""
    return int(db.execute("SELECT count(*) FROM uncharged_call WHERE hour=?", (hour,)).fetchone()[0])


def find_bucket(db: SqlConnection, hour: int, key: bytes) -> BucketRecord:
    """Return a bucket, in the log or not; its `receipts` are None if they may have been archived and removed."""
    row = db.execute("SELECT seq FROM no_charge WHERE hour=? AND key=?", (hour, key)).fetchone()
    if hour < first_hour(db):
        return BucketRecord(row[0] if row else None, None)
    digests = db.execute("SELECT receipt FROM uncharged_call WHERE hour=? AND key=?", (hour, key))
    return BucketRecord(row[0] if row else None, sort_receipts(receipt for (receipt,) in digests))


def read_day(db: SqlConnection, day: str, most: int) -> DayRecord:
    """Return the sums and the last calls of a day, including those of its open hours."""
    closed, hours = last_hour(db), hours_of(day)
    sums = {
        (reason, endpoint): (calls, credits)
        for reason, endpoint, calls, credits in db.execute(
            "SELECT reason, endpoint, calls, credits FROM no_charge_day WHERE day=?", (day,)
        )
    }
    for reason, endpoint, calls, credits in db.execute(_OPEN_SUMS, (closed, hours[0], hours[-1])):
        before = sums.get((reason, endpoint), (0, 0))
        sums[reason, endpoint] = (before[0] + calls, before[1] + credits)
    waiting = db.execute("SELECT count(*) FROM uncharged_call WHERE hour > ?", (closed,)).fetchone()[0]
    rows = [DaySum(day, *key, *total) for key, total in sums.items()]
    return DayRecord(rows, _list_last(db, day, hours, most), int(waiting))


def _list_last(db: SqlConnection, day: str, hours: Sequence[int], most: int) -> list[DayCall]:
    newest: list[DayCall] = []
    for hour in reversed(hours):
        if len(newest) < most:
            newest += [DayCall(*row) for row in db.execute(_LAST, (hour, most - len(newest)))]
    return [*newest, *_list_old(db, day, most - len(newest))]


def _list_old(db: SqlConnection, day: str, most: int) -> Iterator[DayCall]:
    """Yield the last calls of a day that have leaves of their own, as all calls had before there were buckets."""
    sql = "SELECT seq, entry, at FROM no_charge WHERE day=? AND hour IS NULL ORDER BY seq DESC LIMIT ?"
    for seq, entry, at in db.execute(sql, (day, most)):
        leaf = msgspec.json.decode(bytes(entry))
        digest = leaf["receipt_sha256"]
        receipt = None if digest is None else bytes.fromhex(digest)
        yield DayCall(seq, at, leaf["reason"], leaf["endpoint"], leaf["credits"], receipt)


def list_days(db: SqlConnection, limit: int) -> list[tuple[str, int]]:
    """Return the last days and the number of uncharged calls on each."""
    sql = "SELECT day, sum(calls) FROM no_charge_day GROUP BY day ORDER BY day DESC LIMIT ?"
    days: dict[str, int] = dict(db.execute(sql, (limit,)))
    waiting = "SELECT hour, count(*) FROM uncharged_call WHERE hour > ? GROUP BY hour"
    for hour, calls in db.execute(waiting, (last_hour(db),)):
        days[day_of(hour)] = days.get(day_of(hour), 0) + calls
    return sorted(days.items(), reverse=True)[:limit]


_NODE = "SELECT hash FROM log_node WHERE level=? AND idx=?"


def log_size(db: SqlConnection) -> int:
    """Return the number of leaves."""
    return int(db.execute("SELECT coalesce(max(seq) + 1, 0) FROM no_charge").fetchone()[0])


def read_log_state(place: LedgerPlace) -> LogMark:
    """Return the size and the root of the stored log, even while a service has the database open."""
    return read_place(place, log_state_of)


def log_state_of(db: SqlConnection, size: int | None = None) -> LogMark:
    """Return size and root within the caller's transaction: now, or as they were when the log had `size` leaves."""
    size = log_size(db) if size is None else size
    return LogMark(size, merkle.root(_node(db), size))


def append_hour(db: SqlConnection, operation: AppendHour) -> bool:
    """Append the leaves, nodes and sums of an hour within the caller's transaction, or nothing, and return False."""
    hold_alone(db, LOG)
    if operation.hour <= last_hour(db) or operation.calls != count_booked(db, operation.hour):
        return False
    if not take_log_lease(db, operation.lease):
        return False
    size = log_size(db)
    growth = operation.on(size, _read_nodes(db, merkle.frontier(size)))
    insert(db, "INSERT INTO no_charge VALUES", growth.leaves)
    insert(db, "INSERT INTO log_node VALUES", growth.nodes)
    adding = """ON CONFLICT(day, reason, endpoint) DO UPDATE
      SET calls=no_charge_day.calls+excluded.calls, credits=no_charge_day.credits+excluded.credits"""
    insert(db, "INSERT INTO no_charge_day VALUES", growth.sums, adding)
    return True


def take_log_lease(db: SqlConnection, lease: LogLease) -> bool:
    """Take or extend the right to append to the log. Return False if another process has it."""
    return take_lease(db, "log", lease.holder, now=lease.now, until=lease.until) is not None


def sign_checkpoint(db: SqlConnection, operation: SignCheckpoint) -> SignedCheckpoint:
    """Sign the log as it is now and store the checkpoint, within the caller's transaction. Raises LogForked."""
    hold_alone(db, LOG)
    size, last = log_size(db), last_checkpoint(db)
    signed = operation.on(size, last, _read_nodes(db, operation.nodes(size, last)))
    changes = "size=excluded.size, root=excluded.root, note=excluded.note, at=excluded.at"
    db.execute(f"INSERT INTO log_checkpoint VALUES(1,?,?,?,?) ON CONFLICT(one) DO UPDATE SET {changes}", signed)
    return signed


def last_checkpoint(db: SqlConnection) -> SignedCheckpoint | None:
    """Return the last checkpoint that was signed, or None."""
    row = db.execute("SELECT size, root, note, at FROM log_checkpoint").fetchone()
    return SignedCheckpoint(row[0], bytes(row[1]), row[2], row[3]) if row else None


def find_leaf(db: SqlConnection, index: int) -> bytes | None:
    """Return the bytes of a leaf, or None if the log has none at this index."""
    row = db.execute("SELECT entry FROM no_charge WHERE seq=?", (index,)).fetchone()
    return bytes(row[0]) if row else None


def read_tile(db: SqlConnection, tile: merkle.Tile) -> bytes | None:
    """Return the content of a tile, or None if the log has not grown that far."""
    if not tile.within(log_size(db)):
        return None
    if tile.level is not None:
        return merkle.hashes(_node(db), tile)
    first = tile.number * merkle.WIDTH
    rows = db.execute("SELECT entry FROM no_charge WHERE seq>=? AND seq<? ORDER BY seq", (first, first + tile.width))
    return merkle.bundle([bytes(entry) for (entry,) in rows])


def prove_inclusion(db: SqlConnection, index: int, size: int) -> list[bytes] | None:
    """Return the proof that a leaf is in the log of `size` leaves, or None if there is no such log or leaf."""
    if size > log_size(db) or not 0 <= index < size:
        return None
    return merkle.prove_inclusion(_node(db), index, size)


def prove_consistency(db: SqlConnection, old: int, new: int) -> list[bytes] | None:
    """Return the proof that the log of size `old` is the beginning of that of size `new`, or None if there is none."""
    if new > log_size(db) or not 0 < old <= new:
        return None
    return merkle.prove_consistency(_node(db), old, new)


def _read_nodes(db: SqlConnection, places: Sequence[Place]) -> dict[Place, bytes]:
    rows = ((place, db.execute(_NODE, place).fetchone()) for place in places)
    return {place: bytes(row[0]) for place, row in rows if row is not None}


def _node(db: SqlConnection) -> merkle.Node:
    def node(level: int, index: int) -> bytes:
        row = db.execute(_NODE, (level, index)).fetchone()
        return bytes(row[0])

    return node
