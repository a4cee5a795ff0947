"""Keeps what the proof of a month has to compare later, in a temporary file of SQLite instead of memory."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import groupby
from typing import Any

from toolserver.money.books.month_archive import ArchiveBroken
from toolserver.money.receipts.log import BookedCall

AT_ONCE = 10_000  # rows and balances in memory before they are written to the scratch database
_TABLES = """
  PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-32768;
  CREATE TABLE moved(account INTEGER PRIMARY KEY, credits INTEGER, debits INTEGER, pending INTEGER);
  CREATE TABLE closing(account INTEGER PRIMARY KEY, credits INTEGER, debits INTEGER, pending INTEGER);
  CREATE TABLE step(reserving INTEGER, seq INTEGER, kind TEXT, buyer INTEGER, amount INTEGER,
    PRIMARY KEY (reserving, seq)) WITHOUT ROWID;
  CREATE TABLE call(call_id TEXT, transfer INTEGER, state TEXT, account INTEGER, credits INTEGER);
  CREATE TABLE booked(hour INTEGER, key BLOB, reason TEXT, endpoint TEXT, credits INTEGER, receipt BLOB, at INTEGER);
  CREATE TABLE leaf(hour INTEGER, key BLOB, seq INTEGER, entry BLOB, PRIMARY KEY (hour, key)) WITHOUT ROWID;
