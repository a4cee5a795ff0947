"""Keeps the ledger in SQLite: the service that owns the credits has them in one file, which one process writes."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from cachetools import TTLCache

from toolserver.clock import Clock, SystemClock, milliseconds
from toolserver.errors import BillingUnavailable, PaymentRequired
from toolserver.money.ledger.allowance import Allowance, AllowanceChange, AllowanceTerms, draft_allowance
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
)
from toolserver.money.ledger.owner_limits import LimitChange, OwnerLimits
from toolserver.money.ledger.protocol import OpenHold, fingerprint_of, show_hold
from toolserver.money.ledger.sql_invariants import Breach, LedgerTotals, find_breaches, read_totals
from toolserver.money.ledger.sql_statements import read_statement
from toolserver.money.ledger.sql_tables import (
    LEASE_MS,
    RENEWED_AFTER_MS,
    apply_operations,
    end_leases,
    find_cause,
    forget_undelivered,
    has_due_calls,
    hash_of,
    list_allowances,
    note_undelivered,
    open_holds,
    read_account,
    read_standing,
    renew_leases,
    void_expired,
)
from toolserver.money.ledger.state import (
    AccountStanding,
    LedgerState,
    Minted,
    Reservation,
    Settlement,
    Who,
    key_of,
    new_ref,
)
from toolserver.money.ledger.statements import StatementPage, StatementQuery
from toolserver.sql.connection import SqlConnection
from toolserver.sql.errors import OutcomeUnknown, StorageFailed
from toolserver.sql.group_commit import GroupCommit, Job
from toolserver.sql.sqlite import durable

log = logging.getLogger(__name__)

R = TypeVar("R")

FILE = "ledger.sqlite3"
KNOWN = 10_000  # tokens remembered as valid
KNOWN_S = 5.0  # for this long; a token that spends is looked up every time
KNOWN_SHARED_S = 0.5  # where another instance may revoke it


@asynccontextmanager
async def open_ledger(path: Path, clock: Clock | None = None, *, least_free: int = 0) -> AsyncIterator["SqlLedger"]:
    """Open the ledger in a file. Uses `least_free`, and raises, as `durable` does."""
    async with durable(path, least_free=least_free) as file:
        yield SqlLedger(file, clock or SystemClock())


class SqlLedger:
    """A `LedgerOwner` whose results are on disk before they are returned."""

    def __init__(self, file: GroupCommit, clock: Clock) -> None:
        self.file = file
        self.now = milliseconds(clock)
        self._leases: dict[str, int] = {}  # call_ids of this process, and the ms of their ends: changed by the writer
        self._known: TTLCache[str, str] = TTLCache(
            KNOWN, KNOWN_SHARED_S if file.shared else KNOWN_S, timer=clock.monotonic
        )

    async def knows(self, token: str) -> bool:
        return await self.find_payer(token) is not None

    async def find_payer(self, token: str) -> str | None:
        try:
            key = key_of(token)
            payer = self._known.get(key)
            if payer is None:
                books = await self._account(key)
                payer = self._known[key] = books.valid(key)[0].live
        except PaymentRequired as refusal:
            if refusal.code == "billing_unavailable":
                raise
            return None
        return payer

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
        expires_at = self.now() + int(ttl_s * 1000)
        operation = Reserve(call_id, key_of(who), credits, endpoint, service, expires_at, undelivered=undelivered)
        return await self._spend(operation, call_id)

    async def settle(self, call_id: str, *, no_charge: str | None, undelivered: bool = False) -> Settlement:
        return await self._spend(Settle(call_id, no_charge, undelivered), call_id, no_charge or "cancelled")

    async def charge(
        self, call_id: str, who: Who, credits: int, *, endpoint: str, service: str = "", undelivered: bool = False
    ) -> Settlement:
        charge = Charge(call_id, key_of(who), credits, endpoint, service, undelivered=undelivered)
        return await self._spend(charge, call_id)

    async def balance(self, who: Who) -> int:
        key = key_of(who)
        books = await self._account(key)
        return books.find_spendable(books.valid(key)[1], key)

    def delivered(self, call_id: str) -> None:
        self.file.ride(self._end_delivered, call_id)

    def lost(self, call_id: str) -> None:
        self.file.ride(self._end_lost, call_id)

    async def renew_leases(self) -> None:
        """Renew what this process still works on or sends, so that no other instance releases it."""
        if self._leases:
            await self.file.alone(self._renew_leases)

    async def has_due_calls(self) -> bool:
        """Return True if calls are to be released: they were lost, or their lease ended with their process."""
        now = self.now()
        return await self.file.read(lambda db: has_due_calls(db, now))

    async def mint(self, who: Who, credits: int, *, cause: str) -> Minted:
        return await self._write(Mint(key_of(who), credits, cause, new_ref()))

    async def find_cause(self, start: str) -> str | None:
        """Return the cause of credits that starts with this text, or None if there is none."""
        return await self._read(lambda db: find_cause(db, start))

    async def revoke(self, fingerprint: str, reason: str) -> bool:
        wanted = fingerprint_of(fingerprint)
        hash = await self._read(lambda db: hash_of(db, wanted))
        revoked = await self._write(Revoke(hash, reason))
        self._known.pop(hash, None)
        return revoked

    async def standing(self, who: Who) -> AccountStanding:
        key, now = key_of(who), self.now()
        return await self._read(lambda db: read_standing(db, key, now))

    async def create_allowance(
        self, who: Who, hash: str, terms: AllowanceTerms, *, service: str | None = None
    ) -> Allowance:
        return await self._write(CreateAllowance(key_of(who), draft_allowance(terms, hash, self.now(), service)))

    async def change_allowance(
        self, who: Who, id: str, change: AllowanceChange, *, service: str | None = None
    ) -> Allowance:
        return await self._write(ChangeAllowance(key_of(who), id, change, service))

    async def revoke_allowance(self, who: Who, id: str) -> Allowance:
        revoked = await self._write(RevokeAllowance(key_of(who), id))
        self._known.pop(revoked.hash, None)
        return revoked

    async def change_limits(self, who: Who, change: LimitChange) -> OwnerLimits:
        return await self._write(ChangeLimits(key_of(who), change))

    async def list_allowances(self, who: Who) -> list[Allowance]:
        key, now = key_of(who), self.now()
        return await self._read(lambda db: list_allowances(db, key, now))

    async def find_account(self, token: str) -> str | None:
        """Return the SHA-256 (hex) of the first token of a token's account. It differs only if that token was replaced.

        Return None for an allowance and for an unknown token.
        """
        key, now = key_of(token), self.now()
        token_row = await self._read(lambda db: read_account(db, key, now).tokens.get(key))
        return None if token_row is None else token_row.hash

    async def standing_of_fingerprint(self, fingerprint: str) -> AccountStanding:
        """Return the state of the account whose token has this fingerprint, even if revoked. Raises invalid_token."""
        wanted, now = fingerprint_of(fingerprint), self.now()
        return await self._read(lambda db: read_standing(db, hash_of(db, wanted), now))

    async def statement(self, who: Who, query: StatementQuery) -> StatementPage:
        key, now = key_of(who), self.now()
        return await self._read(lambda db: read_statement(db, key, query, now))

    async def holds(self, limit: int = 100) -> list[OpenHold]:
        return [
            show_hold(hold, fingerprint) for hold, fingerprint in await self._read(lambda db: open_holds(db, limit))
        ]

    async def sweep(self) -> int:
        voided = 0
        while expired := await self.file.alone(lambda db: void_expired(db, self.now())):
            voided += expired
            log.warning("reservations nobody settled were voided", extra={"count": expired})
        return voided

    async def check(self) -> list[Breach]:
        """Sweep, then return every invariant that does not hold. Only a damaged or forged file has any."""
        now = self.now()
        await self.sweep()
        return await self.file.apart(lambda db: find_breaches(db, now))

    def apply_group(self, db: SqlConnection, operations: Sequence[LedgerOperation[Any]]) -> list[Any]:
        """Apply a group of operations within the writer's transaction, and return an outcome for each."""
        now = self.now()
        outcomes = apply_operations(db, operations, now)
        begun, ended = note_undelivered(db, operations, outcomes, now)
        self._leases.update(dict.fromkeys(begun, now + LEASE_MS))
        self._forget_leases(ended)
        return outcomes

    async def totals(self) -> LedgerTotals:
        """Return the totals over all accounts and transfers, on one snapshot."""
        return await self.file.apart(read_totals)

    def _end_delivered(self, db: SqlConnection, call_ids: Sequence[str]) -> list[None]:
        self._forget_leases(call_ids)
        return forget_undelivered(db, call_ids)

    def _end_lost(self, db: SqlConnection, call_ids: Sequence[str]) -> list[None]:
        self._forget_leases(call_ids)
        return end_leases(db, call_ids)

    def _renew_leases(self, db: SqlConnection) -> None:
        now = self.now()
        ending = [call_id for call_id, until in self._leases.items() if until - now < LEASE_MS - RENEWED_AFTER_MS]
        renewed = renew_leases(db, ending, now + LEASE_MS)
        self._forget_leases(ending)
        self._leases.update(dict.fromkeys(renewed, now + LEASE_MS))

    def _forget_leases(self, call_ids: Sequence[str]) -> None:
        for call_id in call_ids:
            self._leases.pop(call_id, None)

    async def _spend(self, operation: LedgerOperation[R], call_id: str, no_charge: str = "cancelled") -> R:
        """Apply the operation. If its caller cannot know whether it was applied, the call is released afterwards.

        This happens when the caller is cancelled, and when a database server is lost during
        the commit. A reservation that could not be settled is released too, unless its caller
        repeats the settlement until it succeeds.
        """
        release = Settle(call_id, no_charge, key=operation.needs().key)
        try:
            return await self.file.together(self.apply_group, operation)
        except asyncio.CancelledError:
            self.file.soon(self.apply_group, release)
            raise
        except StorageFailed as failure:
            if _is_to_be_released(operation, failure):
                self.file.soon(self.apply_group, release)
            raise unavailable(failure) from failure

    async def _write(self, operation: LedgerOperation[R]) -> R:
        try:
            return await self.file.together(self.apply_group, operation)
        except StorageFailed as failure:
            raise unavailable(failure) from failure

    async def _account(self, key: str) -> LedgerState:
        now = self.now()
        return await self._read(lambda db: read_account(db, key, now))

    async def _read(self, job: Job[R]) -> R:
        try:
            return await self.file.read(job)
        except StorageFailed as failure:
            raise unavailable(failure) from failure


def _is_to_be_released(operation: LedgerOperation[Any], failure: StorageFailed) -> bool:
    """Return True if no caller retries the operation that could not be written, so the call must be released."""
    if isinstance(operation, Settle):
        return operation.undelivered or operation.no_charge is not None
    return isinstance(failure, OutcomeUnknown)


def unavailable(failure: Exception) -> PaymentRequired:
    """Log the failure, and return the refusal for callers while the ledger cannot be used."""
    log.error("the ledger cannot be used: %s", failure)
    return BillingUnavailable(
        "Billing is temporarily unavailable. Nothing was charged.",
        headers={"Retry-After": "5"},
    )
