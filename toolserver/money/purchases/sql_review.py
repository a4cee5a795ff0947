"""Stores reviews of payments in the ledger's database: what a second RPC server reports, how much was sold lately, and
which transfers wait for a person.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from toolserver.money.purchases.listing import ReviewCase
from toolserver.money.purchases.records import UnagreedTransfer
from toolserver.money.purchases.store import ROOM
from toolserver.sql.connection import SqlConnection
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.leases import LeasedTask
from toolserver.sql.ledger_place import LedgerPlace, read_place

R = TypeVar("R")

_CASES = """
    SELECT 'disputed', c.tx_hash, p.address, c.amount, 'RPC servers disagree', NULL, c.disputed_since AS at
    FROM tx_credit c JOIN purchase p ON p.id = c.purchase WHERE c.disputed_since IS NOT NULL AND c.agreed_at IS NULL
    UNION ALL
    SELECT 'held', r.tx_hash, p.address, r.amount, r.reason, NULL, r.at
    FROM payment_review r JOIN purchase p ON p.id = r.purchase WHERE r.approved_at IS NULL"""


class SqlReview:
    """The reviews of payments in one database. Every method raises StorageFailed when the database cannot be used.

    With a `task`, a write raises LeaseLost if another instance has taken over that task.
    """

    def __init__(self, file: GroupCommit, task: LeasedTask | None = None) -> None:
        self._file, self._task = file, task

    async def _write(self, job: Callable[[SqlConnection], R]) -> R:
        return await self._file.alone(job if self._task is None else self._task.guard(job), room=ROOM)

    async def list_unagreed(self) -> list[UnagreedTransfer]:
        """Return the credited transfers that no second server has confirmed."""
        return await self._file.read(_list_unagreed)

    async def record_agreed(self, tx_hash: bytes, now: int) -> None:
        """Record that a second server reports the same, so that the transfer is no longer a case."""
        await self._write(partial(_note, "agreed_at", tx_hash, now))

    async def record_disputed(self, tx_hash: bytes, now: int) -> None:
        """Record that servers disagree. The first such record stays."""
        await self._write(partial(_note, "disputed_since", tx_hash, now))

    async def sum_sold(self, since: int) -> int:
        """Return what was credited or handed to the facilitator since a time (epoch ms), in 0.000001 USDC."""
        return await self._file.read(partial(_sum_sold, since))

    async def hold_transfer(self, tx_hash: bytes, purchase: int, amount: int, reason: str, now: int) -> bool:
        """Hold a transfer back until a person approves it. Return True while it waits, False once it is approved."""
        return await self._write(partial(_hold, (tx_hash, purchase, amount, reason, now)))


def read_review_cases(place: LedgerPlace) -> list[ReviewCase]:
    """Return the stored cases, even while a service has the database open. Raises StorageFailed."""
    return read_place(place, lambda db: [ReviewCase(*row) for row in db.execute(_CASES)])


async def approve_transfer(file: GroupCommit, tx_hash: bytes, now: int) -> bool:
    """Approve a transfer that waits for a person, so that it can be credited. Return False if none waits."""
    return await file.alone(partial(_approve, tx_hash, now), room=ROOM)


def _list_unagreed(db: SqlConnection) -> list[UnagreedTransfer]:
    sql = """SELECT c.tx_hash, p.address, c.amount, c.credited_at, c.disputed_since
      FROM tx_credit c JOIN purchase p ON p.id = c.purchase WHERE c.agreed_at IS NULL ORDER BY c.credited_at"""
    return [UnagreedTransfer(*row) for row in db.execute(sql)]


def _note(column: str, tx_hash: bytes, now: int, db: SqlConnection) -> None:
    db.execute(f"UPDATE tx_credit SET {column}=coalesce({column}, ?) WHERE tx_hash=?", (now, tx_hash))


def _sum_sold(since: int, db: SqlConnection) -> int:
    sql = """SELECT (SELECT coalesce(sum(amount), 0) FROM tx_credit WHERE credited_at>=?1)
      + (SELECT coalesce(sum(amount), 0) FROM x402_payment WHERE begun_at>=?1)"""
    return int(db.execute(sql, (since,)).fetchone()[0])


def _hold(row: tuple[bytes, int, int, str, int], db: SqlConnection) -> bool:
    columns = "tx_hash, purchase, amount, reason, at"
    db.execute(f"INSERT INTO payment_review({columns}) VALUES(?,?,?,?,?) ON CONFLICT DO NOTHING", row)
    approval = db.execute("SELECT approved_at FROM payment_review WHERE tx_hash=? AND purchase=?", row[:2]).fetchone()
    return approval is None or approval[0] is None


def _approve(tx_hash: bytes, now: int, db: SqlConnection) -> bool:
    sql = "UPDATE payment_review SET approved_at=? WHERE tx_hash=? AND approved_at IS NULL"
    return db.execute(sql, (now, tx_hash)).rowcount > 0
