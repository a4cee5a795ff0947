"""The public account of calls that were not charged: a log nobody can rewrite, and its sums by day.

A leaf says when, why, where and how many credits, and names the receipt by hash; it names no token and no caller. The
log's own state is signed at most once a minute, and never one that does not lead on from the state signed before.
"""

import base64
import logging
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

import msgspec

from toolserver.billing import tlog
from toolserver.billing.keys import KeyRing
from toolserver.billing.receipts import encode, moment
from toolserver.clock import Clock
from toolserver.errors import ToolserverError
from toolserver.storage.durable import Durable
from toolserver.storage.rows import insert

log = logging.getLogger(__name__)

EVENTS = 200  # shown for one day
CHECKPOINT_S = 60.0
MINUTE_S = 60.0
REMEMBERED = 10_000  # tokens and endpoints told apart within a minute; beyond that, a minute has no more events


class LogForked(ToolserverError):
    """The stored log does not lead on from what was signed before. Nothing is signed until an operator has looked."""


class Event(NamedTuple):
    """One call that was not charged. `receipt_sha256` is the hash of its receipt's core, if there is a receipt."""

    at: float
    reason: str
    endpoint: str
    credits: int
    receipt_sha256: str | None = None


class Signed(NamedTuple):
    """A state of the log: how many leaves, what they hash to, and the note that says so."""

    size: int
    root: bytes
    note: str
    at: int


def size_of(db: sqlite3.Connection) -> int:
    """The number of leaves."""
    return int(db.execute("SELECT coalesce(max(seq) + 1, 0) FROM no_charge").fetchone()[0])


def entry_of(event: Event, seq: int) -> bytes:
    """A leaf's bytes."""
    return encode(
        {
            "seq": seq,
            "ts": moment(event.at),
            "reason": event.reason,
            "endpoint": event.endpoint,
            "credits": event.credits,
            "receipt_sha256": event.receipt_sha256,
        }
    )


def append(db: sqlite3.Connection, events: Sequence[Event], first: int) -> None:
    """Add leaves at the end, where `first` is, the nodes that they complete, and their part of the days' sums.

    A few statements, however many events: each hands the interpreter over once, and it may not come back soon.
    """
    known = _frontier(db, first)
    leaves: list[tuple[Any, ...]] = []
    nodes: list[tuple[Any, ...]] = []
    days: Counter[tuple[str, str, str]] = Counter()
    credits: Counter[tuple[str, str, str]] = Counter()
    for seq, event in enumerate(events, first):
        entry, day = entry_of(event, seq), datetime.fromtimestamp(event.at, UTC).date().isoformat()
        leaves.append((seq, day, entry, int(event.at * 1000)))
        for level, index, value in tlog.grown(lambda *place: known[place], seq, entry):
            known[level, index] = value
            nodes.append((level, index, value))
        days[day, event.reason, event.endpoint] += 1
        credits[day, event.reason, event.endpoint] += event.credits
    insert(db, "INSERT INTO no_charge VALUES", leaves)
    insert(db, "INSERT INTO log_node VALUES", nodes)
    adding = "ON CONFLICT DO UPDATE SET calls=calls+excluded.calls, credits=credits+excluded.credits"
    insert(db, "INSERT INTO no_charge_day VALUES", [(*key, days[key], credits[key]) for key in days], adding)


def _frontier(db: sqlite3.Connection, size: int) -> dict[tuple[int, int], bytes]:
    places = msgspec.json.encode(tlog.frontier(size)).decode()
    sql = """SELECT level, idx, hash FROM json_each(?) JOIN log_node
      ON level=json_extract(value, '$[0]') AND idx=json_extract(value, '$[1]')"""
    return {(level, index): bytes(value) for level, index, value in db.execute(sql, (places,))}


def _node(db: sqlite3.Connection) -> tlog.Node:
    def node(level: int, index: int) -> bytes:
        row = db.execute("SELECT hash FROM log_node WHERE level=? AND idx=?", (level, index)).fetchone()
        return bytes(row[0])

    return node


