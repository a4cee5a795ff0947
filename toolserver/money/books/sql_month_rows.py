"""Read the rows of one month (UTC) for its archive, from one snapshot, page by page, on either engine.

A transfer belongs to the month of its time, a reservation to the month in which it was settled, a receipt to the month
in which it was issued, an uncharged call and its leaf to the month of their hour. Balances cover all accounts at the
start and the end of the month.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from toolserver.money.ledger.sql_books import read_credit_books
from toolserver.money.receipts import sql_booked
from toolserver.money.receipts.month_statement import CLOSING, OPENING, LogRoot, MonthSpan
from toolserver.money.receipts.sql_log import log_state_of
from toolserver.sql.connection import SqlConnection
from toolserver.sql.kept_tables import KeptTable, list_kept_tables, read_pages

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
TABLES = (OPENING, *_ROWS, CLOSING)
_FIRST = "SELECT min(at) FROM (SELECT min(at) AS at FROM transfer UNION ALL SELECT min(at) FROM receipt) AS firsts"
_LEAVES = "SELECT coalesce(max(seq) + 1, 0) FROM no_charge WHERE CASE WHEN hour IS NULL THEN day < ? ELSE hour < ? END"


def columns_of(table: str) -> tuple[str, ...]:
    """Return the column names of a table in an archive."""
    return BALANCES if table in (OPENING, CLOSING) else _kept(table).columns


def read_rows(db: SqlConnection, table: str, span: MonthSpan) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table of a month in the order of its key."""
    if table in (OPENING, CLOSING):
        at = span.since if table == OPENING else span.until
        rows = db.execute(_BALANCES, {"at": at})
        return ((account, name, *map(int, sums)) for account, name, *sums in rows)
    days = (datetime.fromtimestamp(end / 1000, UTC).date().isoformat() for end in span[1:])
    named = dict(zip(("first_day", "last_day"), days, strict=True))
    hours = {"first": span.since // HOUR_MS, "last": span.until // HOUR_MS}
    condition = _ROWS[table].format(since=span.since, until=span.until, **hours, **named)
    return chain.from_iterable(read_pages(db, _kept(table), where=condition))


def read_first_month(db: SqlConnection) -> MonthSpan | None:
    """Return the month in which the ledger begins; None if nothing was ever booked."""
    first = db.execute(_FIRST).fetchone()[0]
    return None if first is None else MonthSpan.at(int(first))


def read_figures(db: SqlConnection, span: MonthSpan) -> dict[str, int]:
    """Return the final credit figures of a month, which no longer change."""
    found = read_credit_books(db, span.since, span.until)._asdict()
    del found["owed_now"]
    return {name: int(figure) for name, figure in found.items()}


def read_log_root(db: SqlConnection, span: MonthSpan) -> LogRoot | None:
    """Return the log root at the end of a month; None while the log lacks hours of the month."""
    end = span.until // HOUR_MS
    if sql_booked.list_hours(db, end):
        return None
    day = datetime.fromtimestamp(span.until / 1000, UTC).date().isoformat()
    size = int(db.execute(_LEAVES, (day, end)).fetchone()[0])
    return LogRoot(size, log_state_of(db, size).root.hex())


def _kept(name: str) -> KeptTable:
    return next(table for table in list_kept_tables() if table.name == name)
