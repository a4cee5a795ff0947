"""Write the table of closed months, once for each month in order, and read it as a chain."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from toolserver.errors import ToolserverError
from toolserver.money.receipts.keys import Key
from toolserver.money.receipts.month_statement import (
    MonthSpan,
    SignedMonth,
    StatementUnreadable,
    find_gap,
    parse_month,
)
from toolserver.sql.connection import SqlConnection, hold_alone

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
        yield from find_gap(before, signed)
        before = signed
