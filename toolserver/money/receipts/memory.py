"""Keeps receipts and the log in memory, for tests, by the same rules as every store. Nothing outlives the process."""

from collections import Counter
from collections.abc import Sequence

from toolserver.money.receipts import merkle
from toolserver.money.receipts.issue import IssueReceipt, ReceiptState, RecordUncharged, StoredReceipt
from toolserver.money.receipts.log import (
    NOT_YET,
    AppendHour,
    BookedCall,
    LogLeaf,
    LogLease,
    Place,
    SignCheckpoint,
    SignedCheckpoint,
    add_up,
    day_of,
    sort_receipts,
    sum_by_day,
)
from toolserver.money.receipts.store import BucketRecord, DayCall, DayRecord, LogHead


class MemoryReceiptStore:
    """A `ReceiptStore` in dictionaries and lists."""

    def __init__(self) -> None:
        self.receipts: dict[str, StoredReceipt] = {}
        self.booked: list[BookedCall] = []
        self.leaves: list[LogLeaf] = []
        self.nodes: dict[Place, bytes] = {}
        self.last: SignedCheckpoint | None = None
        self._lease: LogLease | None = None

    async def issue(self, operation: IssueReceipt) -> StoredReceipt:
        state = self._load()
        receipt = operation.on(state)
        self._keep(state)
        return receipt

    async def record(self, operation: RecordUncharged) -> None:
        state = self._load()
        operation.on(state)
        self._keep(state)

    async def list_hours(self, until: int) -> list[int]:
        return sorted({call.hour for call in self._waiting() if call.hour < until})

    async def list_booked(self, hour: int) -> list[BookedCall]:
        return [call for call in self.booked if call.hour == hour]

    async def append(self, operation: AppendHour) -> bool:
        booked = len(await self.list_booked(operation.hour))
        if operation.hour <= self._closed() or booked != operation.calls or not await self.take_lease(operation.lease):
            return False
        growth = operation.on(len(self.leaves), self.nodes)
        self.leaves += growth.leaves
        self.nodes |= {(level, index): value for level, index, value in growth.nodes}
        return True

    async def take_lease(self, lease: LogLease) -> bool:
        held = self._lease
        if held is not None and held.holder != lease.holder and held.until > lease.now:
            return False
        self._lease = lease
        return True

    async def find_bucket(self, hour: int, key: bytes) -> BucketRecord:
        calls = [call for call in self.booked if (call.hour, call.key) == (hour, key)]
        return BucketRecord(self._places().get((hour, key)), sort_receipts(call.receipt for call in calls))

    async def sign_checkpoint(self, operation: SignCheckpoint) -> SignedCheckpoint:
        self.last = operation.on(len(self.leaves), self.last, self.nodes)
        return self.last

    async def receipt(self, id: str) -> StoredReceipt | None:
        return self.receipts.get(id)

    async def list_known(self, ids: Sequence[str]) -> set[str]:
        return {id for id in ids if id in self.receipts}

    async def head(self) -> LogHead:
        return LogHead(self.last, len(self.leaves), self._closed())

    async def leaf(self, index: int) -> bytes | None:
        return self.leaves[index].entry if index < len(self.leaves) else None

    async def tile(self, tile: merkle.Tile) -> bytes | None:
        if not tile.within(len(self.leaves)):
            return None
        if tile.level is not None:
            return merkle.hashes(self._node, tile)
        first = tile.number * merkle.WIDTH
        return merkle.bundle([leaf.entry for leaf in self.leaves[first : first + tile.width]])

    async def inclusion(self, index: int, size: int) -> list[bytes] | None:
        return merkle.prove_inclusion(self._node, index, size) if self._has(size) and 0 <= index < size else None

    async def consistency(self, old: int, new: int) -> list[bytes] | None:
        return merkle.prove_consistency(self._node, old, new) if self._has(new) and 0 < old <= new else None

    async def day(self, day: str, events: int) -> DayRecord:
        calls, places = [call for call in self.booked if day_of(call.hour) == day], self._places()
        newest = sorted(enumerate(calls), key=lambda pair: (pair[1].hour, pair[0]), reverse=True)[:events]
        shown = [DayCall(places.get((c.hour, c.key)), c.at, *c[2:6]) for _, c in newest]
        return DayRecord(sum_by_day(add_up(calls)), shown, len(self._waiting()))

    async def days(self, limit: int) -> list[tuple[str, int]]:
        return sorted(Counter(day_of(call.hour) for call in self.booked).items(), reverse=True)[:limit]

    def _load(self) -> ReceiptState:
        return ReceiptState(dict(self.receipts), self._closed())

    def _keep(self, state: ReceiptState) -> None:
        self.receipts |= {receipt.id: receipt for receipt in state.new_receipts}
        self.booked += state.new_calls

    def _closed(self) -> int:
        return max((leaf.hour for leaf in self.leaves if leaf.hour is not None), default=NOT_YET)

    def _waiting(self) -> list[BookedCall]:
        return [call for call in self.booked if call.hour > self._closed()]

    def _places(self) -> dict[tuple[int | None, bytes | None], int]:
        return {(leaf.hour, leaf.key): leaf.seq for leaf in self.leaves}

    def _node(self, level: int, index: int) -> bytes:
        return self.nodes[level, index]

    def _has(self, size: int) -> bool:
        return size <= len(self.leaves)
