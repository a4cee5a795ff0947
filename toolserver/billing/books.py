"""The books: who has a token, what is on its account, what is set aside, and every movement of it."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from toolserver.access import token_hash, well_formed
from toolserver.errors import PaymentRequired

NoCharge = Literal[
    "5xx", "circuit_breaker", "schema_failure", "stale_data", "empty_result", "cancelled", "delivery_failed"
]
State = Literal["open", "posted", "voided", "reversed"]
Kind = Literal["posted", "pending", "post", "void", "reverse"]

ISSUED, REVENUE, SUSPENSE = 1, 2, 3  # our own accounts: where credits come from, and where they go
OWN = SUSPENSE  # the last of them


class AccountRef(NamedTuple):
    """An account's name among our own services. Not a bearer credential: no face takes one."""

    ref: str


Who = str | AccountRef


class Reservation(NamedTuple):
    """Credits set aside for one call. `remaining` is what can still be spent besides them, times are epoch seconds."""

    call_id: str
    credits: int
    remaining: int
    expires_at: float = 0.0
    state: State = "open"
    replayed: bool = False


class Settlement(NamedTuple):
    """How a call ended: `charged` credits, `remaining` after it, and why nothing was charged."""

    call_id: str
    charged: int
    remaining: int
    reason: str | None = None
    state: State = "posted"
    replayed: bool = False


class Standing(NamedTuple):
    """A token's account: what can be spent, what is set aside. `fingerprint` may be shown to the owner."""

    credits: int
    held: int
    fingerprint: str
    ref: AccountRef
    issued_at: float
    revoked: str | None = None


class Minted(NamedTuple):
    """Credits that came into being, and what can be spent with them."""

    credits: int
    remaining: int
    replayed: bool = False


def key_of(who: Who) -> str:
    """What an account is looked up by: the hash of its token, or its reference. Raises invalid_token."""
    if isinstance(who, AccountRef):
        return who.ref
    if not well_formed(who):
        raise invalid_token()
    return token_hash(who).hex()


def invalid_token() -> PaymentRequired:
    return PaymentRequired("invalid_token", "The token is malformed or unknown.")


class Token(NamedTuple):
    """A bearer token as we keep it: never itself."""

    hash: str
    account: int
    ref: str
    issued_at: int
    revoked_at: int | None = None
    revoke_reason: str | None = None


@dataclass(slots=True)
class Account:
    """A token's account. Credits and debits only ever grow."""

    id: int
    credits: int = 0
    debits: int = 0
    pending: int = 0

    @property
    def spendable(self) -> int:
        return self.credits - self.debits - self.pending


@dataclass(slots=True)
class Hold:
    """A reservation as it is stored. Times are milliseconds."""

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


class Transfer(NamedTuple):
    """One movement, both sides in one row."""

    seq: int
    kind: Kind
    debit: int
    credit: int
    amount: int
    resolves: int | None
    cause: str | None
    at: int


@dataclass(slots=True)
class Books:
    """The part of the ledger that some operations touch, and what they changed in it."""

    now: int
    next_seq: int = 1
    next_account: int = OWN + 1
    tokens: dict[str, Token] = field(default_factory=dict)  # by hash and by reference
    accounts: dict[int, Account] = field(default_factory=dict)
    holds: dict[str, Hold] = field(default_factory=dict)
    causes: dict[str, Transfer] = field(default_factory=dict)
    transfers: list[Transfer] = field(default_factory=list)  # new ones, as are the three below
    changed_tokens: dict[str, Token] = field(default_factory=dict)
    changed_accounts: dict[int, Account] = field(default_factory=dict)
    changed_holds: dict[str, Hold] = field(default_factory=dict)

    def valid(self, key: str) -> tuple[Token, Account]:
        """The token and its account. Raises PaymentRequired: invalid_token or expired."""
        token = self.tokens.get(key)
        if token is None:
            raise invalid_token()
        if token.revoked_at is not None:
            raise PaymentRequired("expired", "The token was revoked.")
        return token, self.accounts[token.account]

    def issue(self, key: str, ref: str) -> None:
        """Make an account for a new token. Raises invalid_token when the key is a reference, to nothing then."""
        if len(key) != 64:
            raise invalid_token()
        account = Account(self.next_account)
        self.next_account += 1
        self.accounts[account.id] = self.changed_accounts[account.id] = account
        self.add(Token(key, account.id, ref, self.now))

    def add(self, token: Token) -> None:
        self.tokens[token.hash] = self.tokens[token.ref] = token
        self.changed_tokens[token.hash] = token

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
    ) -> Transfer:
        """Write a transfer and move what it moves."""
        transfer = Transfer(self.next_seq, kind, debit, credit, amount, resolves, cause, self.now)
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


def standing(books: Books, key: str) -> Standing:
    """How an account stands, revoked or not. Raises invalid_token."""
    token = books.tokens.get(key)
    if token is None:
        raise invalid_token()
    account = books.accounts[token.account]
    return Standing(
        account.spendable,
        account.pending,
        token.hash[:16],
        AccountRef(token.ref),
        token.issued_at / 1000,
        token.revoke_reason if token.revoked_at is not None else None,
    )
