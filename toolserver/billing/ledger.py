"""The ledger as the pipeline sees it, and the one in memory for tests.

A paid call is reserved before anything is fetched and settled once it is clear whether it is owed; an answer that is at
hand is charged in one step. Every step is named by the caller's `call_id` and may be repeated. A release always wins:
states move only towards "not charged" (`rules`).
"""

import secrets
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

from toolserver.billing.books import (
    AccountRef,
    Books,
    Hold,
    Minted,
    NoCharge,
    Reservation,
    Settlement,
    Standing,
    Who,
    invalid_token,
    key_of,
    standing,
)
from toolserver.billing.rules import (
    CallReused,
    CauseReused,
    Charge,
    Mint,
    Operation,
    Reserve,
    Revoke,
    Settle,
    UnknownCall,
    expired,
)
from toolserver.clock import Clock, SystemClock
from toolserver.errors import PaymentRequired

__all__ = [
    "AccountRef",
    "CallReused",
    "CauseReused",
    "Ledger",
    "LedgerOwner",
    "MemoryLedger",
    "Minted",
    "NoCharge",
    "OpenHold",
    "Reservation",
    "Settlement",
    "Standing",
    "UnknownCall",
    "Who",
]

R = TypeVar("R")

FINGERPRINT = 16  # hex digits of a token's SHA-256 that name it to its owner


class OpenHold(NamedTuple):
    """Credits set aside for a call that has not ended. Times are epoch seconds."""

    call_id: str
    fingerprint: str
    credits: int
    endpoint: str
    service: str
    expires_at: float


class Ledger(Protocol):
    """Four implementations, one contract: in memory, SQLite, PostgreSQL, and a sister service's over HTTP.

    Any method may raise PaymentRequired("billing_unavailable"). A caller who is cancelled while reserving or charging
    is not charged: whatever was done unheard is released.
    """

    async def knows(self, token: str) -> bool:
        """Whether the token is valid. May lag behind a revocation made by another process, by some seconds."""
        ...

    async def reserve(
        self, call_id: str, who: Who, credits: int, *, endpoint: str, ttl_s: float, service: str = ""
    ) -> Reservation:
        """Set credits aside. The same call_id again gives the same reservation, whatever became of it.

        Raises:
            PaymentRequired: invalid_token, expired or insufficient_credits.
            CallReused: the call_id names a call of another token or price.
        """
        ...

    async def settle(self, call_id: str, *, no_charge: str | None) -> Settlement:
        """Charge (no_charge is None) or release a reservation, for any reason. Idempotent; a release dominates.

        Raises:
            UnknownCall: nothing was ever reserved under this name.
        """
        ...

    async def charge(self, call_id: str, who: Who, credits: int, *, endpoint: str, service: str = "") -> Settlement:
        """Reserve and settle in one step, for an answer that is at hand. Raises as `reserve` does."""
        ...

    def delivered(self, call_id: str) -> None:
        """The answer of a call that was charged is being handed over now."""
        ...

    async def balance(self, who: Who) -> int:
        """What can be spent. Raises PaymentRequired: invalid_token or expired."""
        ...


class LedgerOwner(Ledger, Protocol):
    """The system of record: it also makes credits, and ends what others left open."""

    async def mint(self, who: Who, credits: int, *, cause: str) -> Minted:
        """Bring credits into being for a token, which is issued if it is new. Once for each cause.

        Raises:
            CauseReused: the cause was credited to another token, or with another number.
            PaymentRequired: invalid_token or expired.
        """
        ...

    async def revoke(self, fingerprint: str, reason: str) -> bool:
        """Make the token that begins so invalid for good; False when it already was. Raises invalid_token."""
        ...

    async def standing(self, who: Who) -> Standing:
        """How an account stands, revoked or not. Raises invalid_token."""
        ...

    async def holds(self, limit: int = 100) -> list[OpenHold]:
        """What is set aside now, the first to expire first."""
        ...

    async def sweep(self) -> int:
        """Void every reservation whose time is over; how many. Nothing is ever lost to a caller by expiry."""
        ...


def milliseconds(clock: Clock) -> Callable[[], int]:
    """The clock as the books have it."""
    return lambda: int(clock.time() * 1000)


def new_ref() -> str:
    """A name for a new account."""
    return f"acct_{secrets.token_hex(16)}"


def fingerprint_of(text: str) -> str:
    """A fingerprint as given by a person, or the longer hash. Raises invalid_token when it cannot be one."""
    text = text.strip().lower()
    if not FINGERPRINT <= len(text) <= 64 or not all(c in "0123456789abcdef" for c in text):
        raise invalid_token()
    return text


def told(hold: Hold, fingerprint: str) -> OpenHold:
    """A reservation as it is shown."""
    return OpenHold(hold.call_id, fingerprint, hold.credits, hold.endpoint, hold.service, hold.expires_at / 1000)


class MemoryLedger:
    """Books in memory, gone with the process."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._now = milliseconds(clock or SystemClock())
        self.books = Books(self._now())

    @property
    def held(self) -> dict[str, Hold]:
        """Every reservation ever made, by call_id."""
        return self.books.holds

    def fund(self, token: str, credits: int) -> None:
        """Give a token credits; with none, only make it valid."""
        key = key_of(token)
        if key not in self.books.tokens:
            self.books.issue(key, new_ref())
        if credits:
            self._do(Mint(key, credits, f"fund:{self.books.next_seq}", new_ref()))

    async def knows(self, token: str) -> bool:
        try:
            return self.books.valid(key_of(token)) is not None
        except PaymentRequired:
            return False

    async def reserve(
        self, call_id: str, who: Who, credits: int, *, endpoint: str, ttl_s: float, service: str = ""
    ) -> Reservation:
        expires_at = self._now() + int(ttl_s * 1000)
        return self._do(Reserve(call_id, key_of(who), credits, endpoint, service, expires_at))

    async def settle(self, call_id: str, *, no_charge: str | None) -> Settlement:
        return self._do(Settle(call_id, no_charge))

    async def charge(self, call_id: str, who: Who, credits: int, *, endpoint: str, service: str = "") -> Settlement:
        return self._do(Charge(call_id, key_of(who), credits, endpoint, service))

    async def balance(self, who: Who) -> int:
        return self.books.valid(key_of(who))[1].spendable

    def delivered(self, call_id: str) -> None:
        """Nothing to remember."""

    async def mint(self, who: Who, credits: int, *, cause: str) -> Minted:
        return self._do(Mint(key_of(who), credits, cause, new_ref()))

    async def revoke(self, fingerprint: str, reason: str) -> bool:
        wanted = fingerprint_of(fingerprint)
        found = {token.hash for token in self.books.tokens.values() if token.hash.startswith(wanted)}
        if len(found) != 1:
            raise invalid_token()
        return self._do(Revoke(found.pop(), reason))

    async def standing(self, who: Who) -> Standing:
        return standing(self.books, key_of(who))

    async def holds(self, limit: int = 100) -> list[OpenHold]:
        fingerprints = {token.account: token.hash[:FINGERPRINT] for token in self.books.tokens.values()}
        still = sorted((h for h in self.held.values() if h.state == "open"), key=lambda h: h.expires_at)
        return [told(hold, fingerprints[hold.account]) for hold in still[:limit]]

    async def sweep(self) -> int:
        self.books.now = self._now()
        return len([self._do(release) for release in list(expired(self.books))])

    def _do(self, operation: Operation[R]) -> R:
        self.books.now = self._now()
        return operation.on(self.books)
