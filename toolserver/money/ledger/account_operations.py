"""Operations that an operator applies to an account: take unspent credits for a refund, and replace a lost token."""

from dataclasses import dataclass
from typing import NamedTuple

from toolserver.errors import InsufficientCredits, InvalidToken, RevokedToken
from toolserver.money.ledger.operations import ISSUED, CauseReused, LedgerOperation, LedgerState, Needs
from toolserver.money.ledger.state import Token


class Withdrawn(NamedTuple):
    """Credits that left an account, and the credits that can still be spent."""

    credits: int
    remaining: int
    replayed: bool = False


@dataclass(slots=True)
class WithdrawCredits(LedgerOperation[Withdrawn]):
    """Take unspent credits from an account for good, once for each cause, even if its token is revoked.

    Raises:
        InvalidToken: there is no such token, or it is an allowance.
        InsufficientCredits: fewer credits can be spent now.
        CauseReused: the cause has already moved other credits.
    """

    key: str
    credits: int
    cause: str

    def __post_init__(self) -> None:
        if self.credits < 1:
            raise ValueError(f"{self.credits!r} is not a valid number of credits")

    def needs(self) -> Needs:
        return Needs(self.key, None, self.cause)

    def on(self, books: LedgerState) -> Withdrawn:
        account = books.accounts[find_own_token(books, self.key).account]
        known = books.causes.get(self.cause)
        if known is not None:
            if (known.debit, known.credit, known.amount) != (account.id, ISSUED, self.credits):
                raise CauseReused(f"{self.cause} moved other credits before")
            return Withdrawn(self.credits, account.spendable, replayed=True)
        if account.spendable < self.credits:
            raise InsufficientCredits(
                f"{self.credits} credits cannot be taken, because only {account.spendable} can be spent.",
                required=self.credits,
                credits_remaining=account.spendable,
            )
        books.write("posted", account.id, ISSUED, self.credits, cause=self.cause)
        return Withdrawn(self.credits, account.spendable)


@dataclass(slots=True)
class ReplaceToken(LedgerOperation[bool]):
    """Make the token with the hash `successor` open an account. The old token is refused from then on.

    Account, allowances and calls in progress stay as they are. The result is False if this was already done.

    Raises:
        InvalidToken: there is no such token, or it is an allowance.
        RevokedToken: the token was revoked, or replaced by yet another one.
    """

    key: str
    successor: str

    def needs(self) -> Needs:
        return Needs(self.key)

    def on(self, books: LedgerState) -> bool:
        token = find_own_token(books, self.key)
        if token.live == self.successor:
            return False
        if token.revoked_at is not None:
            raise RevokedToken("The token was revoked.")
        if self.key not in (token.live, token.ref):
            raise RevokedToken("The token was replaced by another one.")
        books.add(token._replace(successor=self.successor))
        return True


def find_own_token(books: LedgerState, key: str) -> Token:
    """Return the token of an account, valid or not. Raises InvalidToken for an allowance or an unknown key."""
    if books.find_allowance(key) is not None:
        raise InvalidToken("This token is an allowance. Give the token whose credits it spends.")
    return books.payer(key)
