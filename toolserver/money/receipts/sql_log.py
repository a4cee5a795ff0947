"""Reads and writes the tables of the log of uncharged calls. The tables refuse every change of a leaf or node."""

from collections.abc import Sequence

from toolserver.money.receipts import merkle
from toolserver.money.receipts.log import AppendHour, LogLease, LogMark, Place, SignCheckpoint, SignedCheckpoint
from toolserver.money.receipts.sql_booked import LOG, count_booked, last_hour
from toolserver.sql.connection import SqlConnection, hold_alone, insert
from toolserver.sql.leases import take_lease
from toolserver.sql.ledger_place import LedgerPlace, read_place

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
