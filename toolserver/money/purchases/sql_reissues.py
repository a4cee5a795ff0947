"""Stores reissues of lost tokens in the ledger's database, so that state and token change in one transaction."""

from functools import partial

from toolserver.clock import Clock
from toolserver.errors import RevokedToken
from toolserver.money.ledger.account_operations import ReplaceToken
from toolserver.money.ledger.protocol import milliseconds
from toolserver.money.ledger.sql_tables import apply_operation
from toolserver.money.purchases.buyer_proof import TokenPayments
from toolserver.money.purchases.reissues import (
    WAIT_MS,
    ReissueDraft,
    ReissueRefused,
    StoredReissue,
    require_due,
    require_open,
    require_provable,
)
from toolserver.money.purchases.sql_refunds import find_account_hash, find_payments
from toolserver.money.purchases.sql_store import ROOM
from toolserver.sql.connection import SqlConnection
from toolserver.sql.errors import ConstraintViolated
from toolserver.sql.group_commit import GroupCommit

_REISSUE = """SELECT r.id, r.token, r.payer, r.state, r.asked_at, r.expires_at, r.proved_at, r.due_at, r.ended_at,
  substr(coalesce(t.successor, t.hash), 1, 16) FROM reissue r JOIN token t ON t.hash = r.token """


class SqlReissues:
    """Implements WaitingReissues, and the operator's steps. Every method raises StorageFailed when the database cannot
    be used; writes are durable when they return.
    """

    def __init__(self, file: GroupCommit, clock: Clock) -> None:
        self._file, self._now = file, milliseconds(clock)

    async def add(self, draft: ReissueDraft) -> StoredReissue:
        """Store a requested reissue. Raises RevokedToken, RefundRefused (unknown token), ReissueRefused."""
        return await self._file.alone(partial(_add, draft), room=ROOM)

    async def find(self, id: str) -> StoredReissue:
        """Return a reissue by its id. Raises ReissueRefused if there is none."""
        return await self._file.read(partial(find_reissue, id))

    async def list_reissues(self) -> list[StoredReissue]:
        """Return all reissues, oldest first."""
        rows = f"{_REISSUE}ORDER BY r.asked_at, r.id"
        return await self._file.read(lambda db: [StoredReissue(*row) for row in db.execute(rows)])

    async def prove(self, id: str) -> StoredReissue:
        """Start the waiting time, because the payer has signed. Raises ReissueRefused."""
        return await self._file.alone(partial(_prove, id, self._now()), room=ROOM)

    async def cancel(self, id: str) -> StoredReissue:
        """Cancel a reissue that was not carried out. Raises ReissueRefused."""
        return await self._file.alone(partial(_cancel, id, self._now()), room=ROOM)

    async def find_payments(self, token: str) -> TokenPayments:
        """Return the payments that brought credits to a token, given the hash that names its account.

        Raises RefundRefused if there is no such token.
        """
        return await self._file.read(partial(find_payments, token))

    async def find_due(self, token: str) -> int | None:
        sql = """SELECT r.due_at FROM reissue r JOIN token t ON t.hash = r.token
          WHERE r.state = 'waiting' AND coalesce(t.successor, t.hash) = ?"""
        row = await self._file.read(lambda db: db.execute(sql, (token,)).fetchone())
        return None if row is None else int(row[0])

    async def cancel_own(self, token: str) -> bool:
        return await self._file.alone(partial(_cancel_own, token, self._now()), room=ROOM)


def find_reissue(id: str, db: SqlConnection) -> StoredReissue:
    """Return a reissue within the caller's transaction. Raises ReissueRefused if there is none."""
    row = db.execute(_REISSUE + "WHERE r.id=?", (id,)).fetchone()
    if row is None:
        raise ReissueRefused(f"there is no reissue {id}")
    return StoredReissue(*row)


def complete_reissue(id: str, successor: str, now: int, db: SqlConnection) -> tuple[str, str]:
    """Replace the token within the caller's transaction, and return the hashes of the old and the new token.

    Encrypted copies of the old token that wait for a buyer are deleted. Raises ReissueRefused, RevokedToken.
    """
    reissue = find_reissue(id, db)
    require_due(reissue, now)
    ref, before = db.execute(
        "SELECT ref, coalesce(successor, hash) FROM token WHERE hash=?", (reissue.token,)
    ).fetchone()
    apply_operation(db, ReplaceToken(ref, successor), now)
    for table in ("tx_credit", "x402_payment"):
        sql = f"UPDATE {table} SET sealed=NULL, sealed_until=NULL WHERE token=? AND sealed IS NOT NULL"
        db.execute(sql, (reissue.token,))
    db.execute("UPDATE reissue SET state='done', ended_at=? WHERE id=?", (now, id))
    return str(before), successor


def _add(draft: ReissueDraft, db: SqlConnection) -> StoredReissue:
    token = find_account_hash(db, draft.token)
    revoked, live = db.execute(
        "SELECT revoked_at, coalesce(successor, hash) FROM token WHERE hash=?", (token,)
    ).fetchone()
    if revoked is not None or live != draft.token:
        raise RevokedToken("The token was revoked or has already been replaced.")
    if db.execute("SELECT 1 FROM reissue WHERE token=? AND state='waiting'", (token,)).fetchone():
        raise ReissueRefused("a reissue of this token is already waiting")
    columns = "id, token, payer, state, asked_at, expires_at"
    row = (draft.id, token, draft.payer, "asked", draft.asked_at, draft.expires_at)
    db.execute(f"INSERT INTO reissue({columns}) VALUES(?,?,?,?,?,?)", row)
    return find_reissue(draft.id, db)


def _prove(id: str, now: int, db: SqlConnection) -> StoredReissue:
    reissue = find_reissue(id, db)
    require_provable(reissue, now)
    try:
        db.execute("UPDATE reissue SET state='waiting', proved_at=?, due_at=? WHERE id=?", (now, now + WAIT_MS, id))
    except ConstraintViolated:
        raise ReissueRefused("a reissue of this token is already waiting") from None
    return find_reissue(id, db)


def _cancel(id: str, now: int, db: SqlConnection) -> StoredReissue:
    require_open(find_reissue(id, db))
    db.execute("UPDATE reissue SET state='cancelled', ended_at=? WHERE id=?", (now, id))
    return find_reissue(id, db)


def _cancel_own(token: str, now: int, db: SqlConnection) -> bool:
    sql = """UPDATE reissue SET state='cancelled', ended_at=? WHERE state='waiting'
      AND token=(SELECT hash FROM token WHERE coalesce(successor, hash)=?)"""
    return db.execute(sql, (now, token)).rowcount > 0
