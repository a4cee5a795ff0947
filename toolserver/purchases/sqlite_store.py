"""Purchases in the ledger's SQLite file, so that credits, token and purchase are one transaction of that file."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from toolserver.purchases import sqlite_old_quotes as old_quotes
from toolserver.purchases import sqlite_tables as tables
from toolserver.purchases.listing import ListedPurchase
from toolserver.purchases.manual_review import ReviewCase
from toolserver.purchases.store import (
    BlockUpdate,
    CreditReversal,
    Purchase,
    PurchaseDraft,
    StoredCredit,
    TransferCredit,
    UnappliedPayment,
)
from toolserver.storage.errors import StorageFailed
from toolserver.storage.group_commit import GroupCommit, snapshot


class SqlitePurchaseStore:
    """See PurchaseStore. Every method raises StorageFailed when the file cannot be used."""

    def __init__(self, file: GroupCommit) -> None:
        self._file = file

    async def find_next_index(self) -> int:
        return await self._file.read(tables.find_next_index)

    async def add_quote(self, draft: PurchaseDraft) -> None:
        await self._file.alone(partial(tables.add_quote, draft))

    async def find_purchase(self, memo_hash: bytes) -> Purchase | None:
        found = await self._file.read(partial(tables.find_purchase, memo_hash))
        if found is None and await self._file.read(partial(old_quotes.is_aside, memo_hash)):
            await self._file.alone(partial(old_quotes.bring_back, memo_hash))
            found = await self._file.read(partial(tables.find_purchase, memo_hash))
        return found

    async def put_quotes_aside(self, before: int, most: int) -> int:
        return await self._file.alone(partial(old_quotes.put_aside, before, most))

    async def find_credit(self, purchase: int) -> StoredCredit | None:
        return await self._file.read(partial(tables.find_credit, purchase))

    async def credit_transfer(self, given: TransferCredit) -> int:
        return await self._file.alone(partial(tables.credit_transfer, given))

    async def record_unapplied(self, payment: UnappliedPayment) -> None:
        await self._file.alone(partial(tables.record_unapplied, payment))

    async def is_token_waiting(self, token: str) -> bool:
        return await self._file.read(partial(tables.is_token_waiting, token))

    async def forget_token(self, token: str) -> None:
        await self._file.alone(partial(tables.forget_token, token))

    async def forget_old_tokens(self, now: int) -> None:
        await self._file.alone(partial(tables.forget_old_tokens, now))

    async def list_watched(self) -> list[StoredCredit]:
        return await self._file.read(tables.list_watched)

    async def record_block(self, update: BlockUpdate) -> None:
        await self._file.alone(partial(tables.record_block, update))

    async def record_missing(self, tx_hash: bytes, now: int) -> None:
        await self._file.alone(partial(tables.record_missing, tx_hash, now))

    async def reverse_credit(self, tx_hash: bytes, now: int) -> CreditReversal:
        return await self._file.alone(partial(tables.reverse_credit, tx_hash, now))

    async def list_deposits(self) -> list[tuple[int, bytes]]:
        return await self._file.read(tables.list_deposits)

    async def list_purchases(self, state: str | None, limit: int) -> list[ListedPurchase]:
        return await self._file.read(partial(tables.list_purchases, state, limit))

    async def list_cases(self) -> list[ReviewCase]:
        return await self._file.read(tables.list_cases)


def read_purchases(path: Path, state: str | None, limit: int) -> list[ListedPurchase]:
    """The newest purchases in a file, whether a service has it open or not. Raises StorageFailed."""
    with report_unreadable():
        return snapshot(path, partial(tables.list_purchases, state, limit))


def read_cases(path: Path) -> list[ReviewCase]:
    """What a person has to look at, in a file, whether a service has it open or not. Raises StorageFailed."""
    with report_unreadable():
        return snapshot(path, tables.list_cases)


def read_deposits(path: Path) -> list[tuple[int, bytes]]:
    """Every deposit address in a file, whether a service has it open or not. Raises StorageFailed."""
    with report_unreadable():
        return snapshot(path, tables.list_deposits)


def read_deposit_states(path: Path) -> list[tuple[int, str]]:
    """The number of every deposit address in a file and the state of its purchase. Raises StorageFailed."""
    with report_unreadable():
        return snapshot(path, tables.list_deposit_states)


@contextmanager
def report_unreadable() -> Iterator[None]:
    """Raise StorageFailed where SQLite cannot read the file."""
    try:
        yield
    except sqlite3.Error as error:
        raise StorageFailed(str(error)) from error
