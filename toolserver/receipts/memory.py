"""Receipts and the log in memory, for tests: the same rules as every store, and nothing outlives the process."""

from collections import Counter
from collections.abc import Sequence

from toolserver.receipts import merkle
from toolserver.receipts.issue import IssueReceipt, ReceiptState, RecordUncharged, StoredReceipt
from toolserver.receipts.log_state import DaySum, LogLeaf, Place, SignCheckpoint, SignedCheckpoint, grow_log
from toolserver.receipts.store import DayRecord, LogHead


class MemoryReceiptStore:
    """A `ReceiptStore` in dictionaries and lists."""

    def __init__(self) -> None:
        self.receipts: dict[str, StoredReceipt] = {}
        self.leaves: list[LogLeaf] = []
        self.nodes: dict[Place, bytes] = {}
        self.last: SignedCheckpoint | None = None
        self._calls: Counter[tuple[str, str, str]] = Counter()
        self._credits: Counter[tuple[str, str, str]] = Counter()

    async def issue(self, operation: IssueReceipt) -> StoredReceipt:
        state = self._load()
        receipt = operation.on(state)
        self._keep(state)
        return receipt

    async def record(self, operation: RecordUncharged) -> None:
        state = self._load()
        operation.on(state)
        self._keep(state)

    async def sign_checkpoint(self, operation: SignCheckpoint) -> SignedCheckpoint:
        self.last = operation.on(len(self.leaves), self.last, self.nodes)
        return self.last

    async def receipt(self, id: str) -> StoredReceipt | None:
        return self.receipts.get(id)

    async def list_known(self, ids: Sequence[str]) -> set[str]:
        return {id for id in ids if id in self.receipts}

    async def head(self) -> LogHead:
        return LogHead(self.last, len(self.leaves))

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
        sums = [DaySum(*key, calls, self._credits[key]) for key, calls in self._calls.items() if key[0] == day]
        entries = [leaf.entry for leaf in reversed(self.leaves) if leaf.day == day]
        return DayRecord(sums, entries[:events])

    async def days(self, limit: int) -> list[tuple[str, int]]:
        found: Counter[str] = Counter()
        for (day, _, _), calls in self._calls.items():
            found[day] += calls
        return sorted(found.items(), reverse=True)[:limit]

    def _load(self) -> ReceiptState:
        return ReceiptState(dict(self.receipts), len(self.leaves))

    def _keep(self, state: ReceiptState) -> None:
        growth = grow_log(state.new_events, state.log_size, self.nodes)
        self.receipts |= {receipt.id: receipt for receipt in state.new_receipts}
        self.leaves += growth.leaves
        self.nodes |= {(level, index): value for level, index, value in growth.nodes}
        for day, reason, endpoint, calls, credits in growth.sums:
            self._calls[day, reason, endpoint] += calls
            self._credits[day, reason, endpoint] += credits

    def _node(self, level: int, index: int) -> bytes:
        return self.nodes[level, index]

    def _has(self, size: int) -> bool:
        return size <= len(self.leaves)
