"""Signed payments in the ledger's database: each authorisation once, and a top-up together with its credits.

Every function here is a job for `Durable.alone` or `Durable.read`: it is given the connection, and if it raises,
nothing of what it wrote remains.
"""

import sqlite3
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from toolserver.billing.ledger import new_ref
from toolserver.billing.rules import ISSUED, Books, Mint, Needs, Operation, Revoke
from toolserver.billing.tables import decided
from toolserver.errors import ToolserverError
from toolserver.payments.units import NETWORK
from toolserver.payments.x402.wire import Payment

State = Literal["settling", "settled"]
REPLACED = "given anew to whoever paid for it"
LOOKED_AT = 200  # unsettled payments at a time
_FAR = 2**62  # an end of validity that no clock of ours will reach


class NonceUsed(ToolserverError):
    """This authorisation was sent before, with another signature."""


class Kept(NamedTuple):
    """A payment as it is stored. `used`: the token it was credited to has been spent from."""

    payload: bytes
    request: str
    state: State
    tx_hash: bytes | None
    claim: bytes | None
    token: str | None
    credits: int | None
    sealed: bytes | None
    sealed_until: int | None
    begun_at: int
    settled_at: int | None
    used: int


class Open(NamedTuple):
    """A payment that was handed on, and what the chain can be asked about it."""

    payload: bytes
    payer: bytes
    nonce: bytes
    amount: int
    request: str
    valid_before: int


class Credit(NamedTuple):
    """A top-up to be credited: to whose token (a hash), and under what its sender may get a new token again."""

    payload: bytes
    tx_hash: bytes
    token: str
    credits: int
    sealed: bytes | None
    sealed_until: int | None


_KEPT = """SELECT p.payload, p.request, p.state, p.tx_hash, p.claim, p.token, p.credits, p.sealed, p.sealed_until,
  p.begun_at, p.settled_at, coalesce(a.debits + a.pending > 0, 0)
  FROM x402_payment p LEFT JOIN token t ON t.hash = p.token LEFT JOIN account a ON a.id = t.account WHERE p.payload=?"""


def find(db: sqlite3.Connection, payload: bytes) -> Kept | None:
    """What became of a payment; None when it was never handed on."""
    row = db.execute(_KEPT, (payload,)).fetchone()
    return Kept(*row) if row else None


def begin(db: sqlite3.Connection, payment: Payment, request: str, claim: bytes | None, now: int) -> None:
    """Write down that a payment is about to be handed on. Raises NonceUsed when it ever was."""
    columns = "payload, authorizer, nonce, amount, request, state, valid_before, claim, begun_at"
    row = (
        *(payment.id, payment.payer, payment.nonce, payment.amount, request, "settling"),
        *(min(payment.valid_before, _FAR), claim, now),
    )
    try:
        db.execute(f"INSERT INTO x402_payment({columns}) VALUES(?,?,?,?,?,?,?,?,?)", row)
    except sqlite3.IntegrityError as error:
        raise NonceUsed("handed on before") from error


def drop(db: sqlite3.Connection, payload: bytes) -> None:
    """It was certainly not made: whoever signed it may send it again."""
    db.execute("DELETE FROM x402_payment WHERE payload=? AND state='settling'", (payload,))


def seen(db: sqlite3.Connection, payload: bytes, tx_hash: bytes) -> None:
    """In which transaction it is said to be."""
    db.execute("UPDATE x402_payment SET tx_hash=? WHERE payload=? AND state='settling'", (tx_hash, payload))


def settled(db: sqlite3.Connection, payload: bytes, tx_hash: bytes, now: int) -> None:
    """It was made, for good."""
    db.execute(
        "UPDATE x402_payment SET state='settled', tx_hash=?, settled_at=? WHERE payload=? AND state='settling'",
        (tx_hash, now, payload),
    )


def credit(db: sqlite3.Connection, given: Credit, now: int) -> None:
    """Turn a payment into credits: settled, minted and told to whom, or none of it. Once for each payment."""
    settled(db, given.payload, given.tx_hash, now)
    row = db.execute("SELECT authorizer, nonce, token FROM x402_payment WHERE payload=?", (given.payload,)).fetchone()
    if row is None or row[2] is not None:
        raise NonceUsed("credited before")
    _do(db, Mint(given.token, given.credits, f"x402:{NETWORK}:0x{row[0].hex()}:0x{row[1].hex()}", new_ref()), now)
    _told(db, given)


def replace(db: sqlite3.Connection, old: str, given: Credit, now: int) -> None:
    """Move the credits of a token that its buyer never got to a new one. Raises NonceUsed once it was used."""
    kept = find(db, given.payload)
    if kept is None or kept.token != old or kept.used:
        raise NonceUsed("used before")
    if _do(db, _Withdraw(old, given.credits), now) != given.credits:
        raise NonceUsed("used before")
    _do(db, Mint(given.token, given.credits, f"x402:replaces:{old}", new_ref()), now)
    _told(db, given)


@dataclass(slots=True)
class _Withdraw(Operation[int]):
    """Make a token that nobody has invalid, and take its credits back; how many."""

    key: str
    credits: int

    def needs(self) -> Needs:
        return Needs(self.key)

    def on(self, books: Books) -> int:
        account = books.accounts[books.tokens[self.key].account]
        taken = min(self.credits, account.spendable)
        Revoke(self.key, REPLACED).on(books)
        if taken > 0:
            books.write("posted", account.id, ISSUED, taken)
        return taken


def _told(db: sqlite3.Connection, given: Credit) -> None:
    db.execute(
        "UPDATE x402_payment SET token=?, credits=?, sealed=?, sealed_until=? WHERE payload=?",
        (given.token, given.credits, given.sealed, given.sealed_until, given.payload),
    )


def _do(db: sqlite3.Connection, operation: Operation[Any], now: int) -> Any:
    """An operation of the ledger, within this transaction."""
    outcome = decided(lambda: now, db, [operation])[0]
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def open_since(db: sqlite3.Connection, before: int) -> list[Open]:
    """Payments handed on before a moment of which nobody knows the end, oldest first."""
    columns = "payload, authorizer, nonce, amount, request, valid_before"
    sql = (
        f"SELECT {columns} FROM x402_payment WHERE state='settling' AND begun_at<? ORDER BY begun_at LIMIT {LOOKED_AT}"
    )
    return [Open(*row) for row in db.execute(sql, (before,))]
