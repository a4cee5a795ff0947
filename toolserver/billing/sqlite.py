"""The ledger in SQLite: this service owns the credits, one process owns the file."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from cachetools import TTLCache

from toolserver.billing.books import Minted, Reservation, Settlement, Standing, Who, key_of
from toolserver.billing.invariants import Breach, breaches
from toolserver.billing.ledger import OpenHold, fingerprint_of, milliseconds, new_ref, told
from toolserver.billing.rules import Charge, Mint, Operation, Reserve, Revoke, Settle
from toolserver.billing.tables import decided, hash_of, open_holds, read_standing, read_valid, swept
from toolserver.clock import Clock, SystemClock
from toolserver.errors import PaymentRequired
from toolserver.storage.durable import Durable, Job, StorageClosed, durable

log = logging.getLogger(__name__)

R = TypeVar("R")

FILE = "ledger.sqlite3"
KNOWN = 10_000  # tokens remembered as valid
KNOWN_S = 5.0  # for so long; whoever spends is looked up every time


@asynccontextmanager
async def opened_ledger(path: Path, clock: Clock | None = None) -> AsyncIterator["SqliteLedger"]:
    """The ledger of a file. Raises as `durable` does."""
    async with durable(path) as file:
        yield SqliteLedger(file, clock or SystemClock())


class SqliteLedger:
    """Every answer of this class is on the disk."""

    def __init__(self, file: Durable, clock: Clock) -> None:
        self.file = file
        self._now = milliseconds(clock)
        self.decided = partial(decided, self._now)
        self._known: TTLCache[str, bool] = TTLCache(KNOWN, KNOWN_S, timer=clock.monotonic)

    async def knows(self, token: str) -> bool:
        try:
            key = key_of(token)
            if key not in self._known:
                await self._read(lambda db: read_valid(db, key))
                self._known[key] = True
        except PaymentRequired as refusal:
            if refusal.code == "billing_unavailable":
                raise
            return False
        return True

    async def reserve(
        self, call_id: str, who: Who, credits: int, *, endpoint: str, ttl_s: float, service: str = ""
    ) -> Reservation:
        expires_at = self._now() + int(ttl_s * 1000)
        return await self._spend(Reserve(call_id, key_of(who), credits, endpoint, service, expires_at), call_id)

    async def settle(self, call_id: str, *, no_charge: str | None) -> Settlement:
        return await self._spend(Settle(call_id, no_charge), call_id, no_charge or "cancelled")

    async def charge(self, call_id: str, who: Who, credits: int, *, endpoint: str, service: str = "") -> Settlement:
        return await self._spend(Charge(call_id, key_of(who), credits, endpoint, service), call_id)

    async def balance(self, who: Who) -> int:
        key = key_of(who)
        return await self._read(lambda db: read_valid(db, key))

    def delivered(self, call_id: str) -> None:
        """Nothing to remember: what was charged is on the disk."""

    async def mint(self, who: Who, credits: int, *, cause: str) -> Minted:
        return await self._write(Mint(key_of(who), credits, cause, new_ref()))

    async def revoke(self, fingerprint: str, reason: str) -> bool:
        wanted = fingerprint_of(fingerprint)
        hash = await self._read(lambda db: hash_of(db, wanted))
        revoked = await self._write(Revoke(hash, reason))
        self._known.pop(hash, None)
        return revoked

    async def standing(self, who: Who) -> Standing:
        key = key_of(who)
        return await self._read(lambda db: read_standing(db, key))

    async def holds(self, limit: int = 100) -> list[OpenHold]:
        return [told(hold, fingerprint) for hold, fingerprint in await self._read(lambda db: open_holds(db, limit))]

    async def sweep(self) -> int:
        voided = 0
        while found := await self.file.alone(partial(swept, self._now)):
            voided += found
            log.warning("reservations nobody settled were voided", extra={"count": found})
        return voided

    async def check(self) -> list[Breach]:
        """Sweep, then every rule of the books that does not hold: none, unless the file was damaged or forged."""
        now = self._now()
        await self.sweep()
        return await self.file.apart(lambda db: breaches(db, now))

    async def _spend(self, operation: Operation[R], call_id: str, no_charge: str = "cancelled") -> R:
        """Do it; if the caller is gone meanwhile, it may have been done: then undo it, next in the queue."""
        try:
            return await self._write(operation)
        except asyncio.CancelledError:
            self.file.soon(self.decided, Settle(call_id, no_charge))
            raise

    async def _write(self, operation: Operation[R]) -> R:
        try:
            return await self.file.together(self.decided, operation)
        except (sqlite3.Error, StorageClosed) as failure:
            raise unavailable(failure) from failure

    async def _read(self, job: Job[R]) -> R:
        try:
            return await self.file.read(job)
        except (sqlite3.Error, StorageClosed) as failure:
            raise unavailable(failure) from failure


def unavailable(failure: Exception) -> PaymentRequired:
    """What callers are told when the books cannot be used."""
    log.error("the ledger cannot be used: %s", failure)
    return PaymentRequired(
        "billing_unavailable",
        "Billing is out of order for the moment; nothing was charged.",
        headers={"Retry-After": "5"},
    )
