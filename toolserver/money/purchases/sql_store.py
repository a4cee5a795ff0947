"""Stores purchases in the ledger's database, so that credits, token and purchase change in one transaction."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from toolserver.money.purchases import sql_old_quotes as old_quotes
from toolserver.money.purchases import sql_tables as tables
from toolserver.money.purchases.listing import ListedPurchase, ReviewCase
from toolserver.money.purchases.records import (
    BlockUpdate,
    CreditReversal,
    Purchase,
    PurchaseDraft,
    StoredCredit,
    TransferCredit,
    UnappliedPayment,
)
from toolserver.sql.connection import SqlConnection
from toolserver.sql.group_commit import GroupCommit
from toolserver.sql.leases import LeasedTask
from toolserver.sql.ledger_place import LedgerPlace, read_place

R = TypeVar("R")

ROOM = "purchases"  # writes about purchases: by one instance at a time


class SqlPurchaseStore:
    """Implements PurchaseStore. Every method raises StorageFailed when the database cannot be used.

    With a `task`, a write raises LeaseLost if another instance has taken over that task.
    """

    def __init__(self, file: GroupCommit, task: LeasedTask | None = None) -> None:
        self._file, self._task = file, task

    async def _write(self, job: Callable[[SqlConnection], R]) -> R:
        return await self._file.alone(job if self._task is None else self._task.guard(job), room=ROOM)

    async def find_next_index(self) -> int:
        return await self._file.read(tables.find_next_index)

    async def set_aside(self, start: int, count: int) -> int:
        return await self._write(partial(tables.set_aside, start, count))

    async def add_quote(self, draft: PurchaseDraft) -> None:
        await self._write(partial(tables.add_quote, draft))

    async def find_purchase(self, memo_hash: bytes) -> Purchase | None:
        purchase = await self._file.read(partial(tables.find_purchase, memo_hash))
        if purchase is None and await self._file.read(partial(old_quotes.is_aside, memo_hash)):
            await self._write(partial(old_quotes.bring_back, memo_hash))
            purchase = await self._file.read(partial(tables.find_purchase, memo_hash))
        return purchase

    async def put_quotes_aside(self, before: int, most: int) -> int:
        return await self._write(partial(old_quotes.put_aside, before, most))

    async def find_credit(self, purchase: int) -> StoredCredit | None:
        return await self._file.read(partial(tables.find_credit, purchase))

    async def credit_transfer(self, credit: TransferCredit) -> int:
        return await self._write(partial(tables.credit_transfer, credit))

    async def record_unapplied(self, payment: UnappliedPayment) -> None:
        await self._write(partial(tables.record_unapplied, payment))

    async def is_token_waiting(self, token: str) -> bool:
        return await self._file.read(partial(tables.is_token_waiting, token))

    async def forget_token(self, token: str) -> None:
        await self._write(partial(tables.forget_token, token))

    async def forget_old_tokens(self, now: int) -> None:
        await self._write(partial(tables.forget_old_tokens, now))

    async def list_watched(self) -> list[StoredCredit]:
        return await self._file.read(tables.list_watched)

    async def record_block(self, update: BlockUpdate) -> None:
        await self._write(partial(tables.record_block, update))

    async def record_missing(self, tx_hash: bytes, now: int) -> None:
        await self._write(partial(tables.record_missing, tx_hash, now))

    async def reverse_credit(self, tx_hash: bytes, now: int) -> CreditReversal:
        return await self._write(partial(tables.reverse_credit, tx_hash, now))

    async def list_deposits(self) -> list[tuple[int, bytes]]:
        return await self._file.read(tables.list_deposits)

    async def list_purchases(self, state: str | None, limit: int) -> list[ListedPurchase]:
        return await self._file.read(partial(tables.list_purchases, state, limit))

    async def list_cases(self) -> list[ReviewCase]:
        return await self._file.read(tables.list_cases)


def read_purchases(place: LedgerPlace, state: str | None, limit: int) -> list[ListedPurchase]:
    """Return the newest stored purchases, even while a service has the database open. Raises StorageFailed."""
    return read_place(place, partial(tables.list_purchases, state, limit))


def read_cases(place: LedgerPlace) -> list[ReviewCase]:
    """Return the stored cases for a person, even while a service has the database open. Raises StorageFailed."""
    return read_place(place, tables.list_cases)


def read_deposits(place: LedgerPlace) -> list[tuple[int, bytes]]:
    """Return every stored deposit address with its number, even while a service has the database open.

    Raises StorageFailed.
    """
    return read_place(place, tables.list_deposits)


def read_deposit_states(place: LedgerPlace) -> list[tuple[int, str]]:
    """Return the number of every stored deposit address and the state of its purchase. Raises StorageFailed."""
    return read_place(place, tables.list_deposit_states)
