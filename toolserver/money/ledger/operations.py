"""Decides what operations do to the ledger, by pure rules that are the same for every engine.

An operation works on a `LedgerState`, which holds the accounts and reservations that the operation names, as they are
within the transaction. It either writes transfers and changes the state, or raises and changes nothing. These are the
states of a reservation:

    open ── charge ──▶ posted
     │                   │ release
     │ release, expiry   ▼
     └──▶ voided      reversed

No step leads back, so a charge and a release of one call may arrive repeatedly and in any order.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from toolserver.errors import InsufficientCredits, InvalidToken, ToolserverError
from toolserver.money.ledger.state import (
    ISSUED,
    REVENUE,
    Account,
    AccountStanding,
    Hold,
    Kind,
    LedgerState,
    LedgerTransfer,
    Minted,
    NoCharge,
    Reservation,
    Settlement,
    State,
    Who,
    find_maker,
)

__all__ = [
    "ISSUED",
    "AccountStanding",
    "Charge",
    "LedgerOperation",
    "LedgerState",
    "Mint",
    "Needs",
    "NoCharge",
    "Reserve",
    "Revoke",
    "Settle",
    "Who",
]

R = TypeVar("R")

EXPIRED = "expired"
MOST = 10**15  # credits in one transfer; their sums stay far below 2**63
_REASON = 64

_MOVES: dict[tuple[State, bool], tuple[State, Kind]] = {
    ("open", True): ("posted", "post"),
    ("open", False): ("voided", "void"),
    ("posted", False): ("reversed", "reverse"),
}


class UnknownCall(ToolserverError):
    """No reservation has this call_id. A caller that wants to release it may treat it as released."""


class CallReused(ToolserverError):
    """The call_id was already used for another call, with another token or another price."""


class CauseReused(ToolserverError):
    """The cause was already credited, to another token or with another amount."""


class Needs(NamedTuple):
    """The rows that an operation needs: those of a token or account, of a call, and of a cause of credits.

    `allowance` is the id or hash of an allowance. With `family`, the live allowances of the token are needed too.
    """

    key: str | None = None
    call_id: str | None = None
    cause: str | None = None
    allowance: str | None = None
    family: bool = False


@dataclass(slots=True)
class LedgerOperation(Generic[R]):
    """A change of the ledger, as a value."""

    def needs(self) -> Needs:
        """Return the rows that must be loaded into the state for this operation."""
        raise NotImplementedError

    def on(self, books: LedgerState) -> R:
        """Apply it to the state and return its result. Raises a ToolserverError and changes nothing."""
        raise NotImplementedError

    def settled(self, books: LedgerState, hold: Hold, *, charge: bool, reason: str | None = None) -> Settlement:
        """Move a reservation to its next state, if it has one, and return its settlement."""
        move = _MOVES.get((hold.state, charge))
        if move is not None:
            hold.state, kind = move
            hold.reason, hold.settled_at = reason, books.now
            ours, theirs = REVENUE, hold.account
            debit, credit = (ours, theirs) if kind == "reverse" else (theirs, ours)
            books.write(kind, debit, credit, hold.credits, resolves=hold.transfer)
            books.keep(hold)
            if hold.allowance is not None and not charge:
                allowance = books.allowances[hold.allowance]
                allowance.give_back(hold.credits, hold.day)
                books.keep_allowance(allowance)
        return _settlement(books, hold, replayed=move is None)


@dataclass(slots=True)
class _Spending(LedgerOperation[R]):
    """An operation that needs credits on a valid token's account."""

    call_id: str
    key: str
    credits: int
    endpoint: str
    service: str = ""
    expires_at: int = 0

    def __post_init__(self) -> None:
        _whole(self.credits)

    def needs(self) -> Needs:
        return Needs(self.key, self.call_id)

    def found(self, books: LedgerState) -> tuple[Account, Hold | None]:
        """Return the account, and the reservation if there is one for this call. Raises the refusal to spend."""
        _, account = books.valid(self.key)
        hold, allowance = books.holds.get(self.call_id), books.find_allowance(self.key)
        named = (account.id, self.credits, None if allowance is None else allowance.id)
        if hold is not None and (hold.account, hold.credits, hold.allowance) != named:
            raise CallReused(f"{self.call_id} is already used for another call")
        if hold is None and allowance is not None:
            allowance.check_caps(self.credits, self.endpoint, books.now, find_maker(self.call_id))
        if hold is None and account.spendable < self.credits:
            raise InsufficientCredits(
                f"This call costs {self.credits} credits, and {account.spendable} are left.",
                required=self.credits,
                credits_remaining=account.spendable,
            )
        return account, hold

    def hold(self, books: LedgerState, account: Account, state: State, kind: Kind) -> Hold:
        transfer = books.write(kind, account.id, REVENUE, self.credits)
        settled_at = None if state == "open" else books.now
        hold = Hold(
            self.call_id,
            account.id,
            self.credits,
            state,
            None,
            self.endpoint,
            self.service,
            transfer.seq,
            self.expires_at,
            settled_at,
        )
        if (allowance := books.find_allowance(self.key)) is not None:
            hold.allowance, hold.day = allowance.id, allowance.take(self.credits, books.now)
            books.keep_allowance(allowance)
        books.keep(hold)
        return hold


