"""Stores refunds and reissues in the ledger's database, so that proof, credits, token and
state change in one transaction.
"""

from functools import partial

from toolserver.clock import Clock, milliseconds
from toolserver.errors import RevokedToken
from toolserver.money.ledger.operations import Mint, ReplaceToken, WithdrawCredits
from toolserver.money.ledger.sql_tables import apply_operation, read_standing
from toolserver.money.ledger.state import AccountStanding, new_ref
from toolserver.money.purchases.buyer_proof import PaidTransfer, TokenPayments
from toolserver.money.purchases.refunds import (
    RefundDraft,
    RefundRefused,
    RefundRoom,
    RefundState,
    StoredRefund,
    require_bookable,
    require_cancellable,
)
from toolserver.money.purchases.reissues import (
    WAIT_MS,
    ReissueDraft,
    ReissueRefused,
    StoredReissue,
    require_due,
    require_open,
    require_provable,
)
from toolserver.money.purchases.store import ROOM
from toolserver.sql.connection import SqlConnection
from toolserver.sql.errors import ConstraintViolated
from toolserver.sql.group_commit import GroupCommit

_REFUND = """SELECT r.id, r.token, r.payee, r.credits, r.amount, r.reason, r.state, r.asked_at, r.expires_at, r.proof,
  r.payer, r.booked_at, r.planned_at, r.tx_hash, r.ended_at, substr(coalesce(t.successor, t.hash), 1, 16)
  FROM refund r JOIN token t ON t.hash = r.token """
_PAID_FOR = """
  SELECT (SELECT coalesce(sum(credits), 0) FROM tx_credit WHERE token = :token AND final_at IS NOT NULL)
    + (SELECT coalesce(sum(p.credits), 0) FROM x402_payment p JOIN x402_confirmation c ON c.payload = p.payload
       WHERE p.token = :token AND c.final_at IS NOT NULL AND c.undone_at IS NULL)
    - (SELECT coalesce(sum(credits), 0) FROM refund
       WHERE token = :token AND booked_at IS NOT NULL AND state <> 'cancelled')"""
_TRANSFERS = """SELECT c.tx_hash, p.address FROM tx_credit c JOIN purchase p ON p.id = c.purchase
  WHERE c.token = ? ORDER BY c.credited_at"""
_SIGNERS = "SELECT authorizer FROM x402_payment WHERE token = ? AND state = 'settled' ORDER BY settled_at"


class SqlRefunds:
    """The refunds of one database. Every method raises StorageFailed when the database cannot
    be used; writes are durable when they return.
    """

    def __init__(self, file: GroupCommit) -> None:
        self._file = file

    async def add(self, draft: RefundDraft) -> StoredRefund:
        """Store a requested refund. Raises RefundRefused if the token does not have enough credits to refund."""
        return await self._file.alone(partial(_add, draft), room=ROOM)

    async def find(self, id: str) -> StoredRefund:
        """Return a refund by its id. Raises RefundRefused if there is none."""
        return await self._file.read(partial(_find, id))

    async def list_refunds(self, states: tuple[RefundState, ...]) -> list[StoredRefund]:
        """Return the refunds in these states, oldest first."""
        return await self._file.read(partial(_list, states))

    async def book(self, id: str, proof: str, payer: bytes, now: int) -> StoredRefund:
        """Take the credits, once. `proof` says how the buyer was recognised, `payer` is the account of ours that pays.

        Raises:
            RefundRefused, InsufficientCredits: nothing was changed.
        """
        return await self._file.alone(partial(_book, id, proof, payer, now), room=ROOM)

    async def cancel(self, id: str, now: int) -> StoredRefund:
        """Cancel a refund; credits that have left the token come back. Raises RefundRefused, PaymentRequired."""
        return await self._file.alone(partial(_cancel, id, now), room=ROOM)

    async def note_planned(self, ids: list[str], now: int) -> None:
        """Record that the payments of these refunds are in a plan to sign. From then on they cannot be cancelled."""
        await self._file.alone(partial(_note_planned, ids, now), room=ROOM)

    async def note_sending(self, id: str, tx_hash: bytes, *, replaces: bytes | None = None) -> None:
        """Record the transaction that is about to be sent. `replaces` is the recorded one that failed, if any.

        Raises:
            RefundRefused: another transaction was recorded in the meantime, so this one must not be sent.
        """
        await self._file.alone(partial(_note_sending, id, tx_hash, replaces), room=ROOM)

    async def note_paid(self, id: str, tx_hash: bytes, now: int) -> StoredRefund:
        """Record that the transfer is on the chain, which ends the refund."""
        return await self._file.alone(partial(_note_paid, id, tx_hash, now), room=ROOM)

    async def find_payments(self, token: str) -> TokenPayments:
        """Return the payments that brought credits to a token, given the hash that names its account.

        Raises RefundRefused if there is no such token.
        """
        return await self._file.read(partial(find_payments, token))


