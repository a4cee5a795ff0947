"""Defines the log of uncharged calls as values and pure rules: how it grows, and which of its states may be signed.

Calls are booked as they happen (`log_buckets`). A closed hour is appended as a whole, in one transaction: its leaves,
the Merkle nodes above them, and the sums by day. Every store also keeps the last signed checkpoint. This module decides
what a store writes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from toolserver.errors import ToolserverError
from toolserver.money.receipts import merkle
from toolserver.money.receipts.keys import Key
from toolserver.money.receipts.log_buckets import BookedCall, BucketTotal, add_up, day_of

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
    """A leaf as it is stored: its number, its day (UTC, ISO 8601), its bytes, when it was appended (epoch
    milliseconds), and its bucket. A leaf from before there were buckets is a single call and has none.
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
    """The right of one process, `holder`, to append to the log. From `until` on another process may take it. Times are
    in epoch milliseconds.
    """

    holder: str
    now: int
    until: int


@dataclass(frozen=True, slots=True)
class AppendHour:
    """Appends a closed hour to the log. `calls` is the number of calls that were read as booked in it.

    A store applies this in one transaction. It changes nothing if another process holds the lease, if the hour is in
    the log already, or if the number of booked calls has changed since they were read.
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
        """Return the nodes that `on` needs: those below the root of the log now, and below that of each state that it
        has to extend.
        """
        sizes = {size, *(state.size for state in (last, self.marked) if state is not None and state.size <= size)}
        return [place for each in sorted(sizes) for place in merkle.frontier(each)]

    def on(self, size: int, last: SignedCheckpoint | None, nodes: Mapping[Place, bytes]) -> SignedCheckpoint:
        """Return the new checkpoint of a log of `size` leaves. Raises LogForked if it does not extend `last` and
        `marked`.
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
