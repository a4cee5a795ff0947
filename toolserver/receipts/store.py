"""What a store of receipts and of the log of uncharged calls promises, whatever its engine."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from toolserver.receipts.issue import IssueReceipt, RecordUncharged, StoredReceipt
from toolserver.receipts.log_buckets import BookedCall
from toolserver.receipts.log_state import AppendHour, DaySum, LogLease, SignCheckpoint, SignedCheckpoint
from toolserver.receipts.merkle import Tile


class LogHead(NamedTuple):
    """The last signed checkpoint, if any, the number of leaves now, and the last hour that was appended."""

    last: SignedCheckpoint | None
    size: int
    closed: int


class DayCall(NamedTuple):
    """An uncharged call. `seq` is its leaf, None while its hour is not in the log; `at` is in milliseconds."""

    seq: int | None
    at: int
    reason: str
    endpoint: str
    credits: int
    receipt: bytes | None


class DayRecord(NamedTuple):
    """The uncharged calls of one day: their sums, the last ones, the newest first; and how many calls of any day are
    booked and not yet in the log.
    """

    sums: list[DaySum]
    calls: list[DayCall]
    waiting: int


class BucketRecord(NamedTuple):
    """A bucket: the number of its leaf, None while its hour is not in the log; the hashes of its receipts, sorted, None
    where they were archived and removed.
    """

    seq: int | None
    receipts: list[bytes] | None


class ReceiptStore(Protocol):
    """Receipts and the log in one durable place. Any method may raise StorageFailed; then nothing was written."""

    async def issue(self, operation: IssueReceipt) -> StoredReceipt:
        """Store a receipt, and book the call if it was not charged; both, or neither."""
        ...

    async def record(self, operation: RecordUncharged) -> None:
        """Book an uncharged call that has no receipt."""
        ...

    async def list_hours(self, until: int) -> list[int]:
        """The hours before `until` that have booked calls and are not in the log, the first one first."""
        ...

    async def list_booked(self, hour: int) -> list[BookedCall]:
        """The calls that are booked in an hour. It may take long and holds up nobody."""
        ...

    async def append(self, operation: AppendHour) -> bool:
        """Append an hour to the log. False: another one appends, or the hour is not what was read; nothing changed.

        No call may be booked in the hour between the last look at it and the end of the transaction.
        """
        ...

    async def take_lease(self, lease: LogLease) -> bool:
        """Become the one that appends, or go on being it. False: another one is."""
        ...

    async def find_bucket(self, hour: int, key: bytes) -> BucketRecord:
        """A bucket. One in which nothing was booked has neither a leaf nor receipts."""
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
        """How far the log has come."""
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
        """One day (UTC, ISO 8601), with at most so many calls."""
        ...

    async def days(self, limit: int) -> list[tuple[str, int]]:
        """The last days with uncharged calls, the newest first, and the number of calls on each."""
        ...