@dataclass(slots=True)
class Reserve(_Spending[Reservation]):
    """Reserve credits."""

    def on(self, books: LedgerState) -> Reservation:
        account, hold = self.found(books)
        replayed = hold is not None
        hold = hold or self.hold(books, account, "open", "pending")
        left = books.find_spendable(account, hold.allowance)
        return Reservation(self.call_id, self.credits, left, hold.expires_at / 1000, hold.state, replayed)


@dataclass(slots=True)
class Charge(_Spending[Settlement]):
    """Reserve and charge credits in one step, for an answer that is already available."""

    undelivered: bool = False

    def on(self, books: LedgerState) -> Settlement:
        account, hold = self.found(books)
        if hold is not None:
            return self.settled(books, hold, charge=True)
        return _settlement(books, self.hold(books, account, "posted", "posted"), replayed=False)


@dataclass(slots=True)
class Settle(LedgerOperation[Settlement]):
    """Charge a reservation (`no_charge` is None) or release it for a reason, which may be any text.

    With the `key` of its account, it waits for a transaction that may still be making the reservation.
    """

    call_id: str
    no_charge: str | None
    undelivered: bool = False
    key: str | None = None

    def needs(self) -> Needs:
        return Needs(self.key, self.call_id)

    def on(self, books: LedgerState) -> Settlement:
        hold = books.holds.get(self.call_id)
        if hold is None:
            raise UnknownCall(f"{self.call_id} was never reserved")
        charge = self.no_charge is None
        return self.settled(books, hold, charge=charge, reason=None if charge else str(self.no_charge)[:_REASON])


@dataclass(slots=True)
class Mint(LedgerOperation[Minted]):
    """Create credits, once for each cause. An unknown token is issued; `ref` becomes the name of its account."""

    key: str
    credits: int
    cause: str
    ref: str

    def __post_init__(self) -> None:
        _whole(self.credits)

    def needs(self) -> Needs:
        return Needs(self.key, None, self.cause)

    def on(self, books: LedgerState) -> Minted:
        known = books.causes.get(self.cause)
        if known is not None:
            return self._again(books, known)
        if books.find_allowance(self.key) is not None:
            raise InvalidToken("You cannot add credits to an allowance. Use the token whose credits it spends.")
        if self.key not in books.tokens:
            books.issue(self.key, self.ref)
        _, account = books.valid(self.key)
        books.write("posted", ISSUED, account.id, self.credits, cause=self.cause)
        return Minted(self.credits, account.spendable)

    def _again(self, books: LedgerState, known: LedgerTransfer) -> Minted:
        token = books.tokens.get(self.key)
        if token is None or (token.account, self.credits) != (known.credit, known.amount):
            raise CauseReused(f"{self.cause} was credited before")
        return Minted(self.credits, books.accounts[token.account].spendable, replayed=True)


@dataclass(slots=True)
class Revoke(LedgerOperation[bool]):
    """Invalidate a token for good, or an allowance. The first reason stays; reservations can still be settled."""

    key: str
    reason: str

    def needs(self) -> Needs:
        return Needs(self.key)

    def on(self, books: LedgerState) -> bool:
        if (allowance := books.find_allowance(self.key)) is not None:
            return books.revoke_allowance(allowance)
        token = books.tokens.get(self.key)
        if token is None or token.revoked_at is not None:
            return False
        books.add(token._replace(revoked_at=books.now, revoke_reason=self.reason))
        return True


def _whole(credits: int) -> None:
    if type(credits) is not int or not 1 <= credits <= MOST:
        raise ValueError(f"{credits!r} is not a valid number of credits")


def _settlement(books: LedgerState, hold: Hold, *, replayed: bool) -> Settlement:
    charged = hold.credits if hold.state == "posted" else 0
    remaining = books.find_spendable(books.accounts[hold.account], hold.allowance)
    return Settlement(hold.call_id, charged, remaining, hold.reason, hold.state, replayed)


def release_expired(books: LedgerState) -> Iterator[Settle]:
    """Yield a release for each expired reservation of the state."""
    for hold in books.holds.values():
        if hold.state == "open" and hold.expires_at <= books.now:
            yield Settle(hold.call_id, EXPIRED)


def outcome_of(operation: LedgerOperation[Any], books: LedgerState) -> Any:
    """Apply an operation and return its result, or the refusal that it raised."""
    try:
        return operation.on(books)
    except ToolserverError as refusal:
        return refusal
