"""The numbers of deposit addresses: each is given out once, whatever goes wrong."""

from functools import partial

import anyio
import anyio.to_thread

from toolserver.purchases.store import PurchaseStore
from toolserver.storage.errors import StorageFailed
from toolserver.storage.high_water import HighWater

MARK = "address"  # among the marks outside the database: the first number that nobody has set aside
BLOCK = 64  # numbers set aside at a time: each time costs three waits for the disk, and a restart skips what is left


class AddressNumbers:
    """Hands out numbers, of which a block is set aside on the disk outside the database before the first is used.

    So a restored backup, which knows less, gives none of them out again; nor does another process on the same file.
    Where instances share a database, it is set aside there as well, so that no two of them have the same block.
    """

    def __init__(self, store: PurchaseStore, first: int = 0, marks: HighWater | None = None) -> None:
        self._store, self._first, self._marks = store, first, marks
        self._next = self._end = 0
        self._reserving = anyio.Lock()

    async def take(self) -> int:
        """A number that was never given out. Raises StorageFailed, MarksBroken."""
        while self._next >= self._end:
            async with self._reserving:
                if self._next >= self._end:
                    await self._reserve()
        number, self._next = self._next, self._next + 1
        return number

    def drop_block(self) -> None:
        """Forget the rest of the block: another process has used a number of it."""
        self._end = self._next

    async def _reserve(self) -> None:
        start = max(self._first, await self._store.find_next_index())
        end = start + BLOCK
        if self._marks is not None:
            rule = partial(_set_aside, start)
            try:
                end = int(await anyio.to_thread.run_sync(self._marks.change, MARK, rule))
            except OSError as error:
                raise StorageFailed(f"no deposit address can be set aside: {error}") from error
        begin = await self._store.set_aside(end - BLOCK, BLOCK)
        if self._marks is not None and begin + BLOCK > end:
            await anyio.to_thread.run_sync(self._marks.raise_to, MARK, begin + BLOCK)
        self._next, self._end = begin, begin + BLOCK


def _set_aside(start: int, before: int | None) -> int:
    """The mark after another block, which begins at `start` or beyond all that was set aside before."""
    return max(start, before or 0) + BLOCK
