"""Defines what every store of receipts and of the log of uncharged calls promises, whatever its engine."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from toolserver.money.receipts.issue import IssueReceipt, RecordUncharged, StoredReceipt
from toolserver.money.receipts.log import AppendHour, BookedCall, DaySum, LogLease, SignCheckpoint, SignedCheckpoint
from toolserver.money.receipts.merkle import Tile


class LogHead(NamedTuple):
    """The last signed checkpoint, if any, the number of leaves now, and the last hour that was appended or NOT_YET."""

    last: SignedCheckpoint | None
    size: int
    closed: int


class DayCall(NamedTuple):
    """An uncharged call. `seq` is the number of its leaf, or None while its hour is not in the log; `at` is in epoch
    milliseconds.
    """

    seq: int | None
    at: int
    reason: str
    endpoint: str
    credits: int
    receipt: bytes | None


class DayRecord(NamedTuple):
    """The uncharged calls of one day: their sums, and the last ones, newest first. `waiting` counts the calls of all
    days that are booked and not yet in the log.
    """

    sums: list[DaySum]
    calls: list[DayCall]
    waiting: int


class BucketRecord(NamedTuple):
    """A bucket: the number of its leaf, or None while its hour is not in the log; and the sorted hashes of its
    receipts, or None if they were archived and removed.
    """

    seq: int | None
    receipts: list[bytes] | None


class ReceiptStore(Protocol):
    """Stores receipts and the log durably. Any method may raise StorageFailed; then nothing was written."""

    async def issue(self, operation: IssueReceipt) -> StoredReceipt:
        """Store a receipt and, if the call was not charged, book the call: both or neither."""
        ...

    async def record(self, operation: RecordUncharged) -> None:
        """Book an uncharged call that has no receipt."""
        ...

    async def list_hours(self, until: int) -> list[int]:
        """Return the hours before `until` that have booked calls and are not in the log, in ascending order."""
        ...

    async def list_booked(self, hour: int) -> list[BookedCall]:
        """Return the calls that are booked in an hour. This may take long, but blocks no other reader or writer."""
        ...

    async def append(self, operation: AppendHour) -> bool:
        """Append an hour to the log. Return False, with nothing changed, if another process may append now, or if the
        hour is in the log already or not as it was read.

        No call may be booked in the hour between the count of its calls and the end of the transaction.
        """
        ...

    async def take_lease(self, lease: LogLease) -> bool:
        """Take or extend the right to append. Return False if another process has it."""
        ...

    async def find_bucket(self, hour: int, key: bytes) -> BucketRecord:
        """Return a bucket. A bucket in which nothing was booked has neither a leaf nor receipts."""
        ...

    async def sign_checkpoint(self, operation: SignCheckpoint) -> SignedCheckpoint:
        """Sign the log as it is now and store the checkpoint. Raises LogForked; then the last checkpoint stays."""
        ...

    async def receipt(self, id: str) -> StoredReceipt | None:
        """Return a receipt by its id, or None if there is none."""
        ...

    async def list_known(self, ids: Sequence[str]) -> set[str]:
        """Return those of the ids under which a receipt is stored."""
        ...

    async def head(self) -> LogHead:
        """Return how far the log has grown and how far it is signed."""
        ...

    async def leaf(self, index: int) -> bytes | None:
        """Return the bytes of a leaf, or None if the log has none at this index."""
        ...

    async def tile(self, tile: Tile) -> bytes | None:
        """Return the content of a tile, or None if the log has not grown that far."""
        ...

    async def inclusion(self, index: int, size: int) -> list[bytes] | None:
        """Return the proof that a leaf is in the log of `size` leaves, or None if there is no such log or leaf."""
        ...

    async def consistency(self, old: int, new: int) -> list[bytes] | None:
        """Return the proof that the log of size `old` is the beginning of that of size `new`, or None if there is
        none.
        """
        ...

    async def day(self, day: str, events: int) -> DayRecord:
        """Return the account of a day (UTC, ISO 8601), with at most `events` calls."""
        ...

    async def days(self, limit: int) -> list[tuple[str, int]]:
        """Return the last days with uncharged calls, the newest first, and the number of calls on each."""
        ...
