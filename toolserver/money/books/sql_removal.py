"""Remove rows of calls in released archives from the database in small groups, each in one transaction.

A call is removed completely, with its reservation and transfers, and its sums are added to `removed_calls`. A transfer
that added or removed credits stays for ever, because a cause counts only once. The last transfer of a file stays too,
because the next one is numbered after it.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from toolserver.money.books.sql_month_rows import HOUR_MS
from toolserver.sql.bulk_rows import insert
from toolserver.sql.connection import SqlConnection, among, in_order, is_shared, lock_rows

DAY_MS = 24 * HOUR_MS
_HEADS = """SELECT t.seq, t.at, t.kind, t.amount, r.call_id, r.account, coalesce(r.allowance, ''), r.settled_at
  FROM transfer t CROSS JOIN reservation r ON r.account = t.debit AND r.transfer = t.seq
  WHERE t.seq > ? AND t.credit = 2 AND t.kind IN ('pending', 'posted') ORDER BY t.seq LIMIT ?"""
_LATER = ("kind IN ('post', 'void')", "kind = 'reverse'")  # in the words of the two partial indexes
_ADD = """ON CONFLICT(account, allowance) DO UPDATE SET debits=removed_calls.debits+excluded.debits,
  credits=removed_calls.credits+excluded.credits, transfers=removed_calls.transfers+excluded.transfers"""


class RemovalStep(NamedTuple):
    """A group of rows: the number of the last row, or None if no more follow, and how many rows were removed."""

    last: int | None
    removed: int


class _Head(NamedTuple):
    seq: int
    at: int
    kind: str
    amount: int
    call_id: str
    account: int
    allowance: str
    settled_at: int | None


class _Later(NamedTuple):
    seq: int
    at: int
    kind: str
    resolves: int


def remove_calls(db: SqlConnection, after: int, horizon: int, limit: int) -> RemovalStep:
    """Remove calls that ended before the horizon among the next calls, within the caller's transaction."""
    heads = _read_heads(db, after, limit)
    if not heads or min(head.at for head in heads) >= horizon + DAY_MS:
        return RemovalStep(None, 0)
    if is_shared(db):  # wait for transactions that are settling one of them, and make later ones wait for us
        wanted, accounts = among(db, "id", sorted({head.account for head in heads}))
        lock_rows(db, f"SELECT id FROM account WHERE {wanted}", (accounts,))
        heads = _read_heads(db, after, limit)
    later = _read_later(db, [head.seq for head in heads])
    last = 0 if is_shared(db) else int(db.execute("SELECT max(seq) FROM transfer").fetchone()[0])
    gone = [head for head in heads if _is_over(head, later[head.seq], horizon, last)]
    if gone:
        _remove(db, gone, later)
    return RemovalStep(heads[-1].seq if heads else None, sum(2 + len(later[head.seq]) for head in gone))


def remove_receipts(db: SqlConnection, after: int, horizon: int, limit: int) -> RemovalStep:
    """Remove receipts that were issued before the horizon among the next receipts."""
    rows = db.execute("SELECT seq, at FROM receipt WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit)).fetchall()
    if not rows or min(at for _, at in rows) >= horizon + DAY_MS:
        return RemovalStep(None, 0)
    return RemovalStep(rows[-1][0], _delete(db, "receipt", "seq", [seq for seq, at in rows if at < horizon]))


def remove_uncharged(db: SqlConnection, after: int, horizon: int, limit: int) -> RemovalStep:
    """Remove calls that were booked before the horizon: their hours are in the log."""
    sql = "SELECT seq FROM uncharged_call WHERE hour < ? ORDER BY hour, key LIMIT ?"
    found = [seq for (seq,) in db.execute(sql, (horizon // HOUR_MS, limit))]
    return RemovalStep(after if found else None, _delete(db, "uncharged_call", "seq", found))


def _read_heads(db: SqlConnection, after: int, limit: int) -> list[_Head]:
    return [_Head(*row) for row in db.execute(in_order(db, _HEADS), (after, limit))]


def _read_later(db: SqlConnection, heads: Sequence[int]) -> dict[int, list[_Later]]:
    """Return what settled or released these reservations, by the reserving transfer."""
    later: dict[int, list[_Later]] = defaultdict(list)
    for kinds in _LATER:
        wanted, seqs = among(db, "resolves", heads)
        for row in db.execute(f"SELECT seq, at, kind, resolves FROM transfer WHERE {kinds} AND {wanted}", (seqs,)):
            later[row[3]].append(_Later(*row))
    return later


def _is_over(head: _Head, later: Iterable[_Later], horizon: int, last: int) -> bool:
    """Return True if a call and all its transfers ended before the horizon, and none is the last of a file."""
    times = [head.at, *(each.at for each in later)]
    ended = head.settled_at is not None and max(head.settled_at, *times) < horizon
    return ended and last not in (head.seq, *(each.seq for each in later))


def _remove(db: SqlConnection, gone: Sequence[_Head], later: dict[int, list[_Later]]) -> None:
    sums: dict[tuple[int, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for head in gone:
        kinds = [head.kind, *(each.kind for each in later[head.seq])]
        total = sums[head.account, head.allowance]
        total[0] += head.amount * sum(kind in ("posted", "post") for kind in kinds)
        total[1] += head.amount * kinds.count("reverse")
        total[2] += len(kinds)
    insert(db, "INSERT INTO removed_calls VALUES", [(*key, *total) for key, total in sorted(sums.items())], _ADD)
    _delete(db, "reservation", "call_id", [head.call_id for head in gone])
    _delete(db, "transfer", "seq", [each.seq for head in gone for each in later[head.seq]])
    _delete(db, "transfer", "seq", [head.seq for head in gone])


def _delete(db: SqlConnection, table: str, column: str, values: Sequence[str] | Sequence[int]) -> int:
    if not values:
        return 0
    wanted, given = among(db, column, values)
    return db.execute(f"DELETE FROM {table} WHERE {wanted}", (given,)).rowcount
