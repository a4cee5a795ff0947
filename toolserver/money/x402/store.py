"""Stores signed payments, and what the chain shows of them, in the ledger's database: a top-up
and its credits are one transaction.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from toolserver.money.ledger.sql_tables import apply_operation, find_cause
from toolserver.money.ledger.sql_withholding import give_back_credits, read_withheld, withhold_credits
from toolserver.money.purchases.listing import ReviewCase
from toolserver.money.purchases.records import PAYMENT_UNDONE, TakeBack
from toolserver.money.x402.records import (
    FIRST,
    MOST_LISTED,
    BegunPayment,
    NonceUsed,
    PaymentBacklog,
    PaymentPlace,
    StoredPayment,
    TopupCredit,
    UnsettledPayment,
    WatchedPayment,
    describe_request,
    mint_replacement,
    mint_topup,
    owner_of,
    show_payment_case,
    withdraw_unused,
)
from toolserver.sql.connection import SqlConnection
from toolserver.sql.errors import ConstraintViolated
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.leases import LeasedTask
from toolserver.sql.ledger_place import LedgerPlace, read_place

R = TypeVar("R")

ROOM = "x402"  # writes about signed payments: by one instance at a time
_FAR = 2**62  # an end of validity that no clock of ours will reach; SQLite's largest integer is 2**63 - 1
_STORED = """SELECT p.payload, p.request, p.state, p.tx_hash, p.claim, coalesce(t.successor, t.hash), p.credits,
  p.sealed, p.sealed_until, p.begun_at, p.settled_at, p.begun_block, p.answered_at,
  coalesce(a.debits + a.pending, 0) > 0
  FROM x402_payment p LEFT JOIN token t ON t.hash = p.token LEFT JOIN account a ON a.id = t.account WHERE """
_OPEN = "p.state='settling' OR (p.state='settled' AND p.token IS NULL AND p.answered_at IS NULL)"


class SqlPaymentStore:
    """The signed payments of one database. Each call is a durable transaction. Every method
    raises StorageFailed when the database cannot be used.

    With a `task`, a write raises LeaseLost if another instance has taken over that task.
    """

    def __init__(self, file: GroupCommit, task: LeasedTask | None = None) -> None:
        self._file, self._task = file, task

    async def _write(self, job: Callable[[SqlConnection], R]) -> R:
        return await self._file.alone(job if self._task is None else self._task.guard(job), room=ROOM)

    async def find_payment(self, payload: bytes) -> StoredPayment | None:
        """Return a payment, or None if it was never handed on or was certainly not made."""
        return await self._file.read(partial(_find_payment, payload))

    async def begin_payment(self, payment: BegunPayment) -> None:
        """Store a payment before it is handed on. Raises NonceUsed if payer and nonce are stored already."""
        await self._write(partial(_begin_payment, payment))

    async def drop_payment(self, payload: bytes) -> None:
        """Delete a payment that was certainly not made, so that its sender may try again. Settled payments stay."""
        await self._write(partial(_drop_payment, payload))

    async def record_transaction(self, payload: bytes, tx_hash: bytes) -> None:
        """Record the transaction that the facilitator names for an unsettled payment."""
        await self._write(partial(_record_transaction, payload, tx_hash))

    async def record_settled(self, payload: bytes, tx_hash: bytes, now: int) -> None:
        """Record that a payment was made. A payment that is settled already stays as it is."""
        await self._write(partial(_record_settled, payload, tx_hash, now))

    async def credit_topup(self, credit: TopupCredit) -> None:
        """Settle a payment and mint its credits, once per payment, in one transaction.

        Raises:
            NonceUsed: the payment is unknown or was credited before.
            PaymentRequired: the token was revoked. Nothing was written in either case.
        """
        await self._write(partial(_credit_topup, credit))

    async def credit_recovered(self, topups: Sequence[tuple[BegunPayment, TopupCredit]]) -> None:
        """Store payments that the chain has and no table knows, with their credits: all or none of them.

        Raises NonceUsed if one of them is stored already, or if credits were granted for the transaction by hand.
        """
        await self._write(partial(_credit_recovered, topups))

    async def find_unknown(self, authorisations: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Return those of the authorisations (payer, nonce) for which no payment is stored."""
        return await self._file.read(partial(_find_unknown, authorisations))

    async def replace_token(self, old: str, credit: TopupCredit) -> None:
        """Move the credits of a token that its buyer never got to a new one. Raises NonceUsed if it was used."""
        await self._write(partial(_replace_token, old, credit))

    async def record_answered(self, payload: bytes, now: int) -> None:
        """Record that a paid call got its answer. The first such record stays."""
        await self._write(partial(_record_answered, payload, now))

    async def forget_old_tokens(self, now: int) -> None:
        """Delete every encrypted token whose `sealed_until` has passed."""
        await self._write(partial(_forget_old_tokens, now))

    async def list_unsettled(
        self, before: int, after: tuple[int, bytes] = FIRST, limit: int = MOST_LISTED
    ) -> list[UnsettledPayment]:
        """Return at most `limit` unsettled payments that were begun before a time (epoch ms), oldest first.

        `after` is the pair of `begun_at` and `payload` of the previous page's last payment.
        """
        return await self._file.read(partial(_list_unsettled, before, after, limit))

    async def list_payment_cases(self, now: int) -> list[ReviewCase]:
        """Return the cases for a person, oldest first: see `toolserver.money.x402.records.judge_case`."""
        return await self._file.read(partial(_list_payment_cases, now))

    async def measure_backlog(self, now: int) -> PaymentBacklog:
        """Count the payments that are unsettled, and those that are cases."""
        return await self._file.read(partial(_measure_backlog, now))

    async def list_watched(self) -> list[WatchedPayment]:
        """Return the payments that are not final or that no second server has confirmed."""
        return await self._file.read(lambda db: [WatchedPayment(*row) for row in db.execute(_WATCHED)])

    async def record_place(self, place: PaymentPlace, now: int) -> None:
        """Record where a payment is on the chain: it no longer counts as missing, nor is withheld for that."""
        await self._write(partial(_record_place, place, now))

    async def record_disputed(self, payload: bytes, now: int) -> None:
        """Record that servers disagree, and withhold the credits of a top-up. The first such record stays."""
        await self._write(partial(_note, "disputed_since", payload, now))

    async def record_missing(self, payload: bytes, now: int) -> None:
        """Record that no server has the payment, and withhold the credits of a top-up. The first such record stays."""
        await self._write(partial(_note, "missing_since", payload, now))

    async def undo_payment(self, payload: bytes, now: int) -> tuple[int, int]:
        """Take back what a payment bought. Return the credits taken back, and those lost because they were spent."""
        return await self._write(partial(_undo, payload, now))

    async def is_undone(self, payload: bytes) -> bool:
        """Return True if a payment was undone on the chain."""
        sql = "SELECT 1 FROM x402_confirmation WHERE payload=? AND undone_at IS NOT NULL"
        return await self._file.read(lambda db: db.execute(sql, (payload,)).fetchone() is not None)


