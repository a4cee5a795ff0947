"""Groups uncharged calls into buckets of the log: the calls of one token to one tool in one hour, free for one reason.

A call is booked when it happens, and its receipt names the bucket. When the hour has ended, each bucket becomes one
leaf of the log: the tool, the reason, the number of calls, and the root of a small tree over their receipts. The key of
a bucket is a hash over the token's hash, the tool, the reason, the hour and a salt. Only the receipts of the bucket
contain the salt, so only somebody who has such a receipt and knows the token can show whose bucket it is, and the
buckets of two hours cannot be linked.
"""

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from toolserver.core.models import iso
from toolserver.money.receipts import merkle
from toolserver.money.receipts.keys import KeyRing
from toolserver.money.receipts.sign import encode

HOUR_S = 3600
HOUR_SHAPE = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:00:00Z"  # only the form: some of these are in no calendar
CLOSE_AFTER_S = 60.0  # an hour is closed this long after its end, when calls that ended with it are booked
NOT_YET = -1  # stands for the last hour of a log that has none


class UnchargedCall(NamedTuple):
    """A call that was not charged, at `at` epoch seconds. `owner` is the SHA-256 (hex) of its token, `receipt_sha256`
    that of its receipt's core.
    """

    at: float
    owner: str
    reason: str
    endpoint: str
    credits: int
    receipt_sha256: str | None = None


class LogBucket(NamedTuple):
    """The name of a bucket: its hour (hours since 1970, UTC), its key, and the salt that is part of the key."""

    hour: int
    key: bytes
    salt: bytes

    def place(self, origin: str) -> dict[str, Any]:
        """Return the member `log` of a receipt: this bucket, in the log of that name."""
        return {"origin": origin, "hour": show_hour(self.hour), "key": self.key.hex(), "salt": self.salt.hex()}


class BookedCall(NamedTuple):
    """An uncharged call as it is stored. `receipt` is the SHA-256 of its receipt's core, `at` in epoch milliseconds."""

    hour: int
    key: bytes
    reason: str
    endpoint: str
    credits: int
    receipt: bytes | None
    at: int


class BucketTotal(NamedTuple):
    """The content of a bucket's leaf. `root` is that of the tree over the sorted hashes of its receipts."""

    hour: int
    key: bytes
    reason: str
    endpoint: str
    calls: int
    credits: int
    receipts: int
    root: bytes | None

    def entry(self, seq: int) -> bytes:
        """Return the bytes of the leaf with the number `seq`."""
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
    """The proof that a receipt is in a bucket: its place there, the number of receipts, and the path."""

    place: int
    size: int
    path: list[bytes]

    def show(self) -> dict[str, Any]:
        """Return the proof as it is sent."""
        return {"index": self.place, "size": self.size, "path": [step.hex() for step in self.path]}


class BucketNamer:
    """Names buckets. Salts are derived from the service's signing key, so that every process makes the same ones."""

    def __init__(self, ring: KeyRing) -> None:
        self._ring = ring

    def name(self, call: UnchargedCall, hour: int) -> LogBucket:
        """Return the bucket of a call that is booked in that hour."""
        about = encode([hour, call.owner, call.endpoint, call.reason])
        secret = hashlib.sha256(b"salts of buckets" + (self._ring.current().seed or b"")).digest()
        salt = hmac.digest(secret, about, "sha256")[:16]
        return LogBucket(hour, open_bucket(call.owner, call.endpoint, call.reason, hour, salt), salt)


def open_bucket(owner: str, endpoint: str, reason: str, hour: int, salt: bytes) -> bytes:
    """Return the key of a bucket, the SHA-256 over all the values that it depends on."""
    named = {"token": owner, "endpoint": endpoint, "reason": reason, "hour": show_hour(hour), "salt": salt.hex()}
    return hashlib.sha256(encode(named)).digest()


def hour_at(at: float) -> int:
    """Return the hour of a time in epoch seconds."""
    return int(at // HOUR_S)


def show_hour(hour: int) -> str:
    """Return the start of an hour as `2027-01-15T08:00:00Z`."""
    return iso(datetime.fromtimestamp(hour * HOUR_S, UTC))


def read_hour(text: str) -> int | None:
    """Return the hour that a text names (see `show_hour`), or None if it names none."""
    try:
        hour = hour_at(datetime.strptime(text, "%Y-%m-%dT%H:00:00Z").replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None
    return hour if show_hour(hour) == text else None


def day_of(hour: int) -> str:
    """Return the day (UTC) of an hour, in ISO 8601."""
    return show_hour(hour)[:10]


def hours_of(day: str) -> range:
    """Return the hours of a day (UTC, ISO 8601)."""
    first = hour_at(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp())
    return range(first, first + 24)


def closes_at(hour: int) -> float:
    """Return the time, in epoch seconds, from which an hour may be appended to the log."""
    return (hour + 1) * HOUR_S + CLOSE_AFTER_S


def add_up(calls: Iterable[BookedCall]) -> list[BucketTotal]:
    """Return the leaves of booked calls, sorted by hour and key, so that they do not reveal the order of the calls."""
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
    """Return the leaves of the tree over the receipts of a bucket, sorted. Calls without a receipt have none."""
    return sorted(digest for digest in digests if digest is not None)


def prove_receipt(digests: Sequence[bytes], digest: bytes) -> ReceiptPath | None:
    """Return the proof that a receipt is among the sorted receipts of a bucket, or None if it is not."""
    if digest not in digests:
        return None
    index, size = digests.index(digest), len(digests)
    return ReceiptPath(index, size, merkle.prove_entry(digests, index))
