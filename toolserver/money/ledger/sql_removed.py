"""Reads the sums of calls whose rows were removed after their month was closed and archived."""

from typing import NamedTuple

from toolserver.sql.connection import SqlConnection

_SUMS = "coalesce(sum(debits), 0), coalesce(sum(credits), 0), coalesce(sum(transfers), 0)"


class RemovedCalls(NamedTuple):
    """The sums of removed calls: credits charged, credits given back, and transfers."""

    debits: int
    credits: int
    transfers: int

    @property
    def used(self) -> int:
        """The credits that stayed charged."""
        return self.debits - self.credits


def read_horizon(db: SqlConnection) -> int:
    """Return the time (epoch ms) before which rows of calls may have been removed; 0 if none were."""
    row = db.execute("SELECT max(until) FROM closed_month WHERE released_at IS NOT NULL").fetchone()
    return int(row[0] or 0)


def read_removed(db: SqlConnection) -> RemovedCalls:
    """Return the sums of all removed calls."""
    return _read(db, "", ())


def read_removed_of(db: SqlConnection, account: int, allowance: str | None) -> RemovedCalls:
    """Return the sums of an account with all its allowances, or of one allowance alone."""
    if allowance is None:
        return _read(db, "WHERE account = ?", (account,))
    return _read(db, "WHERE account = ? AND allowance = ?", (account, allowance))


def _read(db: SqlConnection, condition: str, values: tuple[int | str, ...]) -> RemovedCalls:
    row = db.execute(f"SELECT {_SUMS} FROM removed_calls {condition}", values).fetchone()
    return RemovedCalls(*(int(each) for each in row))