def read_pending(place: LedgerPlace) -> list[UnsettledPayment]:
    """Return every unsettled payment, oldest first, even while a service has the database open."""
    return read_place(place, partial(_list_unsettled, _FAR, FIRST, _FAR))


def read_payment_cases(place: LedgerPlace, now: int) -> list[ReviewCase]:
    """Return the stored cases, even while a service has the database open. Raises StorageFailed."""
    return read_place(place, partial(_list_payment_cases, now))


def _find_payment(payload: bytes, db: SqlConnection) -> StoredPayment | None:
    row = db.execute(_STORED + "p.payload=?", (payload,)).fetchone()
    return StoredPayment(*row)._replace(used=bool(row[-1])) if row else None


def _begin_payment(payment: BegunPayment, db: SqlConnection) -> None:
    columns = "payload, authorizer, nonce, amount, request, valid_before, claim, begun_at, begun_block"
    row = payment._replace(valid_before=min(payment.valid_before, _FAR))
    try:
        db.execute(f"INSERT INTO x402_payment({columns}, state) VALUES(?,?,?,?,?,?,?,?,?,'settling')", row)
    except ConstraintViolated as error:
        raise NonceUsed("handed on before") from error


def _drop_payment(payload: bytes, db: SqlConnection) -> None:
    db.execute("DELETE FROM x402_payment WHERE payload=? AND state='settling'", (payload,))


def _record_transaction(payload: bytes, tx_hash: bytes, db: SqlConnection) -> None:
    db.execute("UPDATE x402_payment SET tx_hash=? WHERE payload=? AND state='settling'", (tx_hash, payload))


