"""The tables of the log of uncharged calls in SQLite. The tables refuse every change of a leaf or node."""

from collections.abc import Sequence

from toolserver.receipts import merkle
from toolserver.receipts.log_state import AppendHour, LogLease, LogMark, Place, SignCheckpoint, SignedCheckpoint
from toolserver.receipts.sqlite_booked import LOG, count_booked, last_hour
from toolserver.storage.bulk_rows import insert
from toolserver.storage.connection import SqlConnection, hold_alone
from toolserver.storage.leases import take_lease
from toolserver.storage.ledger_place import LedgerPlace, read_place

_NODE = "SELECT hash FROM log_node WHERE level=? AND idx=?"


def log_size(db: SqlConnection) -> int:
    """The number of leaves."""
    return int(db.execute("SELECT coalesce(max(seq) + 1, 0) FROM no_charge").fetchone()[0])


def read_log_state(place: LedgerPlace) -> LogMark:
    """The size and the root of the log that are kept, whether a service has them open or not."""
    return read_place(place, log_state_of)


def log_state_of(db: SqlConnection, size: int | None = None) -> LogMark:
    """The same within a transaction of the caller, now, or when the log had so many leaves."""
    size = log_size(db) if size is None else size
    return LogMark(size, merkle.root(_node(db), size))


def append_hour(db: SqlConnection, operation: AppendHour) -> bool:
    """Append an hour within the caller's transaction: leaves, nodes and sums; or nothing, and False."""
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
    """Become the one that appends to the log, or go on being it."""
    return take_lease(db, "log", lease.holder, now=lease.now, until=lease.until) is not None


def sign_checkpoint(db: SqlConnection, operation: SignCheckpoint) -> SignedCheckpoint:
    """Sign the log as it is and store the checkpoint. Raises LogForked."""
    hold_alone(db, LOG)
    size, last = log_size(db), last_checkpoint(db)
    signed = operation.on(size, last, _read_nodes(db, operation.nodes(size, last)))
    changes = "size=excluded.size, root=excluded.root, note=excluded.note, at=excluded.at"
    db.execute(f"INSERT INTO log_checkpoint VALUES(1,?,?,?,?) ON CONFLICT(one) DO UPDATE SET {changes}", signed)
    return signed


def last_checkpoint(db: SqlConnection) -> SignedCheckpoint | None:
    """The last checkpoint that was signed."""
    row = db.execute("SELECT size, root, note, at FROM log_checkpoint").fetchone()
    return SignedCheckpoint(row[0], bytes(row[1]), row[2], row[3]) if row else None


def find_leaf(db: SqlConnection, index: int) -> bytes | None:
    """The bytes of a leaf."""
    row = db.execute("SELECT entry FROM no_charge WHERE seq=?", (index,)).fetchone()
    return bytes(row[0]) if row else None


def read_tile(db: SqlConnection, tile: merkle.Tile) -> bytes | None:
    """The content of a tile; None when the log has not grown that far."""
    if not tile.within(log_size(db)):
        return None
    if tile.level is not None:
        return merkle.hashes(_node(db), tile)
    first = tile.number * merkle.WIDTH
    rows = db.execute("SELECT entry FROM no_charge WHERE seq>=? AND seq<? ORDER BY seq", (first, first + tile.width))
    return merkle.bundle([bytes(entry) for (entry,) in rows])


def prove_inclusion(db: SqlConnection, index: int, size: int) -> list[bytes] | None:
    """The proof that a leaf is in the log of that size."""
    if size > log_size(db) or not 0 <= index < size:
        return None
    return merkle.prove_inclusion(_node(db), index, size)


def prove_consistency(db: SqlConnection, old: int, new: int) -> list[bytes] | None:
    """The proof that the log of one size is the beginning of that of another."""
    if new > log_size(db) or not 0 < old <= new:
        return None
    return merkle.prove_consistency(_node(db), old, new)


def _read_nodes(db: SqlConnection, places: Sequence[Place]) -> dict[Place, bytes]:
    found = ((place, db.execute(_NODE, place).fetchone()) for place in places)
    return {place: bytes(row[0]) for place, row in found if row is not None}


def _node(db: SqlConnection) -> merkle.Node:
    def node(level: int, index: int) -> bytes:
        row = db.execute(_NODE, (level, index)).fetchone()
        return bytes(row[0])

    return node
