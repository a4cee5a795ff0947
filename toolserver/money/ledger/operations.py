"""Decides what operations do to the ledger, by pure rules that are the same for every engine.

An operation works on a `LedgerState`, which holds the accounts and reservations that the
operation names, as they are within the transaction. It either writes transfers and changes
the state, or raises and changes nothing. These are the states of a reservation:

    open ── charge ──▶ posted
     │                   │ release
     │ release, expiry   ▼
     └──▶ voided      reversed

No step leads back, so a charge and a release of one call may arrive repeatedly and in any order.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

from toolserver.errors import (
    AllowanceConflict,
    InsufficientCredits,
    InvalidToken,
    NotFound,
    RevokedToken,
    ToolserverError,
)
from toolserver.money.ledger.allowance import (
    MOST_LIVE,
    MOST_LIVE_OF_A_SISTER,
    MOST_LIVE_OF_SISTERS,
    Allowance,
    AllowanceChange,
    write_tools,
)
from toolserver.money.ledger.owner_limits import DAY_MS, LimitChange, OwnerLimits
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
    Token,
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

MOVES: dict[tuple[State, bool], tuple[State, Kind]] = {
    ("open", True): ("posted", "post"),
    ("open", False): ("voided", "void"),
    ("posted", False): ("reversed", "reverse"),
}


class UnknownCall(ToolserverError):
    """No reservation has this call_id. A caller that wants to release it may treat it as released."""


class CallReused(ToolserverError):
    """The call_id was already used: for another call, token or price, or for a call that was archived."""


class CauseReused(ToolserverError):
    """The cause was already credited, to another token or with another amount."""


class Needs(NamedTuple):
    """The rows that an operation needs: those of a token or account, of a call, and of a cause of credits.

    `allowance` is the id or hash of an allowance. With `family`, the live allowances of the
    token are needed too, and with `today`, its limits with what was spent today.
    """

    key: str | None = None
    call_id: str | None = None
    cause: str | None = None
    allowance: str | None = None
    family: bool = False
    today: bool = False


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
        move = MOVES.get((hold.state, charge))
        if move is not None:
            hold.state, kind = move
            hold.reason, hold.settled_at = reason, books.now
            ours, theirs = REVENUE, hold.account
            debit, credit = (ours, theirs) if kind == "reverse" else (theirs, ours)
            books.write(kind, debit, credit, hold.credits, resolves=hold.transfer)
            books.keep(hold)
            if not charge:
                _give_back(books, hold)
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

    def find_hold(self, books: LedgerState) -> tuple[Account, Hold | None]:
        """Return the account, and the reservation if there is one for this call. Raises the refusal to spend."""
        _, account = books.valid(self.key)
        hold, allowance = books.holds.get(self.call_id), books.find_allowance(self.key)
        named = (account.id, self.credits, None if allowance is None else allowance.id)
        if hold is not None and (hold.account, hold.credits, hold.allowance) != named:
            raise CallReused(f"{self.call_id} is already used for another call")
        if hold is None and self.call_id in books.removed:
            raise CallReused(f"{self.call_id} was used for a call that is in an archive")
        if hold is None and (limits := books.limits.get(account.id)) is not None:
            limits.check(self.credits, books.now)
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
            day=books.now // DAY_MS,
        )
        if (allowance := books.find_allowance(self.key)) is not None:
            hold.allowance = allowance.id
            allowance.take(self.credits, books.now)
            books.keep_allowance(allowance)
        if (limits := books.limits.get(account.id)) is not None:
            limits.count(self.credits, books.now)
            books.keep_limits(limits)
        books.keep(hold)
        return hold


@dataclass(slots=True)
class Reserve(_Spending[Reservation]):
    """Reserve credits."""

    undelivered: bool = False

    def on(self, books: LedgerState) -> Reservation:
        account, hold = self.find_hold(books)
        replayed = hold is not None
        hold = hold or self.hold(books, account, "open", "pending")
        left = books.find_spendable(account, hold.allowance)
        return Reservation(self.call_id, self.credits, left, hold.expires_at / 1000, hold.state, replayed)


@dataclass(slots=True)
class Charge(_Spending[Settlement]):
    """Reserve and charge credits in one step, for an answer that is already available."""

    undelivered: bool = False

    def on(self, books: LedgerState) -> Settlement:
        account, hold = self.find_hold(books)
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
        earlier = books.causes.get(self.cause)
        if earlier is not None:
            return self._again(books, earlier)
        if books.find_allowance(self.key) is not None:
            raise InvalidToken("You cannot add credits to an allowance. Use the token whose credits it spends.")
        if self.key not in books.tokens:
            books.issue(self.key, self.ref)
        _, account = books.valid(self.key)
        books.write("posted", ISSUED, account.id, self.credits, cause=self.cause)
        books.rearm_alert(account)
        return Minted(self.credits, account.spendable)

    def _again(self, books: LedgerState, transfer: LedgerTransfer) -> Minted:
        token = books.tokens.get(self.key)
        if token is None or (token.account, self.credits) != (transfer.credit, transfer.amount):
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
    account = books.accounts[hold.account]
    remaining = books.find_spendable(account, hold.allowance)
    alerts = books.find_alerts(account, charged=charged > 0 and not replayed)
    return Settlement(hold.call_id, charged, remaining, hold.reason, hold.state, replayed, alerts)


def _give_back(books: LedgerState, hold: Hold) -> None:
    """Give the credits of a released call back to the caps under which it was made."""
    if hold.allowance is not None:
        allowance = books.allowances[hold.allowance]
        allowance.give_back(hold.credits, hold.day)
        books.keep_allowance(allowance)
    if (limits := books.limits.get(hold.account)) is not None:
        limits.uncount(hold.credits, hold.day)
        books.keep_limits(limits)


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
        transfer = books.causes.get(self.cause)
        if transfer is not None:
            if (transfer.debit, transfer.credit, transfer.amount) != (account.id, ISSUED, self.credits):
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


@dataclass(slots=True)
class CreateAllowance(LedgerOperation[Allowance]):
    """Store a new allowance of a token. Repeating it returns the allowance that has this hash.

    The hash comes from a sister service, and may be that of a token that it has seen: its bearer would be cut off.

    Raises:
        PaymentRequired, AllowanceConflict
    """

    key: str
    draft: Allowance

    def needs(self) -> Needs:
        return Needs(self.key, allowance=self.draft.hash, family=True)

    def on(self, books: LedgerState) -> Allowance:
        owner = find_owner(books, self.key)
        before = books.allowances.get(self.draft.hash)
        if self.draft.hash in books.tokens or (before is not None and before.parent != owner.hash):
            raise AllowanceConflict("This hash is that of another token. Make a new token for the allowance.")
        if before is not None:
            return replace(before)
        self._check_share(books, owner)
        allowance = replace(self.draft, parent=owner.hash)
        books.keep_allowance(allowance)
        return replace(allowance)

    def _check_share(self, books: LedgerState, owner: Token) -> None:
        """Raise AllowanceConflict if there are too many. No sister service can take all the places of a token."""
        live = {a.id: a for a in books.allowances.values() if a.parent == owner.hash and a.is_live(books.now)}
        made_by = [each.service for each in live.values()]
        if len(live) >= MOST_LIVE:
            raise AllowanceConflict(f"A token can have at most {MOST_LIVE} live allowances. Revoke one first.")
        if self.draft.service is None:
            return
        if made_by.count(self.draft.service) >= MOST_LIVE_OF_A_SISTER:
            most = f"{MOST_LIVE_OF_A_SISTER} live allowances that were made at this service"
            raise AllowanceConflict(f"A token can have at most {most}. Revoke one first.")
        if len(live) - made_by.count(None) >= MOST_LIVE_OF_SISTERS:
            most = f"{MOST_LIVE_OF_SISTERS} live allowances that were made at services that share its credits"
            raise AllowanceConflict(f"A token can have at most {most}. Revoke one first.")


@dataclass(slots=True)
class ChangeAllowance(LedgerOperation[Allowance]):
    """Change the terms of an allowance. Spent credits stay counted. Raises NotFound, AllowanceConflict.

    A sister service, if `service` names one, changes only what was made through it.
    """

    key: str
    id: str
    change: AllowanceChange
    service: str | None = None

    def needs(self) -> Needs:
        return Needs(self.key, allowance=self.id)

    def on(self, books: LedgerState) -> Allowance:
        allowance = find_allowance(books, self.key, self.id)
        if allowance.revoked_at is not None:
            raise AllowanceConflict("A revoked allowance cannot be changed. Create a new one.")
        if self.service is not None and self.service != allowance.service:
            raise AllowanceConflict("This allowance was made at another service. Change it there, or revoke it.")
        for name in self.change.changed:
            value = getattr(self.change.terms, name)
            setattr(allowance, name, write_tools(value) if name == "tools" and value is not None else value)
        books.keep_allowance(allowance)
        return replace(allowance)


@dataclass(slots=True)
class RevokeAllowance(LedgerOperation[Allowance]):
    """End an allowance for good. Repeating it changes nothing. Raises NotFound."""

    key: str
    id: str

    def needs(self) -> Needs:
        return Needs(self.key, allowance=self.id)

    def on(self, books: LedgerState) -> Allowance:
        allowance = find_allowance(books, self.key, self.id)
        books.revoke_allowance(allowance)
        return replace(allowance)


@dataclass(slots=True)
class ChangeLimits(LedgerOperation[OwnerLimits]):
    """Change the limits that the owner of a token sets on it. What was spent today stays counted.

    Raises:
        PaymentRequired, AllowanceConflict
    """

    key: str
    change: LimitChange

    def needs(self) -> Needs:
        return Needs(self.key, today=True)

    def on(self, books: LedgerState) -> OwnerLimits:
        account = books.accounts[find_owner(books, self.key).account]
        limits = books.limits.get(account.id) or books.draft_limits(account)
        if self.change.changed:
            self.change.apply(limits, books.now)
            books.keep_limits(limits)
        return replace(limits)


def find_owner(books: LedgerState, key: str) -> Token:
    """Return the token that manages allowances and limits. Raises PaymentRequired, AllowanceConflict."""
    token, _ = books.valid(key)
    if books.find_allowance(key) is not None:
        raise AllowanceConflict("This token is an allowance, so it cannot manage allowances or limits.")
    return token


def find_allowance(books: LedgerState, key: str, id: str) -> Allowance:
    """Return an allowance of a token. Raises PaymentRequired, NotFound, AllowanceConflict."""
    owner, allowance = find_owner(books, key), books.allowances.get(id)
    if allowance is None or allowance.parent != owner.hash:
        raise NotFound("This token has no such allowance.")
    return allowance
