"""What money may do: decisions without I/O, the same for every ledger.

An operation is decided against the books, which hold the accounts and reservations it names as they are within the
transaction. It either writes transfers and changes the books, or raises and changes nothing. A reservation lives so:

    open ── charge ──▶ posted
     │                   │ release
     │ release, expiry   ▼
     └──▶ voided      reversed

Nothing leads back. So it does not matter how often, or in which order, a charge and a release of one call arrive.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from toolserver.billing.books import (
    ISSUED,
    REVENUE,
    Account,
    Books,
    Hold,
    Kind,
    Minted,
    NoCharge,
    Reservation,
    Settlement,
    Standing,
    State,
    Transfer,
    Who,
)
from toolserver.errors import PaymentRequired, ToolserverError

__all__ = [
    "ISSUED",
    "Books",
    "Charge",
    "Mint",
    "Needs",
    "NoCharge",
    "Operation",
    "Reserve",
    "Revoke",
    "Settle",
    "Standing",
    "Who",
]

R = TypeVar("R")

EXPIRED = "expired"
MOST = 10**15  # credits in one movement; sums of them stay far below 2**63
_REASON = 64

_MOVES: dict[tuple[State, bool], tuple[State, Kind]] = {
    ("open", True): ("posted", "post"),
    ("open", False): ("voided", "void"),
    ("posted", False): ("reversed", "reverse"),
}


class UnknownCall(ToolserverError):
    """No reservation has this call_id. To whoever wants to release it, that is as good as released."""


class CallReused(ToolserverError):
    """The call_id names another call: another token, or another price."""


class CauseReused(ToolserverError):
    """These credits were minted before, to another token or in another number."""


class Needs(NamedTuple):
    """What an operation names: a token or account, a call, a cause of credits."""

    key: str | None = None
    call_id: str | None = None
    cause: str | None = None


@dataclass(slots=True)
class Operation(Generic[R]):
    """What a ledger is asked to do."""

    def needs(self) -> Needs:
        """What has to be in the books for it."""
        raise NotImplementedError

    def on(self, books: Books) -> R:
        """Do it. Raises a ToolserverError and changes nothing."""
        raise NotImplementedError

    def settled(self, books: Books, hold: Hold, *, charge: bool, reason: str | None = None) -> Settlement:
        """Move a reservation, if it can be moved, and say where it stands."""
        move = _MOVES.get((hold.state, charge))
        if move is not None:
            hold.state, kind = move
            hold.reason, hold.settled_at = reason, books.now
            ours, theirs = REVENUE, hold.account
            debit, credit = (ours, theirs) if kind == "reverse" else (theirs, ours)
            books.write(kind, debit, credit, hold.credits, resolves=hold.transfer)
            books.keep(hold)
        return _settlement(books, hold, replayed=move is None)


@dataclass(slots=True)
class _Spending(Operation[R]):
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

    def found(self, books: Books) -> tuple[Account, Hold | None]:
        """The account, and the reservation if this call was seen before."""
        _, account = books.valid(self.key)
        hold = books.holds.get(self.call_id)
        if hold is not None and (hold.account, hold.credits) != (account.id, self.credits):
            raise CallReused(f"{self.call_id} names another call")
        if hold is None and account.spendable < self.credits:
            raise PaymentRequired(
                "insufficient_credits",
                f"This call costs {self.credits} credits and {account.spendable} are left.",
                required=self.credits,
                credits_remaining=account.spendable,
            )
        return account, hold

    def hold(self, books: Books, account: Account, state: State, kind: Kind) -> Hold:
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
        books.keep(hold)
        return hold


@dataclass(slots=True)
class Reserve(_Spending[Reservation]):
    """Set credits aside."""

    def on(self, books: Books) -> Reservation:
        account, hold = self.found(books)
        replayed = hold is not None
        hold = hold or self.hold(books, account, "open", "pending")
        return Reservation(self.call_id, self.credits, account.spendable, hold.expires_at / 1000, hold.state, replayed)


@dataclass(slots=True)
class Charge(_Spending[Settlement]):
    """Set credits aside and charge them in one step: for an answer that is at hand."""

    def on(self, books: Books) -> Settlement:
        account, hold = self.found(books)
        if hold is not None:
            return self.settled(books, hold, charge=True)
        return _settlement(books, self.hold(books, account, "posted", "posted"), replayed=False)


@dataclass(slots=True)
class Settle(Operation[Settlement]):
    """Charge a reservation (`no_charge` is None) or release it, for whatever reason, known to us or not."""

    call_id: str
    no_charge: str | None

    def needs(self) -> Needs:
        return Needs(None, self.call_id)

    def on(self, books: Books) -> Settlement:
        hold = books.holds.get(self.call_id)
        if hold is None:
            raise UnknownCall(f"{self.call_id} was never reserved")
        charge = self.no_charge is None
        return self.settled(books, hold, charge=charge, reason=None if charge else str(self.no_charge)[:_REASON])


@dataclass(slots=True)
class Mint(Operation[Minted]):
    """Bring credits into being, once for each cause. An unknown token is issued; `ref` names its account."""

    key: str
    credits: int
    cause: str
    ref: str

    def __post_init__(self) -> None:
        _whole(self.credits)

    def needs(self) -> Needs:
        return Needs(self.key, None, self.cause)

    def on(self, books: Books) -> Minted:
        known = books.causes.get(self.cause)
        if known is not None:
            return self._again(books, known)
        if self.key not in books.tokens:
            books.issue(self.key, self.ref)
        _, account = books.valid(self.key)
        books.write("posted", ISSUED, account.id, self.credits, cause=self.cause)
        return Minted(self.credits, account.spendable)

    def _again(self, books: Books, known: Transfer) -> Minted:
        token = books.tokens.get(self.key)
        if token is None or (token.account, self.credits) != (known.credit, known.amount):
            raise CauseReused(f"{self.cause} was credited before")
        return Minted(self.credits, books.accounts[token.account].spendable, replayed=True)


@dataclass(slots=True)
class Revoke(Operation[bool]):
    """Make a token invalid for good. The first reason stays; what was reserved before is settled as ever."""

    key: str
    reason: str

    def needs(self) -> Needs:
        return Needs(self.key)

    def on(self, books: Books) -> bool:
        token = books.tokens.get(self.key)
        if token is None or token.revoked_at is not None:
            return False
        books.add(token._replace(revoked_at=books.now, revoke_reason=self.reason))
        return True


def _whole(credits: int) -> None:
    if type(credits) is not int or not 1 <= credits <= MOST:
        raise ValueError(f"{credits!r} is no number of credits")


def _settlement(books: Books, hold: Hold, *, replayed: bool) -> Settlement:
    charged = hold.credits if hold.state == "posted" else 0
    remaining = books.accounts[hold.account].spendable
    return Settlement(hold.call_id, charged, remaining, hold.reason, hold.state, replayed)


def expired(books: Books) -> Iterator[Settle]:
    """The release of every reservation whose time is over."""
    for hold in books.holds.values():
        if hold.state == "open" and hold.expires_at <= books.now:
            yield Settle(hold.call_id, EXPIRED)


def outcome_of(operation: Operation[Any], books: Books) -> Any:
    """What an operation came to: its result, or the refusal it raised."""
    try:
        return operation.on(books)
    except ToolserverError as refusal:
        return refusal
