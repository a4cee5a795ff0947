"""Stores what was moved away from deposit addresses, in the database of the purchases."""

from functools import partial

from toolserver.money.purchases.store import ROOM
from toolserver.money.purchases.transfer_authorization import Authorization
from toolserver.sql.connection import SqlConnection
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.ledger_place import LedgerPlace, read_place


async def record_sending(file: GroupCommit, one: Authorization, tx_hash: bytes | None, now: int) -> None:
    """Record that an authorisation is about to be sent, or (`tx_hash` is None) that the chain has used it already."""
    await file.alone(partial(_begin, one, tx_hash, now), room=ROOM)


async def record_moved(file: GroupCommit, one: Authorization, now: int) -> None:
    """Record that the transfer is on the chain. The first such record stays."""
    await file.alone(partial(_end, one, now), room=ROOM)


def read_swept(place: LedgerPlace) -> dict[bytes, int]:
    """Return what was moved from each deposit address, in 0.000001 USDC. Raises StorageFailed."""
    return read_place(place, sum_swept)


def sum_swept(db: SqlConnection) -> dict[bytes, int]:
    """Return the same within the caller's transaction."""
    sql = "SELECT payer, sum(amount) FROM sweep WHERE done_at IS NOT NULL GROUP BY payer"
    return {bytes(payer): int(amount) for payer, amount in db.execute(sql)}


def _begin(one: Authorization, tx_hash: bytes | None, now: int, db: SqlConnection) -> None:
    db.execute(
        """INSERT INTO sweep(payer, nonce, payee, amount, tx_hash, begun_at) VALUES(?,?,?,?,?,?)
        ON CONFLICT(payer, nonce)
        DO UPDATE SET tx_hash=coalesce(excluded.tx_hash, sweep.tx_hash) WHERE sweep.done_at IS NULL""",
        (one.payer, one.nonce, one.payee, one.amount, tx_hash, now),
    )


def _end(one: Authorization, now: int, db: SqlConnection) -> None:
    db.execute("UPDATE sweep SET done_at=? WHERE payer=? AND nonce=? AND done_at IS NULL", (now, one.payer, one.nonce))
