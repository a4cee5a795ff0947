"""The ledger's protocol: what the pipeline and the purchases may ask of any ledger.

A paid call is reserved before anything is fetched, and settled when it is clear whether it is owed. A cached answer is
charged in one step. Every step carries the caller's `call_id` and may be repeated. A release always wins: states only
move towards "not charged" (`operations`).
"""

import secrets
from collections.abc import Callable
from typing import NamedTuple, Protocol

from toolserver.clock import Clock
from toolserver.ledger.allowance import Allowance, AllowanceChange, AllowanceTerms
from toolserver.ledger.operations import CallReused, CauseReused, UnknownCall
from toolserver.ledger.state import (
    AccountRef,
    AccountStanding,
    Hold,
    Minted,
    NoCharge,
    Reservation,
    Settlement,
    Who,
    invalid_token,
)
from toolserver.ledger.statements import StatementPage, StatementQuery

__all__ = [
    "AccountRef",
    "AccountStanding",
    "CallReused",
    "CauseReused",
    "Ledger",
    "LedgerOwner",
    "Minted",
    "NoCharge",
    "OpenHold",
    "Reservation",
    "Settlement",
    "StatementPage",
    "StatementQuery",
    "UnknownCall",
    "Who",
]

FINGERPRINT = 16  # hex digits of a token's SHA-256 that name it to its owner


class OpenHold(NamedTuple):
    """Credits that are reserved for a call that has not ended. `expires_at` is in epoch seconds."""

    call_id: str
    fingerprint: str
    credits: int
    endpoint: str
    service: str
    expires_at: float


class Ledger(Protocol):
    """One contract with several implementations: in memory, in SQLite, and of a sister service over HTTP.

    Any method may raise PaymentRequired("billing_unavailable"). A caller that is cancelled while reserving or charging
    is not charged: what was done without a listener is released.
    """

    async def knows(self, token: str) -> bool:
        """Whether the token is valid. A revocation by another process takes effect here within some seconds."""
        ...

    async def find_payer(self, token: str) -> str | None:
        """The SHA-256 (hex) of the token whose credits a token spends: its own, or that of which it is an allowance;
        None for one that `knows` does not know.
        """
        ...

    async def reserve(
        self, call_id: str, who: Who, credits: int, *, endpoint: str, ttl_s: float, service: str = ""
    ) -> Reservation:
        """Reserve credits. The same call_id again returns the same reservation, also when it has been settled since.

        Raises:
            PaymentRequired: invalid_token, expired or insufficient_credits.
            CallReused: the call_id names a call of another token or price.
        """
        ...

    async def settle(self, call_id: str, *, no_charge: str | None, undelivered: bool = False) -> Settlement:
        """Charge a reservation (`no_charge` is None) or release it for the given reason. Idempotent; a release wins.

        With `undelivered`, the charge is released at the next start if the process dies before `delivered` is stored.

        Raises:
            UnknownCall: nothing was ever reserved under this call_id.
        """
        ...

    async def charge(
        self, call_id: str, who: Who, credits: int, *, endpoint: str, service: str = "", undelivered: bool = False
    ) -> Settlement:
        """Reserve and settle in one step, for an answer that is already there. Raises as `reserve` does."""
        ...

    def delivered(self, call_id: str) -> None:
        """Note that the answer of a call that was charged `undelivered` was sent to its caller. Nobody waits for it."""
        ...

    async def balance(self, who: Who) -> int:
        """The credits that can be spent. Raises PaymentRequired: invalid_token or expired."""
        ...


class AllowanceLedger(Protocol):
    """A ledger that keeps allowances. Each is managed with the token whose credits it spends, and no other.

    Any method may raise PaymentRequired, and AllowanceConflict for a token that is itself an allowance.
    """

    async def create_allowance(self, who: Who, hash: str, terms: AllowanceTerms) -> Allowance:
        """Store a new allowance of a token, by the hash of its own; again with the same hash, it is the same one.

        Raises:
            AllowanceConflict: 100 are live.
        """
        ...

    async def list_allowances(self, who: Who) -> list[Allowance]:
        """The live allowances of a token, the oldest first, and after them the newest of those that ended."""
        ...

    async def change_allowance(self, who: Who, id: str, change: AllowanceChange) -> Allowance:
        """Change the terms of an allowance from the next reservation on. Raises NotFound."""
        ...

    async def revoke_allowance(self, who: Who, id: str) -> Allowance:
        """End an allowance for good, from the next reservation on. Raises NotFound."""
        ...


class LedgerOwner(Ledger, AllowanceLedger, Protocol):
    """The system of record: it also creates credits, and voids reservations that nobody settled."""

    async def mint(self, who: Who, credits: int, *, cause: str) -> Minted:
        """Create credits on a token, which is issued when it is new. Each cause is credited once.

        Raises:
            CauseReused: the cause was credited to another token, or with another amount.
            PaymentRequired: invalid_token or expired.
        """
        ...

    async def revoke(self, fingerprint: str, reason: str) -> bool:
        """Invalidate the token with this fingerprint for good; False if it was invalid before. Raises invalid_token."""
        ...

    async def standing(self, who: Who) -> AccountStanding:
        """The state of an account, also of a revoked one. Raises invalid_token."""
        ...

    async def statement(self, who: Who, query: StatementQuery) -> StatementPage:
        """What happened to the credits of an account, the latest first; also of a revoked one. Raises invalid_token."""
        ...

    async def holds(self, limit: int = 100) -> list[OpenHold]:
        """The open reservations, the first to expire first."""
        ...

    async def sweep(self) -> int:
        """Void every expired reservation and return how many there were. Its credits can be spent again."""
        ...


def milliseconds(clock: Clock) -> Callable[[], int]:
    """A function that returns the clock's time as the ledger stores it: integer milliseconds since 1970."""
    return lambda: int(clock.time() * 1000)


def new_ref() -> str:
    """A random reference for a new account: `acct_` and 32 hex digits."""
    return f"acct_{secrets.token_hex(16)}"


def fingerprint_of(text: str) -> str:
    """The normal form of a fingerprint that a person typed: 16 to 64 hex digits. Raises invalid_token."""
    text = text.strip().lower()
    if not FINGERPRINT <= len(text) <= 64 or not all(c in "0123456789abcdef" for c in text):
        raise invalid_token()
    return text


def show_hold(hold: Hold, fingerprint: str) -> OpenHold:
    """The public view of a stored reservation."""
    return OpenHold(hold.call_id, fingerprint, hold.credits, hold.endpoint, hold.service, hold.expires_at / 1000)
