"""The ledgers under one contract, and how to look into their books."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from tests.calls.parts import START
from tests.postgres import POSTGRES, terms_of
from tests.quick_files import migrate_copied
from toolserver.clock import ManualClock
from toolserver.money.ledger.client.ledger import HttpLedger, build_ledger_client
from toolserver.money.ledger.memory import MemoryLedger
from toolserver.money.ledger.protocol import AccountStanding, LedgerOwner, OpenHold, StatementPage, StatementQuery, Who
from toolserver.money.ledger.server.api import internal_app
from toolserver.money.ledger.sql_invariants import Breach, find_breaches
from toolserver.money.ledger.sql_tables import store_state
from toolserver.money.ledger.store import FILE, SqlLedger, open_ledger
from toolserver.settings import LedgerSettings as Settings
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.postgres_group_commit import open_postgres
from toolserver.sql.sqlite import durable, in_memory

KINDS = ("memory", "sqlite", "sister", POSTGRES, pytest.param("sister of postgres", marks=pytest.mark.live))
KEY_ID, SECRET, SERVICE = "b-1", "s" * 32, "b"
OWNER_URL = "http://owner.test"
FOLLOWS = Settings(url=OWNER_URL, service=SERVICE, key_id=KEY_ID, secret=SECRET)
FOLLOWED = Settings(port=0, keys={KEY_ID: SECRET}, services={KEY_ID: [SERVICE, "sister"]})
_followers = count()


def token(number: int) -> str:
    return f"svc_live_{number:064x}"


@asynccontextmanager
async def opened_file(kind: str, folder: Path) -> AsyncIterator[GroupCommit]:
    """What keeps rows: the file of a folder, the database of that folder on a server, or this process."""
    if kind == "postgres":
        async with open_postgres(terms_of(folder)) as store:
            yield store
        return
    if kind == "memory":
        async with in_memory() as rows:
            yield rows
        return
    async with durable(folder / FILE) as file:
        yield file


@asynccontextmanager
async def opened(kind: str, folder: Path, clock: ManualClock | None = None) -> AsyncIterator[LedgerOwner]:
    """A ledger of that kind; opened again in the same folder, the durable ones have kept their books."""
    clock = clock or ManualClock(START)
    if kind == "memory":
        yield MemoryLedger(clock)
        return
    if kind.endswith("postgres"):
        async with (
            open_postgres(terms_of(folder)) as store,
            _followed(kind, SqlLedger(store, clock), folder, clock) as one,
        ):
            yield one
        return
    async with open_ledger(folder / FILE, clock) as ledger, _followed(kind, ledger, folder, clock) as one:
        yield one


@asynccontextmanager
async def _followed(kind: str, ledger: SqlLedger, folder: Path, clock: ManualClock) -> AsyncIterator[LedgerOwner]:
    """The ledger itself, or where the kind is a sister's, as a service sees it that follows it over HTTP."""
    if not kind.startswith("sister"):
        yield ledger
        return
    transport = httpx.ASGITransport(internal_app(ledger, FOLLOWED, clock))
    async with durable(folder / f"follower-{next(_followers)}.sqlite3") as file:  # a new follower each time
        file._db.execute("PRAGMA synchronous=OFF")  # nobody pulls the plug here
        follower = build_ledger_client(FOLLOWS, file, clock, transport=transport)
        yield Sister(follower, ledger)
        await follower.owner.aclose()


class Sister:
    """What a follower can do goes to the owner over HTTP, one call after the other; the rest is done at the owner."""

    def __init__(self, follower: HttpLedger, owner: SqlLedger) -> None:
        self.follower, self.owner = follower, owner
        self._turn = anyio.Lock()

    async def _asked(self, method: str, *given: Any, **named: Any) -> Any:
        async with self._turn:
            return await getattr(self.follower, method)(*given, **named)

    async def knows(self, token: str) -> bool:
        return await self._asked("knows", token)

    async def reserve(self, call_id: str, who: Who, credits: int, **named: Any) -> Any:
        return await self._asked("reserve", call_id, who, credits, **named)

    async def settle(self, call_id: str, *, no_charge: str | None, undelivered: bool = False) -> Any:
        return await self._asked("settle", call_id, no_charge=no_charge, undelivered=undelivered)

    async def charge(self, call_id: str, who: Who, credits: int, **named: Any) -> Any:
        return await self._asked("charge", call_id, who, credits, **named)

    async def balance(self, who: Who) -> int:
        return await self._asked("balance", who)

    async def find_payer(self, token: str) -> str | None:
        return await self._asked("find_payer", token)

    async def create_allowance(self, token: str, hash: str, terms: Any) -> Any:
        return await self._asked("create_allowance", token, hash, terms)

    async def list_allowances(self, token: str) -> Any:
        return await self._asked("list_allowances", token)

    async def change_allowance(self, token: str, id: str, change: Any) -> Any:
        return await self._asked("change_allowance", token, id, change)

    async def revoke_allowance(self, token: str, id: str) -> Any:
        return await self._asked("revoke_allowance", token, id)

    async def change_limits(self, who: Who, change: Any) -> Any:
        return await self.owner.change_limits(who, change)

    async def mint(self, who: Who, credits: int, *, cause: str) -> Any:
        self.follower._known.clear()  # else what was unknown a moment ago stays so for some seconds
        return await self.owner.mint(who, credits, cause=cause)

    async def revoke(self, fingerprint: str, reason: str) -> bool:
        self.follower._known.clear()
        return await self.owner.revoke(fingerprint, reason)

    async def standing(self, who: Who) -> AccountStanding:
        return await self.owner.standing(who)

    async def statement(self, who: Who, query: StatementQuery) -> StatementPage:
        page = await self.owner.statement(who, query)
        plain = [e._replace(call_id=e.call_id and e.call_id.partition(":")[2]) for e in page.entries]
        return page._replace(entries=plain)

    async def holds(self, limit: int = 100) -> list[OpenHold]:
        """In the books a call_id stands behind the name of its service."""
        return [hold._replace(call_id=hold.call_id.partition(":")[2]) for hold in await self.owner.holds(limit)]

    async def sweep(self) -> int:
        return await self.owner.sweep()


async def faults(ledger: LedgerOwner) -> list[Breach]:
    """What is wrong with the books, by the same queries for every ledger."""
    if isinstance(ledger, Sister):
        ledger = ledger.owner
    if isinstance(ledger, SqlLedger):
        return await ledger.check()
    assert isinstance(ledger, MemoryLedger)
    await ledger.sweep()
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate_copied(db)
        store_state(db, ledger.books)
        return find_breaches(db, ledger.books.now)
