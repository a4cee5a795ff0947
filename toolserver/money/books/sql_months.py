"""Close and remove months (UTC) in the database: the table of closed months, the rows of a month, and their removal.

A transfer belongs to the month of its time, a reservation to the month in which it was
settled, a receipt to the month in which it was issued, an uncharged call and its leaf to the
month of their hour, and a transfer on the chain to the month of its block, in the state that
it had when the month was closed. Balances cover all accounts at the start and the end of the
month. Rows are read from one snapshot, page by page.

A call is removed completely, with its reservation and transfers, and its sums are added to
`removed_calls`. A transfer that added or removed credits stays for ever, because a cause
counts only once. The last transfer of a file stays too, because the next one is numbered
after it. Rows are removed in small groups, each in one transaction.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

from toolserver.errors import ToolserverError
from toolserver.money.books.month_archive import encode_row
from toolserver.money.chain.sql_chain_transfers import BookedMovement, read_movements
from toolserver.money.chain.sql_chain_ways import sum_ways
from toolserver.money.ledger.sql_books import read_credit_books
from toolserver.money.ledger.sql_removed_names import keep_names, move_names
from toolserver.money.receipts import sql_store
from toolserver.money.receipts.issue import pack_id
from toolserver.money.receipts.keys import Key
from toolserver.money.receipts.month_statement import (
    CLOSING,
    ON_CHAIN,
    OPENING,
    LogRoot,
    MonthSpan,
    MonthStatement,
    MovedMoney,
    RowDigest,
    SealHead,
    SignedMonth,
    StatementUnreadable,
    find_gap,
    parse_month,
)
from toolserver.money.receipts.sign import receipt_id
from toolserver.money.receipts.sql_store import log_state_of
from toolserver.sql.connection import (
    SqlConnection,
    among,
    among_values,
    hold_alone,
    in_order,
    insert,
    is_shared,
    lock_rows,
)
from toolserver.sql.kept_tables import KeptTable, list_kept_tables, read_pages
from toolserver.sql.row_seal import read_heads

ROOM = "months"  # the lock for closing months: one instance at a time
_COLUMNS = "month, until, transfers, statement, closed_at, released_at"


class MonthRefused(ToolserverError):
    """A month cannot be closed, or its rows cannot be removed. Nothing was changed."""


class ClosedMonth(NamedTuple):
    """A month as it is stored. `released_at` is None while its rows must stay; times are epoch milliseconds."""

    month: str
    until: int
    transfers: int
    statement: str
    closed_at: int
    released_at: int | None


def list_closed(db: SqlConnection) -> list[ClosedMonth]:
    """Return every closed month, oldest first."""
    return [ClosedMonth(*row) for row in db.execute(f"SELECT {_COLUMNS} FROM closed_month ORDER BY until")]


def find_closed(db: SqlConnection, span: MonthSpan) -> ClosedMonth | None:
    """Return a month if it is closed, else None."""
    row = db.execute(f"SELECT {_COLUMNS} FROM closed_month WHERE month=?", (span.name,)).fetchone()
    return None if row is None else ClosedMonth(*row)


def store_closed(db: SqlConnection, signed: SignedMonth) -> None:
    """Store a closed month after the last one. Raises MonthRefused if another process has closed one since."""
    hold_alone(db, ROOM)
    statement, months = signed.statement, list_closed(db)
    last = parse_month(months[-1].statement).sha256 if months else None
    if statement.previous != last:
        raise MonthRefused(f"{statement.month} does not follow the last closed month: close it again")
    transfers = statement.tables["transfer"].rows
    row = (statement.month, statement.until, transfers, signed.text, statement.closed_at, None)
    db.execute(f"INSERT INTO closed_month({_COLUMNS}) VALUES(?,?,?,?,?,?)", row)


def release_month(db: SqlConnection, month: str, now: int) -> None:
    """Allow the rows of a month to be removed, because its archive has them."""
    db.execute("UPDATE closed_month SET released_at=? WHERE month=? AND released_at IS NULL", (now, month))


def find_different_tables(db: SqlConnection, statement: MonthStatement) -> Iterator[str]:
    """Yield the tables whose rows of a month are not those that its statement counts and that its archive has."""
    span = MonthSpan.named(statement.month)
    for table in _COMPARED:
        ways = (RECEIPT, RECEIPTS_WITH_NUMBERS) if table == RECEIPT else (table,)
        signed = statement.tables.get(table)
        if signed is not None and all(_sum_up(db, way, span) != signed for way in ways):
            yield table


def read_seal_head(db: SqlConnection) -> SealHead | None:
    """Return how far the seals of rows have come, by all writers; None if rows are not sealed."""
    seals = read_heads(db)
    heads = "\n".join(f"{seal.writer} {seal.commits} {seal.head.hex()}" for seal in seals)
    commits = sum(seal.commits for seal in seals)
    return SealHead(commits, hashlib.sha256(heads.encode()).hexdigest()) if seals else None


def _sum_up(db: SqlConnection, table: str, span: MonthSpan) -> RowDigest:
    digest, rows = hashlib.sha256(), 0
    for row in read_rows(db, table, span):
        digest.update(encode_row(row))
        rows += 1
    return RowDigest(rows, digest.hexdigest())


def find_month_differences(db: SqlConnection, find_key: Callable[[str], Key | None]) -> Iterator[str]:
    """Yield statements of closed months that are unsigned, differ from their rows, or do not follow each other."""
    before: SignedMonth | None = None
    for closed in list_closed(db):
        try:
            signed = parse_month(closed.statement)
            signed.require_signed(find_key(signed.kid))
        except StatementUnreadable as error:
            yield f"{closed.month}: {error}"
            continue
        said = signed.statement
        stored = (said.month, said.until, said.tables["transfer"].rows, said.closed_at)
        if stored != (closed.month, closed.until, closed.transfers, closed.closed_at):
            yield f"{closed.month}: the statement differs from its row"
        if closed.released_at is None:
            for table in find_different_tables(db, said):
                yield f"{closed.month}: the rows of {table} are not those that were signed"
        yield from find_gap(before, signed)
        before = signed


HOUR_MS = 3_600_000
BALANCES = ("account", "fingerprint", "credits", "debits", "pending")
_MOVES = """
  SELECT credit AS account, amount AS credits, 0 AS debits, 0 AS pending
    FROM transfer WHERE at < :at AND kind IN ('posted', 'post', 'reverse')
  UNION ALL
  SELECT debit, 0, CASE WHEN kind IN ('posted', 'post', 'reverse') THEN amount ELSE 0 END,
    CASE kind WHEN 'pending' THEN amount WHEN 'post' THEN -amount WHEN 'void' THEN -amount ELSE 0 END
    FROM transfer WHERE at < :at
  UNION ALL SELECT account, credits, debits, 0 FROM removed_calls
  UNION ALL SELECT 2, sum(debits), sum(credits), 0 FROM removed_calls HAVING count(*) > 0"""
_BALANCES = f"""
  SELECT m.account, substr(t.hash, 1, 16), sum(m.credits), sum(m.debits), sum(m.pending)
  FROM ({_MOVES}) AS m LEFT JOIN token t ON t.account = m.account GROUP BY m.account, t.hash ORDER BY m.account"""
_ROWS = {
    "transfer": "at >= {since} AND at < {until}",
    "reservation": "settled_at >= {since} AND settled_at < {until}",
    "receipt": "at >= {since} AND at < {until}",
    "uncharged_call": "hour >= {first} AND hour < {last}",
    "no_charge": "CASE WHEN hour IS NULL THEN day >= '{first_day}' AND day < '{last_day}'"
    " ELSE hour >= {first} AND hour < {last} END",
}
TABLES = (OPENING, *_ROWS, ON_CHAIN, CLOSING)
_MOVEMENTS = tuple(name for name in BookedMovement._fields if name != "id")
RECEIPT = "receipt"
_COMPARED = ("transfer", RECEIPT, "uncharged_call")  # a reservation may have moved on since, by a transfer
RECEIPTS_WITH_NUMBERS = "receipt with seq"  # the same table as versions before 0029 archived it
_FIRST = """SELECT min(at) FROM (SELECT min(at) AS at FROM transfer
  UNION ALL SELECT min(at) FROM receipt UNION ALL SELECT min(at) FROM packed_receipt) AS firsts"""
_LEAVES = "SELECT coalesce(max(seq) + 1, 0) FROM no_charge WHERE CASE WHEN hour IS NULL THEN day < ? ELSE hour < ? END"


def columns_of(table: str) -> tuple[str, ...]:
    """Return the column names of a table in an archive."""
    if table == RECEIPT:
        return ("id", "owner", "core", "key", "signature", "at")
    if table == RECEIPTS_WITH_NUMBERS:
        return _kept(RECEIPT).columns
    if table == ON_CHAIN:
        return _MOVEMENTS
    return BALANCES if table in (OPENING, CLOSING) else _kept(table).columns


def read_rows(db: SqlConnection, table: str, span: MonthSpan) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table of a month in the order of its key."""
    if table in (OPENING, CLOSING):
        at = span.since if table == OPENING else span.until
        rows = db.execute(_BALANCES, {"at": at})
        return ((account, name, *map(int, sums)) for account, name, *sums in rows)
    if table == RECEIPT:
        return map(tuple, sql_store.read_receipts(db, span.since, span.until))
    if table == ON_CHAIN:
        return (each[1:] for each in read_movements(db, span.since, span.until))
    table = RECEIPT if table == RECEIPTS_WITH_NUMBERS else table
    condition = _ROWS[table].format(
        since=span.since,
        until=span.until,
        first=span.since // HOUR_MS,
        last=span.until // HOUR_MS,
        first_day=_name_day(span.since),
        last_day=_name_day(span.until),
    )
    return chain.from_iterable(read_pages(db, _kept(table), where=condition))


