"""Buckets of the log of uncharged calls: the calls of one token to one tool within an hour, free for one reason.

A call is booked when it happens, and its receipt names the bucket. When the hour is over, each bucket becomes one leaf
of the log: what was free, how often, and the root of a small tree over its receipts. The key of a bucket is a hash over
the token's hash, the tool, the reason, the hour and a salt. The salt stands in the receipts of the bucket alone: only
who holds such a receipt and knows the token can show whose bucket it is, and no two hours can be connected.
"""

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from toolserver.core.models import iso
from toolserver.receipts import merkle
from toolserver.receipts.keys import KeyRing
from toolserver.receipts.sign import encode

HOUR_S = 3600
HOUR_SHAPE = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:00:00Z"  # that no calendar has some of them is another matter
CLOSE_AFTER_S = 60.0  # an hour is closed so long after its end: calls that end with it are booked by then
NOT_YET = -1  # the last hour in a log that has none


class UnchargedCall(NamedTuple):
    """A call that was not charged, at `at` epoch seconds. `owner` is its token's SHA-256, hex; `receipt_sha256` the
    hash of its receipt's core, hex.
    """

    at: float
    owner: str
    reason: str
    endpoint: str
    credits: int
    receipt_sha256: str | None = None


class LogBucket(NamedTuple):
    """The name of a bucket: its hour (hours since 1970, UTC), its key, and the salt that the key was made with."""

    hour: int
    key: bytes
    salt: bytes

    def place(self, origin: str) -> dict[str, Any]:
        """What a receipt says of it, in the log of that name."""
        return {"origin": origin, "hour": show_hour(self.hour), "key": self.key.hex(), "salt": self.salt.hex()}


class BookedCall(NamedTuple):
    """An uncharged call as it is stored. `receipt` is the hash of its receipt's core, `at` in milliseconds."""

    hour: int
    key: bytes
    reason: str
    endpoint: str
    credits: int
    receipt: bytes | None
    at: int


class BucketTotal(NamedTuple):
    """What a leaf says of a bucket. `root` is that of the tree over the hashes of its receipts, sorted."""

    hour: int
    key: bytes
    reason: str
    endpoint: str
    calls: int
    credits: int
    receipts: int
    root: bytes | None

    def entry(self, seq: int) -> bytes:
        """The bytes of its leaf at a place of the log."""
        return encode(
            {
                "v": 2,
                "seq": seq,
                "hour": show_hour(self.hour),
                "key": self.key.hex(),
                "reason": self.reason,
                "endpoint": self.endpoint,
                "calls": self.calls,
                "credits": self.credits,
                "receipts": self.receipts,
                "receipts_root": None if self.root is None else self.root.hex(),
            }
        )


class ReceiptPath(NamedTuple):
    """The proof that a receipt is among those of a bucket: its place there, their number, and the path."""

    place: int
    size: int
    path: list[bytes]

    def show(self) -> dict[str, Any]:
        """The proof as it is sent."""
        return {"index": self.place, "size": self.size, "path": [step.hex() for step in self.path]}


class BucketNamer:
    """Names buckets. The salts are made with a secret of the service, so that every process makes the same ones."""

    def __init__(self, ring: KeyRing) -> None:
        self._ring = ring

    def name(self, call: UnchargedCall, hour: int) -> LogBucket:
        """The bucket of a call in that hour."""
        about = encode([hour, call.owner, call.endpoint, call.reason])
        secret = hashlib.sha256(b"salts of buckets" + (self._ring.current().seed or b"")).digest()
        salt = hmac.digest(secret, about, "sha256")[:16]
        return LogBucket(hour, open_bucket(call.owner, call.endpoint, call.reason, hour, salt), salt)


def open_bucket(owner: str, endpoint: str, reason: str, hour: int, salt: bytes) -> bytes:
    """The key of a bucket, as who knows all that it is made of can make it."""
    named = {"token": owner, "endpoint": endpoint, "reason": reason, "hour": show_hour(hour), "salt": salt.hex()}
    return hashlib.sha256(encode(named)).digest()


def hour_at(at: float) -> int:
    """The hour of a time in epoch seconds."""
    return int(at // HOUR_S)


def show_hour(hour: int) -> str:
    """`2027-01-15T08:00:00Z`."""
    return iso(datetime.fromtimestamp(hour * HOUR_S, UTC))


def read_hour(text: str) -> int | None:
    """The hour that is written so; None when none is."""
    try:
        hour = hour_at(datetime.strptime(text, "%Y-%m-%dT%H:00:00Z").replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None
    return hour if show_hour(hour) == text else None


def day_of(hour: int) -> str:
    """The day of an hour, ISO 8601."""
    return show_hour(hour)[:10]


def hours_of(day: str) -> range:
    """The hours of a day."""
    first = hour_at(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp())
    return range(first, first + 24)


def closes_at(hour: int) -> float:
    """From when on an hour is appended to the log, in epoch seconds."""
    return (hour + 1) * HOUR_S + CLOSE_AFTER_S


def add_up(calls: Iterable[BookedCall]) -> list[BucketTotal]:
    """The leaves of booked calls, sorted by hour and key: their order says nothing about that of the calls."""
    buckets: dict[tuple[int, bytes], list[BookedCall]] = {}
    for call in calls:
        buckets.setdefault((call.hour, call.key), []).append(call)
    return [_total(buckets[place]) for place in sorted(buckets)]


def _total(calls: Sequence[BookedCall]) -> BucketTotal:
    first, credits = calls[0], sum(call.credits for call in calls)
    digests = sort_receipts(call.receipt for call in calls)
    root = merkle.root_of(digests) if digests else None
    return BucketTotal(first.hour, first.key, first.reason, first.endpoint, len(calls), credits, len(digests), root)


def sort_receipts(digests: Iterable[bytes | None]) -> list[bytes]:
    """The leaves of the tree over the receipts of a bucket, in their order."""
    return sorted(digest for digest in digests if digest is not None)


def prove_receipt(digests: Sequence[bytes], digest: bytes) -> ReceiptPath | None:
    """The proof that a receipt is among those of a bucket, sorted; None when it is not."""
    if digest not in digests:
        return None
    index, size = digests.index(digest), len(digests)
    return ReceiptPath(index, size, merkle.prove_entry(digests, index))
