"""Defines the ledger's protocol: the operations that the pipeline and the purchases may use on any ledger.

A paid call is reserved before anything is fetched, and settled when it is known whether the
caller owes it. A cached answer is charged in one step. Every step carries the caller's
`call_id` and may be repeated. A release always wins: states only move towards "not charged"
(`operations`).
"""

from typing import NamedTuple, Protocol

from toolserver.money.ledger.allowance import Allowance, AllowanceChange, AllowanceTerms
from toolserver.money.ledger.operations import CallReused, CauseReused, UnknownCall
from toolserver.money.ledger.owner_limits import LimitChange, OwnerLimits
from toolserver.money.ledger.state import (
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
from toolserver.money.ledger.statements import StatementPage, StatementQuery

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
    """The contract of a ledger. Implementations keep it in memory, in SQLite, or at a sister service over HTTP.

    Any method may raise PaymentRequired("billing_unavailable"). A caller that is cancelled
    while reserving or charging is not charged: the ledger releases the call.
    """

    async def knows(self, token: str) -> bool:
        """Return True if the token is valid. A revocation by another process takes effect here within seconds."""
        ...

    async def find_payer(self, token: str) -> str | None:
        """Return the SHA-256 (hex) of the token whose credits this token spends: its own, or
        that of the parent if the token is an allowance. Return None if `knows` is false for
        the token.
        """
        ...

    async def reserve(
        self,
        call_id: str,
        who: Who,
        credits: int,
        *,
        endpoint: str,
        ttl_s: float,
        service: str = "",
        undelivered: bool = False,
    ) -> Reservation:
        """Reserve credits. Repeating the call_id returns the same reservation, even after it was settled.

        With `undelivered`, it ends with the process that made it, as a charge whose answer was not sent does.

        Raises:
            PaymentRequired: invalid_token, expired or insufficient_credits.
            CallReused: the call_id was already used with another token or price.
        """
        ...

    async def settle(self, call_id: str, *, no_charge: str | None, undelivered: bool = False) -> Settlement:
        """Charge a reservation (`no_charge` is None) or release it for the given reason. Idempotent; a release wins.

        With `undelivered`, the charge is released if the process dies before `delivered` is
        stored: at its next start, or where instances share the ledger, once the call's lease
        has ended.

        Raises:
            UnknownCall: no reservation was ever made under this call_id.
        """
        ...

    async def charge(
        self, call_id: str, who: Who, credits: int, *, endpoint: str, service: str = "", undelivered: bool = False
    ) -> Settlement:
        """Reserve and settle in one step, for an answer that is already available. Raises as `reserve` does."""
        ...

    def delivered(self, call_id: str) -> None:
        """Note that the answer of a call charged as `undelivered` was sent to its caller. Returns without waiting.

        The note is on disk 50 ms later, or with the next commit. A charge without it is released once its process died.
        """
        ...

    def lost(self, call_id: str) -> None:
        """Note that the answer of a call charged as `undelivered` could not be sent. Returns without waiting.

        The charge is released within seconds, or at the next start.
        """
        ...

    async def balance(self, who: Who) -> int:
        """Return the number of credits that can be spent. Raises PaymentRequired: invalid_token or expired."""
        ...


class AllowanceLedger(Protocol):
    """A ledger that keeps allowances. Each is managed only with the token whose credits it spends.

    Any method may raise PaymentRequired, and AllowanceConflict if the token is itself an allowance.
    """

    async def create_allowance(self, who: Who, hash: str, terms: AllowanceTerms) -> Allowance:
        """Store a new allowance of a token under the hash of its own token. The same hash returns the same allowance.

        Raises:
            AllowanceConflict: the token already has 100 live allowances.
        """
        ...

    async def list_allowances(self, who: Who) -> list[Allowance]:
        """Return the live allowances of a token, oldest first, followed by the most recent ended ones."""
        ...

    async def change_allowance(self, who: Who, id: str, change: AllowanceChange) -> Allowance:
        """Change the terms of an allowance from the next reservation on. Raises NotFound."""
        ...

    async def revoke_allowance(self, who: Who, id: str) -> Allowance:
        """End an allowance for good, from the next reservation on. Raises NotFound."""
        ...


class LimitsLedger(Protocol):
    """A ledger on which the owner of a token sets limits that bind the token and its allowances."""

    async def change_limits(self, who: Who, change: LimitChange) -> OwnerLimits:
        """Change the limits of a token from the next reservation on, and return them. A change of nothing reads them.

        Raises:
            PaymentRequired: invalid_token, expired.
            AllowanceConflict: the token is an allowance.
        """
        ...


class LedgerOwner(Ledger, AllowanceLedger, LimitsLedger, Protocol):
    """The system of record: it also creates credits, and voids reservations that were never settled."""

    async def create_allowance(
        self, who: Who, hash: str, terms: AllowanceTerms, *, service: str | None = None
    ) -> Allowance:
        """Store a new allowance. One made through a sister `service` pays for that service's calls only.

        Raises:
            AllowanceConflict: there are 100, or 50 of that service, or 75 of all sister services; or the hash is taken.
        """
        ...

    async def change_allowance(
        self, who: Who, id: str, change: AllowanceChange, *, service: str | None = None
    ) -> Allowance:
        """Change an allowance. A sister `service` changes only what was made through it. Raises NotFound."""
        ...

    async def mint(self, who: Who, credits: int, *, cause: str) -> Minted:
        """Create credits on a token, issuing the token if it is new. Each cause is credited once.

        Raises:
            CauseReused: the cause was credited to another token, or with another amount.
            PaymentRequired: invalid_token or expired.
        """
        ...

    async def revoke(self, fingerprint: str, reason: str) -> bool:
        """Invalidate the token with this fingerprint for good. Return False if it already was. Raises invalid_token."""
        ...

    async def standing(self, who: Who) -> AccountStanding:
        """Return the state of an account, even of a revoked one. Raises invalid_token."""
        ...

    async def statement(self, who: Who, query: StatementQuery) -> StatementPage:
        """Return a page of an account's statement, newest first, even of a revoked one. Raises invalid_token."""
        ...

    async def holds(self, limit: int = 100) -> list[OpenHold]:
        """Return the open reservations, the earliest to expire first."""
        ...

    async def sweep(self) -> int:
        """Void every expired reservation, so that its credits can be spent again, and return how many there were."""
        ...


def fingerprint_of(text: str) -> str:
    """Return the normal form of a fingerprint that a person typed: 16 to 64 hex digits. Raises invalid_token."""
    text = text.strip().lower()
    if not FINGERPRINT <= len(text) <= 64 or not all(c in "0123456789abcdef" for c in text):
        raise invalid_token()
    return text


def show_hold(hold: Hold, fingerprint: str) -> OpenHold:
    """Return the public view of a stored reservation."""
    return OpenHold(hold.call_id, fingerprint, hold.credits, hold.endpoint, hold.service, hold.expires_at / 1000)