def read_first_month(db: SqlConnection) -> MonthSpan | None:
    """Return the month in which the ledger begins; None if nothing was ever booked."""
    first = db.execute(_FIRST).fetchone()[0]
    return None if first is None else MonthSpan.at(int(first))


def read_figures(db: SqlConnection, span: MonthSpan) -> dict[str, int]:
    """Return the final credit figures of a month, which no longer change."""
    figures = read_credit_books(db, span.since, span.until)._asdict()
    del figures["owed_now"]
    return {name: int(figure) for name, figure in figures.items()}


def read_moved_money(db: SqlConnection, span: MonthSpan) -> dict[str, dict[str, MovedMoney]] | None:
    """Return the transfers on the chain in a month by way and state as they are now; None if it was never read."""
    ways = sum_ways(db, span.since, span.until)
    if ways is None:
        return None
    return {way: {state: MovedMoney(*sums) for state, sums in states.items()} for way, states in ways.items()}


def read_log_root(db: SqlConnection, span: MonthSpan) -> LogRoot | None:
    """Return the log root at the end of a month; None while the log lacks hours of the month."""
    end = span.until // HOUR_MS
    if sql_store.list_hours(db, end):
        return None
    size = int(db.execute(_LEAVES, (_name_day(span.until), end)).fetchone()[0])
    return LogRoot(size, log_state_of(db, size).root.hex())


