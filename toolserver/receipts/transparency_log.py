"""The public account of calls that were not charged: a log that nobody can rewrite, and its sums by day.

The state of the log is signed at most once a minute, and only if it extends the state that was signed before
(`log_state`). What is stored, and where, is up to the `ReceiptStore`.
"""

import base64
import logging
from collections.abc import Mapping
from datetime import date
from typing import Any

import anyio.to_thread
import msgspec

from toolserver.clock import Clock
from toolserver.receipts import merkle
from toolserver.receipts.issue import RecordUncharged
from toolserver.receipts.keys import KeyRing
from toolserver.receipts.log_state import (
    LogForked,
    LogMark,
    SignCheckpoint,
    SignedCheckpoint,
    UnchargedCall,
    describe_day,
)
from toolserver.receipts.store import LogHead, ReceiptStore
from toolserver.storage.high_water import HighWater, MarksBroken

MARK = "log"  # among the marks outside the database: the last state that was signed
log = logging.getLogger(__name__)

EVENTS = 200  # shown for one day
DAYS = 1000  # listed at most
CHECKPOINT_S = 60.0
MINUTE_S = 60.0
REMEMBERED = 10_000  # tokens and endpoints distinguished within a minute; beyond that, a minute has no more events


class TransparencyLog:
    """The log of one service. `origin` is its name: its public address without the scheme."""

    def __init__(self, store: ReceiptStore, keys: KeyRing, *, origin: str, clock: Clock, marks: HighWater) -> None:
        self._store, self._keys, self.origin, self._clock = store, keys, origin, clock
        self._marks = marks
        self._kept = read_mark(marks)
        self._minute = 0
        self._heard: set[tuple[str, str, str]] = set()

    @property
    def verifier(self) -> str:
        """The public key in the form in which auditors keep it."""
        return merkle.verifier(self.origin, self._keys.current().public)

    def first_this_minute(self, reason: str, owner: str, endpoint: str) -> bool:
        """Whether this deserves an event of its own: an outage must not fill the log with one caller's retries."""
        minute = int(self._clock.time() // MINUTE_S)
        if minute != self._minute:
            self._minute = minute
            self._heard.clear()
        key = (reason, owner, endpoint)
        if key in self._heard or len(self._heard) >= REMEMBERED:
            return False
        self._heard.add(key)
        return True

    async def record(self, event: UnchargedCall) -> None:
        """Add an event that has no receipt."""
        await self._store.record(RecordUncharged(event))

    async def checkpoint(self) -> SignedCheckpoint:
        """The signed state of the log, at most a minute old. Raises LogForked: the log was tampered with."""
        head, kept = await self._store.head(), self._kept
        behind = head.last is None or (kept is not None and head.last.size < kept.size)
        if head.last is not None and not behind and not self._is_due(head.last, head):
            return head.last
        signing = SignCheckpoint(self.origin, self._keys.current(), int(self._clock.time() * 1000), kept)
        try:
            signed = await self._store.sign_checkpoint(signing)
        except LogForked as forked:
            log.critical("the log of uncharged calls does not extend its last checkpoint: %s", forked)
            raise
        await self._keep(signed)
        return signed

    async def _keep(self, signed: SignedCheckpoint) -> None:
        """Write the state down outside the database before anybody is shown it."""
        if self._kept is None or signed.size > self._kept.size:
            state = LogMark(signed.size, signed.root)
            await anyio.to_thread.run_sync(self._marks.change, MARK, lambda before: _write_mark(before, state))
            self._kept = LogMark(signed.size, signed.root)

    def _is_due(self, last: SignedCheckpoint, head: LogHead) -> bool:
        key = self._keys.current()
        ours = merkle.checkpoint(self.origin, last.size, last.root, key) == last.note
        return not ours or (head.size != last.size and not 0 <= self._clock.time() - last.at / 1000 < CHECKPOINT_S)

    async def tile(self, tile: merkle.Tile) -> bytes | None:
        """The content of a tile; None when the log has not grown that far."""
        return await self._store.tile(tile)

    async def inclusion(self, index: int, size: int) -> list[bytes] | None:
        """The proof that a leaf is in the log of that size; None when there is no such log or leaf."""
        return await self._store.inclusion(index, size)

    async def consistency(self, old: int, new: int) -> list[bytes] | None:
        """The proof that the log of size `old` is the beginning of that of size `new`; None when there is none."""
        return await self._store.consistency(old, new)

    async def leaf(self, index: int) -> Mapping[str, Any] | None:
        """The leaf at an index, decoded; None when there is none."""
        entry = await self._store.leaf(index)
        return None if entry is None else msgspec.json.decode(entry)

    async def day(self, day: date) -> dict[str, Any]:
        """What was not charged on a day (UTC), with the last events and the state of the log."""
        signed = await self.checkpoint()
        sums, entries = await self._store.day(day.isoformat(), EVENTS)
        state = {"origin": self.origin, "size": signed.size, "root": base64.b64encode(signed.root).decode()}
        return {**describe_day(day.isoformat(), sums, [msgspec.json.decode(each) for each in entries]), "log": state}

    async def days(self) -> list[tuple[str, int]]:
        """The days with uncharged calls, the newest first, and the number of calls on each."""
        return await self._store.days(DAYS)


def read_mark(marks: HighWater) -> LogMark | None:
    """The last state that was signed, as it is kept outside the database. Raises MarksBroken."""
    found = marks.read(MARK)
    try:
        return None if found is None else LogMark(int(found["size"]), bytes.fromhex(found["root"]))
    except (TypeError, KeyError, ValueError) as error:
        raise MarksBroken(f"the state of the log that is kept outside the database cannot be read: {error}") from None


def name_log(origin: str, marks: HighWater) -> str:
    """The name of the log in use: its address, and a number from the second log of the service on."""
    part = (marks.read(MARK) or {}).get("part", 1)
    return origin if part == 1 else f"{origin}/{part}"


def begin_log(marks: HighWater, state: LogMark) -> int:
    """Begin another log with the leaves there are, and return its number. The one before is never signed again."""
    made = marks.change(MARK, lambda before: {**_write_mark(before, state), "part": (before or {}).get("part", 1) + 1})
    return int(made["part"])


def _write_mark(before: dict[str, Any] | None, state: LogMark) -> dict[str, Any]:
    return {**(before or {}), "size": state.size, "root": state.root.hex()}
