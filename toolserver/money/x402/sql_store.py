"""Stores signed payments in the ledger's database, so that a top-up and its credits are one transaction."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from toolserver.money.ledger.sql_tables import apply_operation, find_cause
from toolserver.money.purchases.listing import ReviewCase
from toolserver.money.x402.records import (
    FIRST,
    MOST_LISTED,
    BegunPayment,
    NonceUsed,
    PaymentBacklog,
    StoredPayment,
    TopupCredit,
    UnsettledPayment,
    mint_replacement,
    mint_topup,
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
    """Implements PaymentStore. Every method raises StorageFailed when the database cannot be used.

    With a `task`, a write raises LeaseLost if another instance has taken over that task.
    """

    def __init__(self, file: GroupCommit, task: LeasedTask | None = None) -> None:
        self._file, self._task = file, task

    async def _write(self, job: Callable[[SqlConnection], R]) -> R:
        return await self._file.alone(job if self._task is None else self._task.guard(job), room=ROOM)

    async def find_payment(self, payload: bytes) -> StoredPayment | None:
        return await self._file.read(partial(_find_payment, payload))

    async def begin_payment(self, payment: BegunPayment) -> None:
        await self._write(partial(_begin_payment, payment))

    async def drop_payment(self, payload: bytes) -> None:
        await self._write(partial(_drop_payment, payload))

    async def record_transaction(self, payload: bytes, tx_hash: bytes) -> None:
        await self._write(partial(_record_transaction, payload, tx_hash))

    async def record_settled(self, payload: bytes, tx_hash: bytes, now: int) -> None:
        await self._write(partial(_record_settled, payload, tx_hash, now))

    async def credit_topup(self, credit: TopupCredit) -> None:
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
        await self._write(partial(_replace_token, old, credit))

    async def record_answered(self, payload: bytes, now: int) -> None:
        await self._write(partial(_record_answered, payload, now))

    async def forget_old_tokens(self, now: int) -> None:
        await self._write(partial(_forget_old_tokens, now))

    async def list_unsettled(self, before: int, after: tuple[int, bytes] = FIRST) -> list[UnsettledPayment]:
        return await self._file.read(partial(_list_unsettled, before, after))

    async def list_payment_cases(self, now: int) -> list[ReviewCase]:
        return await self._file.read(partial(_list_payment_cases, now))

    async def measure_backlog(self, now: int) -> PaymentBacklog:
        return await self._file.read(partial(_measure_backlog, now))


def read_pending(place: LedgerPlace) -> list[UnsettledPayment]:
    """Return every unsettled payment, oldest first, even while a service has the database open."""
    return read_place(place, partial(_list_unsettled, _FAR, FIRST, limit=_FAR))


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


def _list_unsettled(
    before: int, after: tuple[int, bytes], db: SqlConnection, limit: int = MOST_LISTED
) -> list[UnsettledPayment]:
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