def _kept(name: str) -> KeptTable:
    return next(table for table in list_kept_tables() if table.name == name)


def _name_day(at: int) -> str:
    """Return the date (UTC) of a time in epoch milliseconds."""
    return datetime.fromtimestamp(at / 1000, UTC).date().isoformat()


DAY_MS = 24 * HOUR_MS
_AFTER_TIMES = b"\x04"  # ids of our calls begin with their time in 6 bytes, until the year 2109: others come after them
_HEADS = """SELECT t.seq, t.at, t.kind, t.amount, r.call_id, r.account, coalesce(r.allowance, ''), r.settled_at
  FROM transfer t CROSS JOIN reservation r ON r.account = t.debit AND r.transfer = t.seq
  WHERE t.seq > ? AND t.credit = 2 AND t.kind IN ('pending', 'posted') ORDER BY t.seq LIMIT ?"""
_LATER = ("kind IN ('post', 'void')", "kind = 'reverse'")  # in the words of the two partial indexes
_ADD = """ON CONFLICT(account, allowance) DO UPDATE SET debits=removed_calls.debits+excluded.debits,
  credits=removed_calls.credits+excluded.credits, transfers=removed_calls.transfers+excluded.transfers"""


class RemovalStep(NamedTuple):
    """A group of rows: the key of the last row, or None if no more follow, and how many rows were removed."""

    last: int | bytes | None
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


def remove_calls(db: SqlConnection, after: Any, horizon: int, limit: int) -> RemovalStep:
    """Remove calls that ended before the horizon among the next calls, within the caller's transaction."""
    heads = _read_heads(db, after, limit)
    if not heads or min(head.at for head in heads) >= horizon + DAY_MS:
        return RemovalStep(None, 0)
    if is_shared(db):  # wait for transactions that are settling one of them, and make later ones wait for us
        condition, accounts = among(db, "id", sorted({head.account for head in heads}))
        lock_rows(db, f"SELECT id FROM account WHERE {condition}", (accounts,))
        heads = _read_heads(db, after, limit)
    later = _read_later(db, [head.seq for head in heads])
    last = 0 if is_shared(db) else int(db.execute("SELECT max(seq) FROM transfer").fetchone()[0])
    gone = [head for head in heads if _is_over(head, later[head.seq], horizon, last)]
    if gone:
        _remove(db, gone, later)
    return RemovalStep(heads[-1].seq if heads else None, sum(2 + len(later[head.seq]) for head in gone))


def remove_receipts(db: SqlConnection, after: Any, horizon: int, limit: int) -> RemovalStep:
    """Remove receipts that were issued before the horizon among the next receipts, and keep their ids."""
    last = after or b""
    sql = "SELECT id, at FROM packed_receipt WHERE id > ? ORDER BY id LIMIT ?"
    rows = [(bytes(id), at) for id, at in db.execute(sql, (last, limit))]
    if not rows:
        return RemovalStep(None, 0)
    gone = [(id, at) for id, at in rows if at < horizon]
    if gone:
        _keep_names(db, gone)
        wanted, ids = among_values(db, "id", [id for id, _ in gone])
        db.execute(f"DELETE FROM packed_receipt WHERE {wanted}", ids)
    last = rows[-1][0]
    is_past = last < _AFTER_TIMES and min(at for _, at in rows) >= horizon + DAY_MS
    return RemovalStep(_AFTER_TIMES if is_past else last, len(gone))


