"""Defines the state of the ledger: tokens, accounts, reservations, and the transfers between accounts."""

import secrets
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from toolserver.core.caller import token_hash, well_formed
from toolserver.errors import InvalidToken, PaymentRequired, RevokedToken
from toolserver.money.ledger.allowance import Allowance
from toolserver.money.ledger.owner_limits import DAY_MS, AlertCrossing, OwnerLimits

NoCharge = Literal[
    "5xx", "circuit_breaker", "schema_failure", "stale_data", "empty_result", "cancelled", "delivery_failed"
]
State = Literal["open", "posted", "voided", "reversed"]
Kind = Literal["posted", "pending", "post", "void", "reverse"]

DIED: NoCharge = "delivery_failed"  # the reason to release a call whose process died before the answer was sent
ISSUED, REVENUE, SUSPENSE = 1, 2, 3  # our own accounts: the origin and the destinations of credits
OWN = SUSPENSE  # the last of them
FOREIGN = ":"  # in the stored name of a call that a sister service made


class AccountRef(NamedTuple):
    """The name of an account among our own services. It is not a bearer credential: no public interface accepts it."""

    ref: str


Who = str | AccountRef


class Reservation(NamedTuple):
    """Credits reserved for one call. `remaining` credits can still be spent; times are in epoch seconds."""

    call_id: str
    credits: int
    remaining: int
    expires_at: float = 0.0
    state: State = "open"
    replayed: bool = False


class Settlement(NamedTuple):
    """How a call ended: the credits `charged`, the credits `remaining`, and the reason if nothing was charged.

    `alerts` names the thresholds of the token's owner that are crossed: `balance`, `day`.
    """

    call_id: str
    charged: int
    remaining: int
    reason: str | None = None
    state: State = "posted"
    replayed: bool = False
    alerts: tuple[str, ...] = ()


class AccountStanding(NamedTuple):
    """A token's account: spendable and reserved credits. `fingerprint` may be shown to the token's owner.

    `payer` is the SHA-256 (hex) of the token whose credits are spent: this token, unless it is
    an `allowance`. One that pays only for some tools has their `paths`.
    """

    credits: int
    held: int
    fingerprint: str
    ref: AccountRef
    issued_at: float
    revoked: str | None = None
    payer: str = ""
    allowance: str | None = None
    paths: frozenset[str] | None = None


class Minted(NamedTuple):
    """Credits that were created, and the balance that includes them."""

    credits: int
    remaining: int
    replayed: bool = False


def key_of(who: Who) -> str:
    """Return the key of an account: the hash of its token, or its reference. Raises invalid_token."""
    if isinstance(who, AccountRef):
        return who.ref
    if not well_formed(who):
        raise invalid_token()
    return token_hash(who).hex()


def name_call(service: str, call_id: str) -> str:
    """Return the name under which a sister service's call is stored. A call_id of its own has no colon."""
    return f"{service}{FOREIGN}{call_id}"


def find_maker(call_id: str) -> str | None:
    """Return the sister service that made a call, by its stored name; None for a call of this service."""
    return call_id.rpartition(FOREIGN)[0] or None


def invalid_token() -> PaymentRequired:
    return InvalidToken("The token is malformed or unknown.")


def new_ref() -> str:
    """Return a random reference for a new account: `acct_` and 32 hex digits."""
    return f"acct_{secrets.token_hex(16)}"


class Token(NamedTuple):
    """What is stored about a bearer token: its hash, never the token.

    The hash names the account for good. If the token was lost, `successor` is the hash of the token that replaced it.
    """

    hash: str
    account: int
    ref: str
    issued_at: int
    revoked_at: int | None = None
    revoke_reason: str | None = None
    successor: str | None = None

    @property
    def live(self) -> str:
        """The hash of the token that opens the account."""
        return self.successor or self.hash


@dataclass(slots=True)
class Account:
    """A token's account. Credits and debits only grow."""

    id: int
    credits: int = 0
    debits: int = 0
    pending: int = 0

    @property
    def spendable(self) -> int:
        return self.credits - self.debits - self.pending


