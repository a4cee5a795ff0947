"""What a store of receipts and of the log of uncharged calls promises, whatever its engine."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from toolserver.receipts.issue import IssueReceipt, RecordUncharged, StoredReceipt
from toolserver.receipts.log_state import DaySum, SignCheckpoint, SignedCheckpoint
from toolserver.receipts.merkle import Tile


class LogHead(NamedTuple):
    """The last signed checkpoint, if any, and the number of leaves now."""

    last: SignedCheckpoint | None
    size: int


class DayRecord(NamedTuple):
    """What the log has of one day: its sums, and the bytes of its last leaves, the newest first."""

    sums: list[DaySum]
    entries: list[bytes]


class ReceiptStore(Protocol):
    """Receipts and the log in one durable place. Any method may raise StorageFailed; then nothing was written."""

    async def issue(self, operation: IssueReceipt) -> StoredReceipt:
        """Store a receipt, and its leaf if the call was not charged; both, or neither."""
        ...

    async def record(self, operation: RecordUncharged) -> None:
        """Add a leaf that has no receipt."""
        ...

    async def sign_checkpoint(self, operation: SignCheckpoint) -> SignedCheckpoint:
        """Sign the log as it is now and store the checkpoint. Raises LogForked; then the last one stays."""
        ...

    async def receipt(self, id: str) -> StoredReceipt | None:
        """A receipt by its id."""
        ...

    async def list_known(self, ids: Sequence[str]) -> set[str]:
        """The ids among these under which a receipt is stored."""
        ...

    async def head(self) -> LogHead:
        """The last checkpoint and the size of the log."""
        ...

    async def leaf(self, index: int) -> bytes | None:
        """The bytes of a leaf; None when the log has none at this index."""
        ...

    async def tile(self, tile: Tile) -> bytes | None:
        """The content of a tile; None when the log has not grown that far."""
        ...

    async def inclusion(self, index: int, size: int) -> list[bytes] | None:
        """The proof that a leaf is in the log of that size; None when there is no such log or leaf."""
        ...

    async def consistency(self, old: int, new: int) -> list[bytes] | None:
        """The proof that the log of size `old` is the beginning of that of size `new`; None when there is none."""
        ...

    async def day(self, day: str, events: int) -> DayRecord:
        """One day (UTC, ISO 8601), with at most so many events."""
        ...

    async def days(self, limit: int) -> list[tuple[str, int]]:
        """The last days with uncharged calls, the newest first, and the number of calls on each."""
        ...
