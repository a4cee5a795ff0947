"""The ledgers under one contract, and how to look into their books."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from tests.engine.parts import START
from toolserver.billing.invariants import Breach, breaches
from toolserver.billing.ledger import LedgerOwner, MemoryLedger
from toolserver.billing.sqlite import FILE, SqliteLedger, opened_ledger
from toolserver.billing.tables import store
from toolserver.clock import ManualClock
from toolserver.storage.migrate import migrate

KINDS = ("memory", "sqlite")


def token(number: int) -> str:
    return f"svc_live_{number:064x}"


@asynccontextmanager
async def opened(kind: str, folder: Path, clock: ManualClock | None = None) -> AsyncIterator[LedgerOwner]:
    """A ledger of that kind; opened again in the same folder, the durable ones have kept their books."""
    clock = clock or ManualClock(START)
    if kind == "memory":
        yield MemoryLedger(clock)
    else:
        async with opened_ledger(folder / FILE, clock) as ledger:
            yield ledger


async def faults(ledger: LedgerOwner) -> list[Breach]:
    """What is wrong with the books, by the same queries for every ledger."""
    if isinstance(ledger, SqliteLedger):
        return await ledger.check()
    assert isinstance(ledger, MemoryLedger)
    await ledger.sweep()
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db)
        store(db, ledger.books)
        return breaches(db, ledger.books.now)