@dataclass(slots=True)
class Hold:
    """A reservation as it is stored. Times are epoch milliseconds; `day` is the day since 1970 on which it was made.

    Earlier versions stored the day only for the calls of allowances.
    """

    call_id: str
    account: int
    credits: int
    state: State
    reason: str | None
    endpoint: str
    service: str
    transfer: int
    expires_at: int
    settled_at: int | None
    allowance: str | None = None
    day: int | None = None


class LedgerTransfer(NamedTuple):
    """One movement of credits, with both accounts in one row."""

    seq: int
    kind: Kind
    debit: int
    credit: int
    amount: int
    resolves: int | None
    cause: str | None
    at: int


@dataclass(slots=True)
class LedgerState:
    """The part of the ledger that a group of operations needs, with the changes that they make."""

    now: int
    next_seq: int = 1
    next_account: int = OWN + 1
    tokens: dict[str, Token] = field(default_factory=dict)  # by hash and by reference
    allowances: dict[str, Allowance] = field(default_factory=dict)  # by hash, by reference and by id
    accounts: dict[int, Account] = field(default_factory=dict)
    limits: dict[int, OwnerLimits] = field(default_factory=dict)  # by account; most have none
    holds: dict[str, Hold] = field(default_factory=dict)
    causes: dict[str, LedgerTransfer] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)  # ids of calls that are only in archives
    transfers: list[LedgerTransfer] = field(default_factory=list)  # only new ones; those below hold changes
    changed_tokens: dict[str, Token] = field(default_factory=dict)
    changed_accounts: dict[int, Account] = field(default_factory=dict)
    changed_holds: dict[str, Hold] = field(default_factory=dict)
    changed_allowances: dict[str, Allowance] = field(default_factory=dict)
    changed_limits: dict[int, OwnerLimits] = field(default_factory=dict)
    crossings: list[AlertCrossing] = field(default_factory=list)  # of thresholds that owners set

    def find_allowance(self, key: str) -> Allowance | None:
        """Return the allowance that a key opens: none if it is the key of a token, even if an allowance has it too."""
        return None if key in self.tokens else self.allowances.get(key)

    def payer(self, key: str) -> Token:
        """Return the token that pays: the token itself, or the parent of an allowance. Raises invalid_token."""
        allowance = self.find_allowance(key)
        token = self.tokens.get(key if allowance is None else allowance.parent)
        if token is None:
            raise invalid_token()
        return token

    def valid(self, key: str) -> tuple[Token, Account]:
        """Return the token that pays, and its account. Raises PaymentRequired: invalid_token or expired."""
        token, allowance = self.payer(key), self.find_allowance(key)
        if token.revoked_at is not None:
            raise RevokedToken("The token was revoked.")
        if is_replaced(token, key):
            raise RevokedToken("The token was replaced by another one.")
        if allowance is not None:
            allowance.check(self.now)
        return token, self.accounts[token.account]

    def find_spendable(self, account: Account, key: str | None) -> int:
        """Return the credits that can be spent by the account's token, or by the allowance `key` within its caps."""
        allowance = self.find_allowance(key) if key is not None else None
        return account.spendable if allowance is None else min(account.spendable, allowance.find_room(self.now))

    def keep_allowance(self, allowance: Allowance) -> None:
        for key in (allowance.hash, allowance.ref, allowance.id):
            self.allowances[key] = allowance
        self.changed_allowances[allowance.id] = allowance

    def keep_limits(self, limits: OwnerLimits) -> None:
        self.limits[limits.account] = self.changed_limits[limits.account] = limits

    def find_alerts(self, account: Account, *, charged: bool) -> tuple[str, ...]:
        """Return the thresholds of the owner that are crossed. After a charge, new crossings are noted."""
        limits = self.limits.get(account.id)
        if limits is None:
            return ()
        alerts, noted = limits.find_alerts(account.spendable, self.now), (limits.low_since, limits.alerted_day)
        if charged:
            self.crossings += limits.note_crossings(alerts, account.spendable, self.now)
            if noted != (limits.low_since, limits.alerted_day):
                self.keep_limits(limits)
        return alerts

    def rearm_alert(self, account: Account) -> None:
        """Let the balance cross its threshold again if new credits raised it to the threshold or above."""
        limits = self.limits.get(account.id)
        if limits is not None and limits.low_since is not None and account.spendable >= (limits.alert_below or 0):
            limits.low_since = None
            self.keep_limits(limits)

    def draft_limits(self, account: Account) -> OwnerLimits:
        """Return the limits of an account that has none yet: no cap, and what was spent today, by the loaded holds."""
        day = self.now // DAY_MS
        spent = sum(
            hold.credits
            for hold in self.holds.values()
            if (hold.account, hold.day) == (account.id, day) and hold.state in ("open", "posted")
        )
        return OwnerLimits(account.id, None, None, None, None, day, spent, self.now)

    def revoke_allowance(self, allowance: Allowance) -> bool:
        """Invalidate an allowance for good. Return False if it already was."""
        if allowance.revoked_at is not None:
            return False
        allowance.revoked_at = self.now
        self.keep_allowance(allowance)
        return True

    def issue(self, key: str, ref: str) -> None:
        """Open an account for a new token. Raises invalid_token if the key is a reference."""
        if len(key) != 64:
            raise invalid_token()
        account = Account(self.next_account)
        self.next_account += 1
        self.accounts[account.id] = self.changed_accounts[account.id] = account
        self.add(Token(key, account.id, ref, self.now))

    def add(self, token: Token) -> None:
        before = self.tokens.get(token.hash)
        if before is not None and before.live != token.live:
            self.tokens.pop(before.live)
        self.keep_token(token)
        self.changed_tokens[token.hash] = token

    def keep_token(self, token: Token) -> None:
        for key in (token.hash, token.ref, token.live):
            self.tokens[key] = token

    def keep(self, hold: Hold) -> None:
        self.holds[hold.call_id] = self.changed_holds[hold.call_id] = hold

    def write(
        self,
        kind: Kind,
        debit: int,
        credit: int,
        amount: int,
        *,
        resolves: int | None = None,
        cause: str | None = None,
    ) -> LedgerTransfer:
        """Write a transfer and change the accounts between which it moves credits."""
        transfer = LedgerTransfer(self.next_seq, kind, debit, credit, amount, resolves, cause, self.now)
        self.next_seq += 1
        self.transfers.append(transfer)
        if cause is not None:
            self.causes[cause] = transfer
        if debit > OWN:
            self._debit(self.accounts[debit], kind, amount)
        if credit > OWN and kind in ("posted", "reverse"):
            self.accounts[credit].credits += amount
            self.changed_accounts[credit] = self.accounts[credit]
        return transfer

    def _debit(self, account: Account, kind: Kind, amount: int) -> None:
        if kind == "pending":
            account.pending += amount
        elif kind in ("post", "void"):
            account.pending -= amount
        if kind in ("posted", "post"):
            account.debits += amount
        self.changed_accounts[account.id] = account


def is_replaced(token: Token, key: str) -> bool:
    """Return True if the key is that of a token that was replaced by another one."""
    return token.successor is not None and key == token.hash


def standing(books: LedgerState, key: str) -> AccountStanding:
    """Return the state of an account, even of a revoked one. Raises invalid_token."""
    token, allowance = books.payer(key), books.find_allowance(key)
    account = books.accounts[token.account]
    revoked = token.revoke_reason or ("replaced by another token" if is_replaced(token, key) else None)
    if allowance is None:
        return AccountStanding(
            account.spendable,
            account.pending,
            token.live[:16],
            AccountRef(token.ref),
            token.issued_at / 1000,
            revoked,
            token.live,
        )
    state = allowance.find_state(books.now)
    return AccountStanding(
        books.find_spendable(account, key),
        0,
        allowance.hash[:16],
        AccountRef(allowance.ref),
        allowance.created_at / 1000,
        revoked or (f"allowance {state}" if state in ("revoked", "expired") else None),
        token.live,
        allowance.id,
        allowance.paths,
    )
