"""The receipt stores under one contract."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from toolserver.receipts.memory import MemoryReceiptStore
from toolserver.receipts.sqlite import SqliteReceiptStore
from toolserver.receipts.store import ReceiptStore
from toolserver.storage.group_commit import durable

KINDS = ("memory", "sqlite")


@asynccontextmanager
async def open_store(kind: str, folder: Path) -> AsyncIterator[ReceiptStore]:
    """An empty store of that kind; a durable one that is opened again in the same folder has kept its content."""
    if kind == "memory":
        yield MemoryReceiptStore()
        return
    async with durable(folder / "receipts.sqlite3") as file:
        yield SqliteReceiptStore(file)
