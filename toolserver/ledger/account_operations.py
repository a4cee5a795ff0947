"""What an operator may do with an account beside granting credits: pay unspent ones back, and replace a lost token."""

from dataclasses import dataclass
from typing import NamedTuple

from toolserver.errors import InsufficientCredits, InvalidToken, RevokedToken
from toolserver.ledger.operations import ISSUED, CauseReused, LedgerOperation, LedgerState, Needs
from toolserver.ledger.state import Token


class Withdrawn(NamedTuple):
    """Credits that left an account, and what can be spent without them."""

    credits: int
    remaining: int
    replayed: bool = False


@dataclass(slots=True)
class WithdrawCredits(LedgerOperation[Withdrawn]):
    """Take unspent credits from an account for good, once for each cause; also from that of a revoked token.

    Raises:
        InvalidToken: there is no such token, or it is an allowance.
        InsufficientCredits: fewer can be spent now.
        CauseReused: the cause moved other credits before.
    """

    key: str
    credits: int
    cause: str

    def __post_init__(self) -> None:
        if self.credits < 1:
            raise ValueError(f"{self.credits!r} is no number of credits")

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
                f"{account.spendable} credits can be spent, {self.credits} were to be taken.",
                required=self.credits,
                credits_remaining=account.spendable,
            )
        books.write("posted", account.id, ISSUED, self.credits, cause=self.cause)
        return Withdrawn(self.credits, account.spendable)


@dataclass(slots=True)
class ReplaceToken(LedgerOperation[bool]):
    """Let the token with the hash `successor` open an account; the one before is refused from then on.

    Account, allowances and calls in progress stay as they are. The result is False when it was done before.

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
    """The token of an account, valid or not. Raises InvalidToken for an allowance, and when there is none."""
    if key in books.allowances:
        raise InvalidToken("This is an allowance: name the token whose credits it spends.")
    return books.payer(key)