class NoChargeLog:
    """The log in a database. `origin` is its name: its public address without the scheme."""

    def __init__(self, file: Durable, keys: KeyRing, *, origin: str, clock: Clock) -> None:
        self._file, self._keys, self.origin, self._clock = file, keys, origin, clock
        self._minute = 0
        self._heard: set[tuple[str, str, str]] = set()

    @property
    def verifier(self) -> str:
        """The public key, as auditors write it down."""
        return tlog.verifier(self.origin, self._keys.current().public)

    def first_this_minute(self, reason: str, owner: str, endpoint: str) -> bool:
        """Whether this is worth an event of its own: an outage must not fill the log with one caller's retries."""
        minute = int(self._clock.time() // MINUTE_S)
        if minute != self._minute:
            self._minute = minute
            self._heard.clear()
        key = (reason, owner, endpoint)
        if key in self._heard or len(self._heard) >= REMEMBERED:
            return False
        self._heard.add(key)
        return True

    async def record(self, event: Event) -> None:
        """Add an event that has no receipt."""
        await self._file.alone(lambda db: append(db, [event], size_of(db)))

    async def checkpoint(self) -> Signed:
        """The signed state of the log, at most a minute behind.

        Raises:
            LogForked: the log was tampered with.
        """
        kept, size = await self._file.read(lambda db: (_kept(db), size_of(db)))
        if kept is not None and not self._due(kept, size):
            return kept
        return await self._file.alone(self._sign)

    def _due(self, kept: Signed, size: int) -> bool:
        key = self._keys.current()
        ours = tlog.checkpoint(self.origin, kept.size, kept.root, key) == kept.note
        return not ours or (size != kept.size and not 0 <= self._clock.time() - kept.at / 1000 < CHECKPOINT_S)

    def _sign(self, db: sqlite3.Connection) -> Signed:
        node, size, kept = _node(db), size_of(db), _kept(db)
        if kept is not None and (size < kept.size or tlog.root(node, kept.size) != kept.root):
            log.critical("the log of uncharged calls does not lead on from its last checkpoint")
            raise LogForked(f"the log has {size} leaves and is not what was signed at {kept.size}")
        root = tlog.root(node, size)
        note = tlog.checkpoint(self.origin, size, root, self._keys.current())
        signed = Signed(size, root, note, int(self._clock.time() * 1000))
        db.execute("INSERT OR REPLACE INTO log_checkpoint VALUES(1,?,?,?,?)", signed)
        return signed

    async def tile(self, tile: tlog.Tile) -> bytes | None:
        """The content of a tile, or None where the log has not got that far."""

        def read(db: sqlite3.Connection) -> bytes | None:
            if not tile.within(size_of(db)):
                return None
            return _entries(db, tile) if tile.level is None else tlog.hashes(_node(db), tile)

        return await self._file.read(read)

    async def inclusion(self, index: int, size: int) -> list[bytes] | None:
        """What proves that a leaf is in the log of that size; None when there is no such log or leaf."""
        return await self._proof(size, lambda node: tlog.inclusion(node, index, size))

    async def consistency(self, old: int, new: int) -> list[bytes] | None:
        """What proves that the log of one size is the beginning of that of another."""
        return await self._proof(new, lambda node: tlog.consistency(node, old, new))

    async def _proof(self, size: int, path: Callable[[tlog.Node], list[bytes]]) -> list[bytes] | None:
        def read(db: sqlite3.Connection) -> list[bytes] | None:
            try:
                return path(_node(db)) if size <= size_of(db) else None
            except IndexError:
                return None

        return await self._file.read(read)

    async def place(self, index: int) -> Mapping[str, Any] | None:
        """The leaf at an index."""

        def read(db: sqlite3.Connection) -> Any:
            return db.execute("SELECT entry FROM no_charge WHERE seq=?", (index,)).fetchone()

        row = await self._file.read(read) if index < 2**63 else None
        return msgspec.json.decode(row[0]) if row else None

    async def day(self, day: date) -> dict[str, Any]:
        """What was not charged on a day (UTC), with the last events and the state of the log."""
        signed = await self.checkpoint()
        named = day.isoformat()
        sums, entries = await self._file.read(lambda db: (_sums(db, named), _last(db, named)))
        return {
            "date": named,
            "count": sum(calls for _, _, calls, _ in sums),
            "credits_skipped": sum(credits for *_, credits in sums),
            "by_reason": _by(0, sums),
            "by_endpoint": _by(1, sums),
            "events": [msgspec.json.decode(entry) for entry in entries],
            "log": {"origin": self.origin, "size": signed.size, "root": base64.b64encode(signed.root).decode()},
        }

    async def days(self) -> list[tuple[str, int]]:
        """The days on which anything was not charged, the last one first, and how many calls."""
        sql = "SELECT day, sum(calls) FROM no_charge_day GROUP BY day ORDER BY day DESC LIMIT 1000"
        return await self._file.read(lambda db: list(db.execute(sql)))


def _kept(db: sqlite3.Connection) -> Signed | None:
    row = db.execute("SELECT size, root, note, at FROM log_checkpoint").fetchone()
    return Signed(row[0], bytes(row[1]), row[2], row[3]) if row else None


def _entries(db: sqlite3.Connection, tile: tlog.Tile) -> bytes:
    first = tile.number * tlog.WIDTH
    rows = db.execute("SELECT entry FROM no_charge WHERE seq>=? AND seq<? ORDER BY seq", (first, first + tile.width))
    return tlog.bundle([bytes(entry) for (entry,) in rows])


def _sums(db: sqlite3.Connection, day: str) -> list[tuple[str, str, int, int]]:
    return db.execute("SELECT reason, endpoint, calls, credits FROM no_charge_day WHERE day=?", (day,)).fetchall()


def _last(db: sqlite3.Connection, day: str) -> list[bytes]:
    sql = "SELECT entry FROM no_charge WHERE day=? ORDER BY seq DESC LIMIT ?"
    return [bytes(entry) for (entry,) in db.execute(sql, (day, EVENTS))]


def _by(column: int, sums: Sequence[tuple[str, str, int, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in sums:
        name = str(row[column])
        found[name] = found.get(name, 0) + row[2]
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))