def _record_settled(payload: bytes, tx_hash: bytes, now: int, db: SqlConnection) -> None:
    db.execute(
        "UPDATE x402_payment SET state='settled', tx_hash=?, settled_at=? WHERE payload=? AND state='settling'",
        (tx_hash, now, payload),
    )


def _credit_topup(credit: TopupCredit, db: SqlConnection) -> None:
    row = db.execute("SELECT authorizer, nonce, token FROM x402_payment WHERE payload=?", (credit.payload,)).fetchone()
    if row is None:
        raise NonceUsed("not handed on")
    apply_operation(db, mint_topup(credit, *row), credit.credited_at)
    _record_settled(credit.payload, credit.tx_hash, credit.credited_at, db)
    _record_token(db, credit)


def _credit_recovered(topups: Sequence[tuple[BegunPayment, TopupCredit]], db: SqlConnection) -> None:
    for payment, credit in topups:
        if find_cause(db, f"grant:0x{credit.tx_hash.hex()}:") is not None:
            raise NonceUsed("credits were given for this transaction by hand")
        _begin_payment(payment, db)
        _credit_topup(credit, db)


def _find_unknown(authorisations: Sequence[tuple[bytes, bytes]], db: SqlConnection) -> list[tuple[bytes, bytes]]:
    sql = "SELECT 1 FROM x402_payment WHERE authorizer=? AND nonce=?"
    return [one for one in authorisations if db.execute(sql, one).fetchone() is None]


def _replace_token(old: str, credit: TopupCredit, db: SqlConnection) -> None:
    withdrawal = withdraw_unused(old, _find_payment(credit.payload, db), credit.credits)
    taken = apply_operation(db, withdrawal, credit.credited_at)
    apply_operation(db, mint_replacement(old, credit, taken), credit.credited_at)
    _record_token(db, credit)


def _record_token(db: SqlConnection, credit: TopupCredit) -> None:
    db.execute(
        """UPDATE x402_payment SET token=(SELECT hash FROM token WHERE ? IN (hash, successor)),
        credits=?, sealed=?, sealed_until=? WHERE payload=?""",
        (credit.token, credit.credits, credit.sealed, credit.sealed_until, credit.payload),
    )


def _record_answered(payload: bytes, now: int, db: SqlConnection) -> None:
    db.execute("UPDATE x402_payment SET answered_at=? WHERE payload=? AND answered_at IS NULL", (now, payload))


def _forget_old_tokens(now: int, db: SqlConnection) -> None:
    sql = "UPDATE x402_payment SET sealed=NULL, sealed_until=NULL WHERE sealed IS NOT NULL AND sealed_until<?"
    db.execute(sql, (now,))


def _list_unsettled(before: int, after: tuple[int, bytes], limit: int, db: SqlConnection) -> list[UnsettledPayment]:
    columns = "payload, authorizer, nonce, amount, request, valid_before, begun_at, begun_block, tx_hash"
    where = "state='settling' AND begun_at<? AND (begun_at, payload)>(?,?) ORDER BY begun_at, payload LIMIT ?"
    rows = db.execute(f"SELECT {columns} FROM x402_payment WHERE {where}", (before, *after, limit))
    return [UnsettledPayment(*row) for row in rows]


def _list_payment_cases(now: int, db: SqlConnection) -> list[ReviewCase]:
    cases = []
    for payload, payer, amount in db.execute(f"SELECT payload, authorizer, amount FROM x402_payment p WHERE {_OPEN}"):
        stored = _find_payment(payload, db)
        if stored is not None and (case := show_payment_case(stored, payer, amount, now)):
            cases.append(case)
    return sorted(cases, key=lambda case: case.at)


def _measure_backlog(now: int, db: SqlConnection) -> PaymentBacklog:
    sql = "SELECT count(*), min(begun_at) FROM x402_payment WHERE state='settling'"
    pending, oldest_at = db.execute(sql).fetchone()
    return PaymentBacklog(pending, oldest_at, len(_list_payment_cases(now, db)))


