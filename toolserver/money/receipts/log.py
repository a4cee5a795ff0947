"""Groups uncharged calls into buckets of the log: the calls of one token to one tool in one hour, free for one reason.

A call is booked when it happens, and its receipt names the bucket. When the hour has ended,
each bucket becomes one leaf of the log: the tool, the reason, the number of calls, and the
root of a small tree over their receipts. The key of a bucket is a hash over the token's hash,
the tool, the reason, the hour and a salt. Only the receipts of the bucket contain the salt,
so only somebody who has such a receipt and knows the token can show whose bucket it is, and
the buckets of two hours cannot be linked.
"""

import hashlib
import hmac
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from toolserver.core.models import iso
from toolserver.errors import ToolserverError
from toolserver.money.receipts import merkle
from toolserver.money.receipts.keys import Key, KeyRing
from toolserver.money.receipts.sign import encode

HOUR_S = 3600
HOUR_SHAPE = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:00:00Z"  # only the form: some of these are in no calendar
CLOSE_AFTER_S = 60.0  # an hour is closed this long after its end, when calls that ended with it are booked
NOT_YET = -1  # stands for the last hour of a log that has none


class UnchargedCall(NamedTuple):
    """A call that was not charged, at `at` epoch seconds. `owner` is the SHA-256 (hex) of its
    token, `receipt_sha256` that of its receipt's core.
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


Place = tuple[int, int]  # a node of the tree: its level and its index there


class LogForked(ToolserverError):
    """The stored log does not extend a state that was signed before. Nothing is signed until an operator has looked."""


class SignedCheckpoint(NamedTuple):
    """A signed state of the log: the number of leaves, their root hash, the signed note, and the time (epoch ms)."""

    size: int
    root: bytes
    note: str
    at: int


class LogMark(NamedTuple):
    """A signed state of the log, as it is stored outside the database: the number of leaves and their root hash."""

    size: int
    root: bytes


class LogLeaf(NamedTuple):
    """A leaf as it is stored: its number, its day (UTC, ISO 8601), its bytes, when it was
    appended (epoch milliseconds), and its bucket. A leaf from before there were buckets is a
    single call and has none.
    """

    seq: int
    day: str
    entry: bytes
    at: int
    hour: int | None = None
    key: bytes | None = None


class LogNode(NamedTuple):
    """The hash over the leaves from `place * 2**level` to before `(place + 1) * 2**level`."""

    level: int
    place: int
    hash: bytes


class DaySum(NamedTuple):
    """The uncharged calls of one day, reason and endpoint."""

    day: str
    reason: str
    endpoint: str
    calls: int
    credits: int


@dataclass(slots=True)
class LogGrowth:
    """The rows of a group of new leaves. `sums` are added to the stored sums of the same day, reason and endpoint."""

    leaves: list[LogLeaf] = field(default_factory=list)
    nodes: list[LogNode] = field(default_factory=list)
    sums: list[DaySum] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LogLease:
    """The right of one process, `holder`, to append to the log. From `until` on another
    process may take it. Times are in epoch milliseconds.
    """

    holder: str
    now: int
    until: int


@dataclass(frozen=True, slots=True)
class AppendHour:
    """Appends a closed hour to the log. `calls` is the number of calls that were read as booked in it.

    A store applies this in one transaction. It changes nothing if another process holds the
    lease, if the hour is in the log already, or if the number of booked calls has changed
    since they were read.
    """

    hour: int
    totals: Sequence[BucketTotal]
    calls: int
    lease: LogLease

    @classmethod
    def of(cls, hour: int, calls: Sequence[BookedCall], lease: LogLease) -> "AppendHour":
        """Return the operation that appends an hour with these booked calls."""
        return cls(hour, add_up(calls), len(calls), lease)

    def on(self, size: int, frontier: Mapping[Place, bytes]) -> LogGrowth:
        """Return the rows that a log of `size` leaves grows by. `frontier` has the nodes of `merkle.frontier(size)`."""
        return grow_log(self.totals, size, frontier, self.lease.now)


def grow_log(totals: Sequence[BucketTotal], size: int, frontier: Mapping[Place, bytes], now: int) -> LogGrowth:
    """Return the leaves that these buckets add to a log of `size` leaves, with their nodes and the sums by day."""
    growth, nodes = LogGrowth(), dict(frontier)
    for seq, total in enumerate(totals, size):
        entry = total.entry(seq)
        growth.leaves.append(LogLeaf(seq, day_of(total.hour), entry, now, total.hour, total.key))
        for level, index, value in merkle.grow(lambda *place: nodes[place], seq, entry):
            nodes[level, index] = value
            growth.nodes.append(LogNode(level, index, value))
    growth.sums = sum_by_day(totals)
    return growth


def sum_by_day(totals: Sequence[BucketTotal]) -> list[DaySum]:
    """Return the calls and credits of buckets by day, reason and endpoint."""
    calls: Counter[tuple[str, str, str]] = Counter()
    credits: Counter[tuple[str, str, str]] = Counter()
    for total in totals:
        place = (day_of(total.hour), total.reason, total.endpoint)
        calls[place] += total.calls
        credits[place] += total.credits
    return [
        DaySum(day, reason, endpoint, count, credits[day, reason, endpoint])
        for (day, reason, endpoint), count in calls.items()
    ]


@dataclass(frozen=True, slots=True)
class SignCheckpoint:
    """Signs the state of the log under the name `origin`. `now` is in epoch milliseconds.

    `marked` is the last signed state according to a file beside the database, which restoring a backup does not reset.
    """

    origin: str
    key: Key
    now: int
    marked: LogMark | None = None

    def nodes(self, size: int, last: SignedCheckpoint | None) -> list[Place]:
        """Return the nodes that `on` needs: those below the root of the log now, and below
        that of each state that it has to extend.
        """
        sizes = {size, *(state.size for state in (last, self.marked) if state is not None and state.size <= size)}
        return [place for each in sorted(sizes) for place in merkle.frontier(each)]

    def on(self, size: int, last: SignedCheckpoint | None, nodes: Mapping[Place, bytes]) -> SignedCheckpoint:
        """Return the new checkpoint of a log of `size` leaves. Raises LogForked if it does not
        extend `last` and `marked`.
        """
        for state in (last, self.marked):
            if state is not None:
                require_extension(size, state, nodes)
        root = _root(nodes, size)
        if root is None:
            raise LogForked(f"nodes of the log of {size} leaves are missing")
        return SignedCheckpoint(size, root, merkle.checkpoint(self.origin, size, root, self.key), self.now)


def require_extension(size: int, last: SignedCheckpoint | LogMark, nodes: Mapping[Place, bytes]) -> None:
    """Raise LogForked if a log of `size` leaves does not extend a state that was signed."""
    if size < last.size:
        raise LogForked(f"the log has {size} leaves and had {last.size} when it was signed")
    if _root(nodes, last.size) != last.root:
        raise LogForked(f"the first {last.size} leaves of the log are not those that were signed")


def _root(nodes: Mapping[Place, bytes], size: int) -> bytes | None:
    """Return the root hash, or None if a node is missing."""
    try:
        return merkle.root(lambda *place: nodes[place], size)
    except KeyError:
        return None


def sum_by(column: int, sums: Sequence[DaySum]) -> dict[str, int]:
    """Return the number of calls by reason (`column` 1) or by endpoint (2), the most frequent first."""
    calls: Counter[str] = Counter()
    for row in sums:
        calls[str(row[column])] += row.calls
    return dict(sorted(calls.items(), key=lambda item: (-item[1], item[0])))


def describe_day(day: str, sums: Sequence[DaySum], events: Sequence[Any]) -> dict[str, Any]:
    """Return the public account of a day: its sums, and `events`, its last calls as objects."""
    return {
        "date": day,
        "count": sum(row.calls for row in sums),
        "credits_skipped": sum(row.credits for row in sums),
        "by_reason": sum_by(1, sums),
        "by_endpoint": sum_by(2, sums),
        "events": list(events),
    }