def remove_whole_receipts(db: SqlConnection, after: Any, horizon: int, limit: int) -> RemovalStep:
    """Do the same with those that versions before 0029 stored."""
    rows = db.execute("SELECT seq, at, id FROM receipt WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit)).fetchall()
    if not rows or min(at for _, at, _ in rows) >= horizon + DAY_MS:
        return RemovalStep(None, 0)
    gone = [row for row in rows if row[1] < horizon]
    _keep_names(db, [(pack_id(id), at) for _, at, id in gone])
    return RemovalStep(rows[-1][0], _delete(db, "receipt", "seq", [seq for seq, _, _ in gone]))


def _keep_names(db: SqlConnection, calls: Sequence[tuple[bytes, int]], *, are_receipts: bool = True) -> None:
    """Record for ever that these calls or receipts, given by name and time, are in the archives of their months."""
    keep_names(db, {name: _number_month(at // DAY_MS) for name, at in calls}, are_receipts=are_receipts)


@cache
def _number_month(day: int) -> int:
    """Return the month of a day since 1970, as year and month in one number: 202701."""
    return int(MonthSpan.at(day * DAY_MS).name.replace("-", ""))


def move_old_names(db: SqlConnection, after: Any, horizon: int, limit: int) -> RemovalStep:
    """Move names that earlier versions left to where they take a fifth of the space. Nothing is removed."""
    return RemovalStep(move_names(db, after, limit), 0)


def remove_uncharged(db: SqlConnection, after: Any, horizon: int, limit: int) -> RemovalStep:
    """Remove calls that were booked before the horizon: their hours are in the log."""
    sql = "SELECT seq FROM uncharged_call WHERE hour < ? ORDER BY hour, key LIMIT ?"
    numbers = [seq for (seq,) in db.execute(sql, (horizon // HOUR_MS, limit))]
    return RemovalStep(after if numbers else None, _delete(db, "uncharged_call", "seq", numbers))


def _read_heads(db: SqlConnection, after: int, limit: int) -> list[_Head]:
    return [_Head(*row) for row in db.execute(in_order(db, _HEADS), (after, limit))]


def _read_later(db: SqlConnection, heads: Sequence[int]) -> dict[int, list[_Later]]:
    """Return what settled or released these reservations, by the reserving transfer."""
    later: dict[int, list[_Later]] = defaultdict(list)
    for kinds in _LATER:
        condition, seqs = among(db, "resolves", heads)
        for row in db.execute(f"SELECT seq, at, kind, resolves FROM transfer WHERE {kinds} AND {condition}", (seqs,)):
            later[row[3]].append(_Later(*row))
    return later


def _is_over(head: _Head, later: Iterable[_Later], horizon: int, last: int) -> bool:
    """Return True if a call and all its transfers ended before the horizon, and none is the last of a file."""
    last_change = max([head.at, *(each.at for each in later)])
    ended = head.settled_at is not None and max(head.settled_at, last_change) < horizon
    return ended and last not in (head.seq, *(each.seq for each in later))


def _remove(db: SqlConnection, gone: Sequence[_Head], later: dict[int, list[_Later]]) -> None:
    sums: dict[tuple[int, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for head in gone:
        kinds = [head.kind, *(each.kind for each in later[head.seq])]
        total = sums[head.account, head.allowance]
        total[0] += head.amount * sum(kind in ("posted", "post") for kind in kinds)
        total[1] += head.amount * kinds.count("reverse")
        total[2] += len(kinds)
    names = [(pack_id(receipt_id(head.call_id)), head.settled_at or head.at) for head in gone]
    _keep_names(db, names, are_receipts=False)
    totals = [(*key, *total) for key, total in sorted(sums.items())]
    insert(db, "INSERT INTO removed_calls VALUES", totals, _ADD, types="bigint text bigint bigint bigint")
    _delete(db, "reservation", "call_id", [head.call_id for head in gone])
    _delete(db, "transfer", "seq", [each.seq for head in gone for each in later[head.seq]])
    _delete(db, "transfer", "seq", [head.seq for head in gone])


def _delete(db: SqlConnection, table: str, column: str, values: Sequence[str] | Sequence[int]) -> int:
    if not values:
        return 0
    condition, parameter = among(db, column, values)
    return db.execute(f"DELETE FROM {table} WHERE {condition}", (parameter,)).rowcount
