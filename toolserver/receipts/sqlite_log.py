"""The tables of the log of uncharged calls in SQLite. The tables refuse every change of a leaf or node."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import msgspec

from toolserver.receipts import merkle
from toolserver.receipts.log_state import (
    DaySum,
    LogMark,
    Place,
    SignCheckpoint,
    SignedCheckpoint,
    UnchargedCall,
    grow_log,
)
from toolserver.receipts.store import DayRecord
from toolserver.storage.bulk_rows import insert
from toolserver.storage.group_commit import snapshot


def log_size(db: sqlite3.Connection) -> int:
    """The number of leaves."""
    return int(db.execute("SELECT coalesce(max(seq) + 1, 0) FROM no_charge").fetchone()[0])


def read_log_state(path: Path) -> LogMark:
    """The size and the root of the log in a file, whether a service has it open or not."""
    return snapshot(path, _read_state)


def _read_state(db: sqlite3.Connection) -> LogMark:
    size = log_size(db)
    return LogMark(size, merkle.root(_node(db), size))


def append_leaves(db: sqlite3.Connection, events: Sequence[UnchargedCall], size: int) -> None:
    """Add leaves at the end of a log of `size` leaves, with their nodes and sums, in a few statements."""
    growth = grow_log(events, size, _read_nodes(db, merkle.frontier(size)))
    insert(db, "INSERT INTO no_charge VALUES", growth.leaves)
    insert(db, "INSERT INTO log_node VALUES", growth.nodes)
    adding = "ON CONFLICT DO UPDATE SET calls=calls+excluded.calls, credits=credits+excluded.credits"
    insert(db, "INSERT INTO no_charge_day VALUES", growth.sums, adding)


def sign_checkpoint(db: sqlite3.Connection, operation: SignCheckpoint) -> SignedCheckpoint:
    """Sign the log as it is and store the checkpoint. Raises LogForked."""
    size, last = log_size(db), last_checkpoint(db)
    signed = operation.on(size, last, _read_nodes(db, operation.nodes(size, last)))
    changes = "size=excluded.size, root=excluded.root, note=excluded.note, at=excluded.at"
    db.execute(f"INSERT INTO log_checkpoint VALUES(1,?,?,?,?) ON CONFLICT(one) DO UPDATE SET {changes}", signed)
    return signed


def last_checkpoint(db: sqlite3.Connection) -> SignedCheckpoint | None:
    """The last checkpoint that was signed."""
    row = db.execute("SELECT size, root, note, at FROM log_checkpoint").fetchone()
    return SignedCheckpoint(row[0], bytes(row[1]), row[2], row[3]) if row else None


def find_leaf(db: sqlite3.Connection, index: int) -> bytes | None:
    """The bytes of a leaf."""
    row = db.execute("SELECT entry FROM no_charge WHERE seq=?", (index,)).fetchone()
    return bytes(row[0]) if row else None


def read_tile(db: sqlite3.Connection, tile: merkle.Tile) -> bytes | None:
    """The content of a tile; None when the log has not grown that far."""
    if not tile.within(log_size(db)):
        return None
    if tile.level is not None:
        return merkle.hashes(_node(db), tile)
    first = tile.number * merkle.WIDTH
    rows = db.execute("SELECT entry FROM no_charge WHERE seq>=? AND seq<? ORDER BY seq", (first, first + tile.width))
    return merkle.bundle([bytes(entry) for (entry,) in rows])


def prove_inclusion(db: sqlite3.Connection, index: int, size: int) -> list[bytes] | None:
    """The proof that a leaf is in the log of that size."""
    if size > log_size(db) or not 0 <= index < size:
        return None
    return merkle.prove_inclusion(_node(db), index, size)


def prove_consistency(db: sqlite3.Connection, old: int, new: int) -> list[bytes] | None:
    """The proof that the log of one size is the beginning of that of another."""
    if new > log_size(db) or not 0 < old <= new:
        return None
    return merkle.prove_consistency(_node(db), old, new)


def read_day(db: sqlite3.Connection, day: str, events: int) -> DayRecord:
    """The sums and the last leaves of a day."""
    sums = db.execute("SELECT day, reason, endpoint, calls, credits FROM no_charge_day WHERE day=?", (day,))
    last = "SELECT entry FROM no_charge WHERE day=? ORDER BY seq DESC LIMIT ?"
    return DayRecord([DaySum(*row) for row in sums], [bytes(entry) for (entry,) in db.execute(last, (day, events))])


def list_days(db: sqlite3.Connection, limit: int) -> list[tuple[str, int]]:
    """The last days and the number of uncharged calls on each."""
    sql = "SELECT day, sum(calls) FROM no_charge_day GROUP BY day ORDER BY day DESC LIMIT ?"
    return list(db.execute(sql, (limit,)))


def _read_nodes(db: sqlite3.Connection, places: Sequence[Place]) -> dict[Place, bytes]:
    sql = """SELECT level, idx, hash FROM json_each(?) JOIN log_node
      ON level=json_extract(value, '$[0]') AND idx=json_extract(value, '$[1]')"""
    rows = db.execute(sql, (msgspec.json.encode(places).decode(),))
    return {(level, index): bytes(value) for level, index, value in rows}


def _node(db: sqlite3.Connection) -> merkle.Node:
    def node(level: int, index: int) -> bytes:
        row = db.execute("SELECT hash FROM log_node WHERE level=? AND idx=?", (level, index)).fetchone()
        return bytes(row[0])

    return node
