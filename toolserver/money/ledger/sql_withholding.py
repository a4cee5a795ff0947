"""Withholds the credits of a deposit while its payment is in doubt, and gives them back when the doubt ends.

    credited ── doubt ──▶ withheld ── the doubt ends ──▶ given back
                             └────── it is undone ─────▶ given back, and taken back for good in the same transaction

Each change is a transfer whose cause names the deposit and the number of the change, so it
happens once. Only what can be spent is withheld: a balance never becomes negative. What had
been spent before is missing, and named to a person; what is missing is withheld later, if a
call in progress is released.

The functions work within a transaction that their caller opened. Times are epoch milliseconds.
"""

from dataclasses import dataclass
from typing import NamedTuple

from toolserver.money.ledger.operations import LedgerOperation, Needs
from toolserver.money.ledger.sql_tables import apply_operation
from toolserver.money.ledger.state import ISSUED, LedgerState
from toolserver.sql.connection import SqlConnection

HELD, RELEASED = "held", "released"  # the prefixes of causes, before a colon


@dataclass(slots=True)
class Withhold(LedgerOperation[int]):
    """Set credits of an account aside, as many as can be spent but at most `credits`, even if its token is revoked.

    The result is how many were set aside.
    """

    key: str
    credits: int
    cause: str

    def needs(self) -> Needs:
        return Needs(self.key, None, self.cause)

    def on(self, books: LedgerState) -> int:
        account = books.accounts[books.payer(self.key).account]
        taken = min(self.credits, account.spendable)
        if taken > 0 and self.cause not in books.causes:
            books.write("posted", account.id, ISSUED, taken, cause=self.cause)
            return taken
        return 0


@dataclass(slots=True)
class GiveBack(LedgerOperation[int]):
    """Return credits that were set aside to their account. The result is how many were returned."""

    key: str
    credits: int
    cause: str

    def needs(self) -> Needs:
        return Needs(self.key, None, self.cause)

    def on(self, books: LedgerState) -> int:
        if self.cause in books.causes:
            return 0
        account = books.accounts[books.payer(self.key).account]
        books.write("posted", ISSUED, account.id, self.credits, cause=self.cause)
        books.rearm_alert(account)
        return self.credits


class WithheldCredits(NamedTuple):
    """The credits of a deposit that are withheld now, and how often that has changed."""

    credits: int
    changes: int


def read_withheld(deposit: str, db: SqlConnection) -> WithheldCredits:
    """Return what is withheld of a deposit, which its kind and its transaction or authorisation name."""
    credits, changes = 0, 0
    for way, sign in ((HELD, 1), (RELEASED, -1)):
        start = f"{way}:{deposit}:"
        sql = "SELECT count(*), coalesce(sum(amount), 0) FROM transfer WHERE cause>=? AND cause<?"
        count, amount = db.execute(sql, (start, start + "\U0010ffff")).fetchone()
        credits, changes = credits + sign * int(amount), changes + int(count)
    return WithheldCredits(credits, changes)


def withhold_credits(deposit: str, token: str, credits: int, now: int, db: SqlConnection) -> int:
    """Withhold the rest of a deposit's `credits`, as far as they can be spent. Return how many are missing."""
    before = read_withheld(deposit, db)
    missing = credits - before.credits
    if missing > 0:
        cause = f"{HELD}:{deposit}:{before.changes + 1}"
        missing -= apply_operation(db, Withhold(token, missing, cause), now)
    return missing


def give_back_credits(deposit: str, token: str, now: int, db: SqlConnection) -> int:
    """Give back all that is withheld of a deposit, and return how many credits that is."""
    before = read_withheld(deposit, db)
    if before.credits == 0:
        return 0
    cause = f"{RELEASED}:{deposit}:{before.changes + 1}"
    return apply_operation(db, GiveBack(token, before.credits, cause), now)
