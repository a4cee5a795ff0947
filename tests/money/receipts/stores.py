"""The receipt stores under one contract."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.postgres import POSTGRES, terms_of
from toolserver.money.receipts.log import AppendHour, LogLease, hour_at
from toolserver.money.receipts.sql_store import SqlReceiptStore
from toolserver.sql.postgres_group_commit import open_postgres
from toolserver.sql.sqlite import durable, in_memory

KINDS = ("memory", "sqlite", POSTGRES)


def lease_at(now: float, holder: str = "a", *, lasts_s: float = 60) -> LogLease:
    """A lease of a minute, from `now` epoch seconds on: a database that instances share has a clock of its own."""
    return LogLease(holder, int(now * 1000), int((now + lasts_s) * 1000))


async def append_hours(store: SqlReceiptStore, now: float) -> None:
    """Append the hours that are over."""
    for hour in await store.list_hours(hour_at(now)):
        assert await store.append(AppendHour.of(hour, await store.list_booked(hour), lease_at(now)))


@asynccontextmanager
async def open_store(kind: str, folder: Path) -> AsyncIterator[SqlReceiptStore]:
    """An empty store of that kind; a durable one that is opened again in the same folder has kept its content."""
    if kind == "memory":
        async with in_memory() as rows:
            yield SqlReceiptStore(rows)
        return
    if kind == "postgres":
        async with open_postgres(terms_of(folder)) as shared:
            yield SqlReceiptStore(shared)
        return
    async with durable(folder / "receipts.sqlite3") as file:
        yield SqlReceiptStore(file)
