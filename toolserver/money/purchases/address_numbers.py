"""Hands out the numbers of deposit addresses, each of them once, even after crashes and restored backups."""

from functools import partial

import anyio
import anyio.to_thread

from toolserver.money.purchases.store import PurchaseStore
from toolserver.sql.errors import StorageFailed
from toolserver.sql.high_water import HighWater

MARK = "address"  # among the marks outside the database: the first number that no process has reserved
BLOCK = 64  # numbers reserved at a time: each time costs three waits for the disk, and a restart skips the rest


class AddressNumbers:
    """Hands out numbers from blocks, each reserved on disk outside the database before its first number is used.

    So neither a restored backup, which knows fewer numbers, nor another process on the same file hands one out again.
    Where instances share a database, the block is reserved there as well, so that no two instances get the same one.
    """

    def __init__(self, store: PurchaseStore, first: int = 0, marks: HighWater | None = None) -> None:
        self._store, self._first, self._marks = store, first, marks
        self._next = self._end = 0
        self._reserving = anyio.Lock()

    async def take(self) -> int:
        """Return a number that was never handed out before. Raises StorageFailed, MarksBroken."""
        while self._next >= self._end:
            async with self._reserving:
                if self._next >= self._end:
                    await self._reserve()
        number, self._next = self._next, self._next + 1
        return number

    def drop_block(self) -> None:
        """Forget the rest of the block, because another process has used one of its numbers."""
        self._end = self._next

    async def _reserve(self) -> None:
        start = max(self._first, await self._store.find_next_index())
        end = start + BLOCK
        if self._marks is not None:
            rule = partial(_set_aside, start)
            try:
                end = int(await anyio.to_thread.run_sync(self._marks.change, MARK, rule))
            except OSError as error:
                raise StorageFailed(f"no deposit address can be reserved: {error}") from error
        begin = await self._store.set_aside(end - BLOCK, BLOCK)
        if self._marks is not None and begin + BLOCK > end:
            await anyio.to_thread.run_sync(self._marks.raise_to, MARK, begin + BLOCK)
        self._next, self._end = begin, begin + BLOCK


def _set_aside(start: int, before: int | None) -> int:
    """Return the mark after one more block, which begins at `start` or after all numbers that are reserved already."""
    return max(start, before or 0) + BLOCK