async def is_known_payment(file: GroupCommit, tx_hash: bytes) -> bool:
    """Return True if any table has a payment that was made by this transaction."""
    tables = ("tx_credit", "tx_reversal", "unapplied_payment", "payment_review", "x402_payment")
    sql = " UNION ALL ".join(f"SELECT 1 FROM {table} WHERE tx_hash=?1" for table in tables)
    return await file.read(lambda db: db.execute(sql, (tx_hash,)).fetchone() is not None)


def find_account_hash(db: SqlConnection, key: str) -> str:
    """Return the hash that names an account, given that hash or that of the token which replaced the first one.

    Raises RefundRefused for an allowance or an unknown token.
    """
    row = db.execute("SELECT hash FROM token WHERE ? IN (hash, successor)", (key,)).fetchone()
    if row is None:
        raise RefundRefused("there is no such token; an allowance has no purchases of its own")
    return str(row[0])


def find_payments(token: str, db: SqlConnection) -> TokenPayments:
    """Return the same within the caller's transaction. Raises RefundRefused if there is no such token."""
    token = find_account_hash(db, token)
    transfers = [PaidTransfer(bytes(tx), bytes(address)) for tx, address in db.execute(_TRANSFERS, (token,))]
    return TokenPayments(transfers, [bytes(signer) for (signer,) in db.execute(_SIGNERS, (token,))])


def _standing(db: SqlConnection, token: str, now: int) -> AccountStanding:
    ref = db.execute("SELECT ref FROM token WHERE hash=?", (token,)).fetchone()[0]
    return read_standing(db, str(ref), now)


def _read_room(db: SqlConnection, token: str, now: int) -> RefundRoom:
    paid_for = db.execute(_PAID_FOR, {"token": token}).fetchone()[0]
    return RefundRoom(_standing(db, token, now).credits, int(paid_for))


def _add(draft: RefundDraft, db: SqlConnection) -> StoredRefund:
    token = find_account_hash(db, draft.token)
    _read_room(db, token, draft.asked_at).require(draft.credits)
    row = (*draft._replace(token=token)[:4], draft.amount, draft.reason, "asked", draft.asked_at, draft.expires_at)
    columns = "id, token, payee, credits, amount, reason, state, asked_at, expires_at"
    db.execute(f"INSERT INTO refund({columns}) VALUES(?,?,?,?,?,?,?,?,?)", row)
    return _find(draft.id, db)


def _find(id: str, db: SqlConnection) -> StoredRefund:
    row = db.execute(_REFUND + "WHERE r.id=?", (id,)).fetchone()
    if row is None:
        raise RefundRefused(f"there is no refund {id}")
    return StoredRefund(*row)


def _list(states: tuple[RefundState, ...], db: SqlConnection) -> list[StoredRefund]:
    marks = ",".join("?" * len(states))
    rows = db.execute(f"{_REFUND}WHERE r.state IN ({marks}) ORDER BY r.asked_at, r.id", states)
    return [StoredRefund(*row) for row in rows]


def _book(id: str, proof: str, payer: bytes, now: int, db: SqlConnection) -> StoredRefund:
    refund = _find(id, db)
    require_bookable(refund, now)
    _read_room(db, refund.token, now).require(refund.credits)
    apply_operation(db, WithdrawCredits(refund.token, refund.credits, refund.cause), now)
    sql = "UPDATE refund SET state='booked', proof=?, payer=?, booked_at=? WHERE id=?"
    db.execute(sql, (proof, payer, now, id))
    return _find(id, db)


def _cancel(id: str, now: int, db: SqlConnection) -> StoredRefund:
    refund = _find(id, db)
    require_cancellable(refund)
    if refund.state == "booked":
        ref = _standing(db, refund.token, now).ref.ref
        apply_operation(db, Mint(ref, refund.credits, f"refund:{id}:cancelled", new_ref()), now)
    db.execute("UPDATE refund SET state='cancelled', ended_at=? WHERE id=?", (now, id))
    return _find(id, db)


def _note_planned(ids: list[str], now: int, db: SqlConnection) -> None:
    for id in ids:
        db.execute("UPDATE refund SET planned_at=coalesce(planned_at, ?) WHERE id=?", (now, id))