_WATCHED = """SELECT p.payload, p.authorizer, p.nonce, p.amount, p.request, coalesce(c.tx_hash, p.tx_hash), p.token,
  p.settled_at, c.agreed_at, c.disputed_since, c.missing_since
  FROM x402_confirmation c JOIN x402_payment p USING (payload)
  WHERE c.final_at IS NULL AND c.undone_at IS NULL ORDER BY p.settled_at"""
_CASES = """SELECT CASE WHEN c.undone_at IS NULL THEN 'disputed' ELSE 'undone' END,
  p.tx_hash, p.authorizer, p.amount, p.request, c.lost,
  coalesce(c.undone_at, c.disputed_since), p.credits, payload
  FROM x402_confirmation c JOIN x402_payment p USING (payload)
  WHERE c.undone_at IS NOT NULL OR c.disputed_since IS NOT NULL"""


def read_confirmation_cases(place: LedgerPlace) -> list[ReviewCase]:
    """Return the stored cases, even while a service has the database open. Raises StorageFailed."""
    return read_place(place, _list_cases)


def _list_cases(db: SqlConnection) -> list[ReviewCase]:
    rows = [(ReviewCase(*row), credits, payload) for *row, credits, payload in db.execute(_CASES).fetchall()]
    return [
        case._replace(
            reason=describe_request(case.reason or ""),
            lost=case.lost if case.kind == "undone" else _count_spent(credits, bytes(payload), db),
        )
        for case, credits, payload in rows
    ]


def _count_spent(credits: int | None, payload: bytes, db: SqlConnection) -> int | None:
    """Return how many credits of a top-up in dispute had been spent, or None if it was none."""
    return ((credits or 0) - read_withheld(name_topup(payload), db).credits) or None


def _record_place(place: PaymentPlace, now: int, db: SqlConnection) -> None:
    payload, *values = place
    db.execute(
        """UPDATE x402_confirmation SET block_number=?1, block_hash=?2, agreed_at=?3, final_at=?4, missing_since=NULL,
        disputed_since=CASE WHEN CAST(?3 AS bigint) IS NULL OR CAST(?4 AS bigint) IS NULL THEN disputed_since END
        WHERE payload=?5""",
        (*values, payload),
    )
    _weigh(payload, now, db)


def _note(column: str, payload: bytes, now: int, db: SqlConnection) -> None:
    db.execute(f"UPDATE x402_confirmation SET {column}=coalesce({column}, ?) WHERE payload=?", (now, payload))
    _weigh(payload, now, db)


_DOUBT = """SELECT p.token, p.credits,
  CASE WHEN c.missing_since IS NOT NULL OR c.disputed_since IS NOT NULL THEN 1 ELSE 0 END
  FROM x402_confirmation c JOIN x402_payment p USING (payload)
  WHERE payload=? AND c.undone_at IS NULL AND p.token IS NOT NULL"""


def _weigh(payload: bytes, now: int, db: SqlConnection) -> None:
    """Withhold what a top-up bought while it is in doubt, and give it back once it is not."""
    row = db.execute(_DOUBT, (payload,)).fetchone()
    if row is None:
        return
    token, credits, is_doubtful = row
    if is_doubtful:
        withhold_credits(name_topup(payload), token, credits, now, db)
    else:
        give_back_credits(name_topup(payload), token, now, db)


def name_topup(payload: bytes) -> str:
    """Return the name of a top-up's deposit in the causes of the ledger."""
    return f"x402:0x{payload.hex()}"


def _undo(payload: bytes, now: int, db: SqlConnection) -> tuple[int, int]:
    """Take back only what the payment bought. A token that it did not issue stays valid unless those were spent."""
    sql = """SELECT p.token, coalesce(p.credits, 0), p.request
      FROM x402_payment p JOIN x402_confirmation c USING (payload) WHERE payload=? AND c.undone_at IS NULL"""
    row = db.execute(sql, (payload,)).fetchone()
    if row is None:  # another instance was first
        return 0, 0
    token, credits, request = row
    if token:
        give_back_credits(name_topup(payload), token, now, db)
    withdrawal = TakeBack(token, credits, PAYMENT_UNDONE, spares=owner_of(request) is not None)
    taken = int(apply_operation(db, withdrawal, now)) if token else 0
    db.execute(
        "UPDATE x402_confirmation SET undone_at=?, taken_back=?, lost=? WHERE payload=? AND undone_at IS NULL",
        (now, taken, credits - taken, payload),
    )
    return taken, credits - taken