"""
_ADD = """INSERT INTO moved VALUES(?,?,?,?) ON CONFLICT(account) DO UPDATE SET credits=credits+excluded.credits,
  debits=debits+excluded.debits, pending=pending+excluded.pending"""
_DIFFERENT = """
  SELECT account, max(m_credits), max(m_debits), max(m_pending), max(c_credits), max(c_debits), max(c_pending) FROM (
    SELECT account, credits AS m_credits, debits AS m_debits, pending AS m_pending,
      NULL AS c_credits, NULL AS c_debits, NULL AS c_pending FROM moved
    UNION ALL SELECT account, NULL, NULL, NULL, credits, debits, pending FROM closing)
  GROUP BY account HAVING (max(m_credits), max(m_debits), max(m_pending))
    IS NOT (max(c_credits), max(c_debits), max(c_pending)) ORDER BY account"""
_UNLIKE = """
  SELECT s.seq FROM step s JOIN step first ON first.reserving = s.reserving
    AND first.seq = (SELECT min(seq) FROM step WHERE reserving = s.reserving)
  WHERE (s.buyer, s.amount) IS NOT (first.buyer, first.amount) ORDER BY s.seq"""
_OTHERWISE = """
  SELECT c.call_id, c.state FROM call c WHERE NOT EXISTS (
    SELECT 1 FROM step s WHERE s.reserving = c.transfer
      AND s.seq = (SELECT max(seq) FROM step WHERE reserving = c.transfer AND kind <> 'pending')
      AND (s.buyer, s.amount) = (c.account, c.credits)
      AND c.state = CASE s.kind WHEN 'void' THEN 'voided' WHEN 'reverse' THEN 'reversed' ELSE 'posted' END)"""


class MonthScratch:
    """The balances, calls, booked calls and leaves of one archive. Created by `open_scratch`.

    Methods that add rows raise ArchiveBroken if a row has a value that no column can have.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        db.executescript(_TABLES)
        # by account, not yet written: credits, debits and pending, as opening balances and transfers add up to them
        self._moves: dict[int, list[int]] = {}
        # by table: rows that are not yet written
        self._rows: dict[str, list[tuple[Any, ...]]] = {}

    def move(self, account: int, credits: int, debits: int, pending: int) -> None:
        """Add to the balance of an account."""
        sums = self._moves.get(account)
        if sums is None:
            if len(self._moves) >= AT_ONCE:
                self._write_moves()
            sums = self._moves[account] = [0, 0, 0]
        sums[0] += credits
        sums[1] += debits
        sums[2] += pending

    def add_closing(self, account: int, credits: int, debits: int, pending: int) -> None:
        """Add the closing balance of an account."""
        self._put("closing", account, credits, debits, pending)

    def add_step(self, reserving: int, seq: int, kind: str, buyer: int, amount: int) -> None:
        """Add a transfer of a call; `reserving` is the number of the one that reserved its credits."""
        self._put("step", reserving, seq, kind, buyer, amount)

    def add_call(self, call_id: str, transfer: int, state: str, account: int, credits: int) -> None:
        """Add a reservation."""
        self._put("call", call_id, transfer, state, account, credits)

    def add_booked(self, call: BookedCall) -> None:
        """Add an uncharged call."""
        self._put("booked", *call)

    def add_leaf(self, hour: int, key: bytes, seq: int, entry: bytes) -> None:
        """Add the leaf of a bucket."""
        self._put("leaf", hour, key, seq, entry)

    def finish(self) -> None:
        """Write what is still in memory. Only then can rows be compared."""
        for table in list(self._rows):
            self._write(table)
        self._write_moves()

    def find_unlike(self) -> Iterator[int]:
        """Yield the numbers of transfers whose buyer or amount differs from that of the call's first transfer."""
        return (seq for (seq,) in self._db.execute(_UNLIKE))

    def find_otherwise(self) -> Iterator[tuple[str, str]]:
        """Yield the calls, with their states, that did not end as their transfers say."""
        yield from self._db.execute(_OTHERWISE)

    def find_different(self) -> Iterator[tuple[int, list[int] | None, list[int] | None]]:
        """Yield the accounts whose balance, as it adds up, differs from the closing balance; None: there is none."""
        for account, *sums in self._db.execute(_DIFFERENT):
            total, closing = (None if each[0] is None else each for each in (sums[:3], sums[3:]))
            yield account, total, closing

    def sum_closing(self) -> tuple[int, int]:
        """Return the credits and the debits of all accounts at the end."""
        sql = "SELECT coalesce(sum(credits), 0), coalesce(sum(debits), 0) FROM closing"
        credits, debits = self._db.execute(sql).fetchone()
        return int(credits), int(debits)

    def read_hours(self) -> Iterator[list[BookedCall]]:
        """Yield the uncharged calls of each hour."""
        rows = self._db.execute("SELECT * FROM booked ORDER BY hour")
        for _, hour in groupby(rows, key=lambda row: row[0]):
            yield [BookedCall(*row) for row in hour]

    def take_leaf(self, hour: int, key: bytes) -> tuple[int, bytes] | None:
        """Remove the leaf of a bucket and return its number and entry, or None if there is none."""
        sql = "DELETE FROM leaf WHERE hour=? AND key=? RETURNING seq, entry"
        rows = self._db.execute(sql, (hour, key)).fetchall()
        return rows[0] if rows else None

    def list_leaves(self) -> Iterator[int]:
        """Yield the numbers of the leaves that are left."""
        return (seq for (seq,) in self._db.execute("SELECT seq FROM leaf ORDER BY hour, key"))

    def _put(self, table: str, *row: Any) -> None:
        rows = self._rows.setdefault(table, [])
        rows.append(row)
        if len(rows) >= AT_ONCE:
            self._write(table)

    def _write(self, table: str) -> None:
        rows = self._rows.pop(table)
        self._run(f"INSERT OR REPLACE INTO {table} VALUES({','.join('?' * len(rows[0]))})", rows)

    def _write_moves(self) -> None:
        self._run(_ADD, [(account, *sums) for account, sums in self._moves.items()])
        self._moves.clear()

    def _run(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        try:
            self._db.executemany(sql, rows)
        except (sqlite3.Error, OverflowError) as error:
            raise ArchiveBroken(f"a row is invalid: {error}") from None


@contextmanager
def open_scratch() -> Iterator[MonthScratch]:
    """Open a scratch database, whose file is gone when the block is left."""
    with closing(sqlite3.connect("", isolation_level=None)) as db:
        yield MonthScratch(db)
