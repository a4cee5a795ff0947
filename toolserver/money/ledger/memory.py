"""Keeps a ledger in memory, for tests and simulations: it has the rules of every ledger, but nothing is durable."""

from dataclasses import replace
from typing import TypeVar

from toolserver.clock import Clock, SystemClock, milliseconds
from toolserver.errors import PaymentRequired
from toolserver.money.ledger.allowance import SHOWN_ENDED, Allowance, AllowanceChange, AllowanceTerms, draft_allowance
from toolserver.money.ledger.operations import (
    ChangeAllowance,
    ChangeLimits,
    Charge,
    CreateAllowance,
    LedgerOperation,
    Mint,
    Reserve,
    Revoke,
    RevokeAllowance,
    Settle,
    find_owner,
    release_expired,
)
from toolserver.money.ledger.owner_limits import LimitChange, OwnerLimits
from toolserver.money.ledger.protocol import FINGERPRINT, OpenHold, fingerprint_of, show_hold
from toolserver.money.ledger.state import (
    DIED,
    AccountStanding,
    Hold,
    LedgerState,
    Minted,
    Reservation,
    Settlement,
    Who,
    invalid_token,
    key_of,
    new_ref,
    standing,
)
from toolserver.money.ledger.statements import StatementPage, StatementQuery, read_statement

R = TypeVar("R")


class MemoryLedger:
    """A `LedgerOwner` whose whole state is one `LedgerState`."""

    file = None  # nothing is stored

    def __init__(self, clock: Clock | None = None) -> None:
        self._now = milliseconds(clock or SystemClock())
        self.books = LedgerState(self._now())

    @property
    def held(self) -> dict[str, Hold]:
        """All reservations ever made, by call_id."""
        return self.books.holds

    def fund(self, token: str, credits: int) -> None:
        """Give credits to a token; with 0, only issue it."""
        key = key_of(token)
        if key not in self.books.tokens:
            self.books.issue(key, new_ref())
        if credits:
            self._apply(Mint(key, credits, f"fund:{self.books.next_seq}", new_ref()))

    async def knows(self, token: str) -> bool:
        try:
            return self.load().valid(key_of(token)) is not None
        except PaymentRequired:
            return False

    async def find_payer(self, token: str) -> str | None:
        return self.books.payer(key_of(token)).live if await self.knows(token) else None

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
        expires_at = self._now() + int(ttl_s * 1000)
        return self._apply(Reserve(call_id, key_of(who), credits, endpoint, service, expires_at))

    async def settle(self, call_id: str, *, no_charge: str | None, undelivered: bool = False) -> Settlement:
        return self._apply(Settle(call_id, no_charge))

    async def charge(
        self, call_id: str, who: Who, credits: int, *, endpoint: str, service: str = "", undelivered: bool = False
    ) -> Settlement:
        return self._apply(Charge(call_id, key_of(who), credits, endpoint, service))

    async def balance(self, who: Who) -> int:
        key = key_of(who)
        return self.load().find_spendable(self.books.valid(key)[1], key)

    def delivered(self, call_id: str) -> None:
        """Do nothing: a charge in memory needs no follow-up."""

    def lost(self, call_id: str) -> None:
        self._apply(Settle(call_id, DIED))

    async def mint(self, who: Who, credits: int, *, cause: str) -> Minted:
        return self._apply(Mint(key_of(who), credits, cause, new_ref()))

    async def revoke(self, fingerprint: str, reason: str) -> bool:
        wanted = fingerprint_of(fingerprint)
        own = (hash for token in self.books.tokens.values() for hash in (token.hash, token.live))
        hashes = {*own, *(allowance.hash for allowance in self.books.allowances.values())}
        matching = {hash for hash in hashes if hash.startswith(wanted)}
        if len(matching) != 1:
            raise invalid_token()
        return self._apply(Revoke(matching.pop(), reason))

    async def standing(self, who: Who) -> AccountStanding:
        return standing(self.load(), key_of(who))

    async def create_allowance(
        self, who: Who, hash: str, terms: AllowanceTerms, *, service: str | None = None
    ) -> Allowance:
        return self._apply(CreateAllowance(key_of(who), draft_allowance(terms, hash, self._now(), service)))

    async def change_allowance(
        self, who: Who, id: str, change: AllowanceChange, *, service: str | None = None
    ) -> Allowance:
        return self._apply(ChangeAllowance(key_of(who), id, change, service))

    async def revoke_allowance(self, who: Who, id: str) -> Allowance:
        return self._apply(RevokeAllowance(key_of(who), id))

    async def change_limits(self, who: Who, change: LimitChange) -> OwnerLimits:
        return self._apply(ChangeLimits(key_of(who), change))

    async def list_allowances(self, who: Who) -> list[Allowance]:
        now, owner = self._now(), find_owner(self.load(), key_of(who))
        own = {a.id: replace(a) for a in self.books.allowances.values() if a.parent == owner.hash}
        by_age = sorted(own.values(), key=lambda a: (a.created_at, a.id))
        live, ended = [a for a in by_age if a.is_live(now)], [a for a in by_age if not a.is_live(now)]
        return live + ended[::-1][:SHOWN_ENDED]

    async def statement(self, who: Who, query: StatementQuery) -> StatementPage:
        return read_statement(self.load(), key_of(who), query)

    async def holds(self, limit: int = 100) -> list[OpenHold]:
        fingerprints = {token.account: token.hash[:FINGERPRINT] for token in self.books.tokens.values()}
        still = sorted((h for h in self.held.values() if h.state == "open"), key=lambda h: h.expires_at)
        return [show_hold(hold, fingerprints[hold.account]) for hold in still[:limit]]

    async def sweep(self) -> int:
        self.books.now = self._now()
        return len([self._apply(release) for release in list(release_expired(self.books))])

    def load(self) -> LedgerState:
        self.books.now = self._now()
        return self.books

    def _apply(self, operation: LedgerOperation[R]) -> R:
        return operation.on(self.load())