def _note_sending(id: str, tx_hash: bytes, replaces: bytes | None, db: SqlConnection) -> None:
    sql = """UPDATE refund SET state='sent', tx_hash=? WHERE id=? AND state IN ('booked', 'sent')
      AND tx_hash IS NOT DISTINCT FROM ? RETURNING id"""
    if db.execute(sql, (tx_hash, id, replaces)).fetchone() is None:
        raise RefundRefused(f"{id} is being submitted by another run of this program: submit the document again later")


def _note_paid(id: str, tx_hash: bytes, now: int, db: SqlConnection) -> StoredRefund:
    sql = "UPDATE refund SET state='paid', tx_hash=?, ended_at=? WHERE id=? AND state IN ('booked', 'sent')"
    db.execute(sql, (tx_hash, now, id))
    return _find(id, db)


_REISSUE = """SELECT r.id, r.token, r.payer, r.state, r.asked_at, r.expires_at, r.proved_at, r.due_at, r.ended_at,
  substr(coalesce(t.successor, t.hash), 1, 16) FROM reissue r JOIN token t ON t.hash = r.token """


class SqlReissues:
    """The reissues of one database. Every method raises StorageFailed when the database cannot
    be used; writes are durable when they return.
    """

    def __init__(self, file: GroupCommit, clock: Clock) -> None:
        self._file, self._now = file, milliseconds(clock)

    async def add(self, draft: ReissueDraft) -> StoredReissue:
        """Store a requested reissue. Raises RevokedToken, RefundRefused (unknown token), ReissueRefused."""
        return await self._file.alone(partial(_add_reissue, draft), room=ROOM)

    async def find(self, id: str) -> StoredReissue:
        """Return a reissue by its id. Raises ReissueRefused if there is none."""
        return await self._file.read(partial(find_reissue, id))

    async def list_reissues(self) -> list[StoredReissue]:
        """Return all reissues, oldest first."""
        rows = f"{_REISSUE}ORDER BY r.asked_at, r.id"
        return await self._file.read(lambda db: [StoredReissue(*row) for row in db.execute(rows)])

    async def prove(self, id: str) -> StoredReissue:
        """Start the waiting time, because the payer has signed. Raises ReissueRefused."""
        return await self._file.alone(partial(_prove_reissue, id, self._now()), room=ROOM)

    async def cancel(self, id: str) -> StoredReissue:
        """Cancel a reissue that was not carried out. Raises ReissueRefused."""
        return await self._file.alone(partial(_cancel_reissue, id, self._now()), room=ROOM)

    async def find_payments(self, token: str) -> TokenPayments:
        """Return the payments that brought credits to a token, given the hash that names its account.

        Raises RefundRefused if there is no such token.
        """
        return await self._file.read(partial(find_payments, token))

    async def find_due(self, token: str) -> int | None:
        """Return the time at which the token with this SHA-256 (hex) will be replaced, in
        epoch milliseconds, or None if no reissue waits.
        """
        sql = """SELECT r.due_at FROM reissue r JOIN token t ON t.hash = r.token
          WHERE r.state = 'waiting' AND coalesce(t.successor, t.hash) = ?"""
        row = await self._file.read(lambda db: db.execute(sql, (token,)).fetchone())
        return None if row is None else int(row[0])

    async def cancel_own(self, token: str) -> bool:
        """Cancel the reissue in the name of the token's holder. Return False if none waits."""
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


def _add_reissue(draft: ReissueDraft, db: SqlConnection) -> StoredReissue:
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


def _prove_reissue(id: str, now: int, db: SqlConnection) -> StoredReissue:
    reissue = find_reissue(id, db)
    require_provable(reissue, now)
    try:
        db.execute("UPDATE reissue SET state='waiting', proved_at=?, due_at=? WHERE id=?", (now, now + WAIT_MS, id))
    except ConstraintViolated:
        raise ReissueRefused("a reissue of this token is already waiting") from None
    return find_reissue(id, db)


def _cancel_reissue(id: str, now: int, db: SqlConnection) -> StoredReissue:
    require_open(find_reissue(id, db))
    db.execute("UPDATE reissue SET state='cancelled', ended_at=? WHERE id=?", (now, id))
    return find_reissue(id, db)


def _cancel_own(token: str, now: int, db: SqlConnection) -> bool:
    sql = """UPDATE reissue SET state='cancelled', ended_at=? WHERE state='waiting'
      AND token=(SELECT hash FROM token WHERE coalesce(successor, hash)=?)"""
    return db.execute(sql, (now, token)).rowcount > 0
