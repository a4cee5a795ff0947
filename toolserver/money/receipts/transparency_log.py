"""Publishes the calls that were not charged: a log that cannot be rewritten without notice, and its sums by day.

Calls are booked as they happen. One task, under a lease, appends each hour that has ended,
and signs the log only if it extends the state that was signed before (`log_state`). No call
waits for the log. The `SqlReceiptStore` stores it.
"""

import base64
import logging
import secrets
from collections.abc import Mapping
from datetime import date
from typing import Any

import anyio
import anyio.to_thread
import msgspec

from toolserver.clock import Clock
from toolserver.core.models import iso_ms
from toolserver.money.receipts import merkle
from toolserver.money.receipts.issue import RecordUncharged
from toolserver.money.receipts.keys import KeyRing
from toolserver.money.receipts.log import (
    CLOSE_AFTER_S,
    AppendHour,
    BucketNamer,
    LogForked,
    LogLease,
    LogMark,
    SignCheckpoint,
    SignedCheckpoint,
    UnchargedCall,
    closes_at,
    describe_day,
    hour_at,
    prove_receipt,
)
from toolserver.money.receipts.sql_store import DayCall, SqlReceiptStore
from toolserver.sql.high_water import HighWater, MarksBroken

MARK = "log"  # among the marks outside the database: the last state that was signed
log = logging.getLogger(__name__)

EVENTS = 200  # shown for one day
DAYS = 1000  # listed at most
CLOSE_EVERY_S = 30.0  # how often the task looks for an hour that has ended
LEASE_S = 120.0  # how long after its last step the process that appends is not replaced by another
MINUTE_S = 60.0
REMEMBERED = 10_000  # tokens and endpoints distinguished within a minute; beyond that, a minute has no more events


class TransparencyLog:
    """The log of one service. `origin` is its name: its public address without the scheme."""

    def __init__(self, store: SqlReceiptStore, keys: KeyRing, *, origin: str, clock: Clock, marks: HighWater) -> None:
        self._store, self._keys, self.origin, self._clock = store, keys, origin, clock
        self._marks = marks
        self._kept = read_mark(marks)
        self._forked: str | None = None
        self._closing = anyio.Lock()
        self._holder = secrets.token_hex(8)
        self.buckets = BucketNamer(keys)
        self._minute = 0
        self._heard: set[tuple[str, str, str]] = set()

    @property
    def verifier(self) -> str:
        """The public key in the form that auditors store."""
        return merkle.verifier(self.origin, self._keys.current().public)

    def first_this_minute(self, reason: str, owner: str, endpoint: str) -> bool:
        """Return True the first time within a minute, so that an outage does not fill the log
        with one caller's retries.
        """
        minute = int(self._clock.time() // MINUTE_S)
        if minute != self._minute:
            self._minute = minute
            self._heard.clear()
        key = (reason, owner, endpoint)
        if key in self._heard or len(self._heard) >= REMEMBERED:
            return False
        self._heard.add(key)
        return True

    async def record(self, call: UnchargedCall) -> None:
        """Book a call that has no receipt."""
        await self._store.record(RecordUncharged(self.buckets, call))

    async def close_hours(self) -> int:
        """Append the hours that have ended, each in one transaction, sign the log, and return the number of hours.

        Nothing is appended while another process holds the lease. Raises LogForked if the log
        was tampered with.
        """
        async with self._closing:
            return await self._close_hours()

    async def _close_hours(self) -> int:
        appended = 0
        for hour in await self._store.list_hours(hour_at(self._clock.time() - CLOSE_AFTER_S)):
            calls = await self._store.list_booked(hour)
            if not await self._store.append(AppendHour.of(hour, calls, self._lease())):
                return appended
            appended += 1
        head = await self._store.head()
        if head.last is not None and head.last.size == head.size:
            return appended
        if await self._store.take_lease(self._lease()):
            await self._sign()
        return appended

    def _lease(self) -> LogLease:
        now = int(self._clock.time() * 1000)
        return LogLease(self._holder, now, now + int(LEASE_S * 1000))

    async def checkpoint(self) -> SignedCheckpoint:
        """Return the signed state of the log. It is signed here only if the stored checkpoint
        is missing, outdated by the mark outside the database, or not under this log's name and
        key.

        Raises LogForked if the log was tampered with.
        """
        if self._forked is not None:
            raise LogForked(self._forked)
        head, marked = await self._store.head(), self._kept
        if head.last is None or not self._is_ours(head.last) or head.last.size > head.size:
            return await self._sign()
        behind = marked is not None and head.last.size < marked.size
        return await self._sign() if behind else head.last

    def _is_ours(self, last: SignedCheckpoint) -> bool:
        return merkle.checkpoint(self.origin, last.size, last.root, self._keys.current()) == last.note

    async def _sign(self) -> SignedCheckpoint:
        now = int(self._clock.time() * 1000)
        try:
            signed = await self._store.sign_checkpoint(
                SignCheckpoint(self.origin, self._keys.current(), now, self._kept)
            )
        except LogForked as forked:
            self._forked = str(forked)
            log.critical("the log of uncharged calls does not extend its last checkpoint: %s", forked)
            raise
        self._forked = None
        await self._keep(signed)
        return signed

    async def _keep(self, signed: SignedCheckpoint) -> None:
        """Record the state outside the database before anybody can see it."""
        if self._kept is None or signed.size > self._kept.size:
            state = LogMark(signed.size, signed.root)
            await anyio.to_thread.run_sync(self._marks.change, MARK, lambda before: _write_mark(before, state))
            self._kept = LogMark(signed.size, signed.root)

    async def tile(self, tile: merkle.Tile) -> bytes | None:
        """Return the content of a tile, or None if the log has not grown that far."""
        return await self._store.tile(tile)

    async def inclusion(self, index: int, size: int) -> list[bytes] | None:
        """Return the proof that a leaf is in the log of `size` leaves, or None if there is no such log or leaf."""
        return await self._store.inclusion(index, size)

    async def consistency(self, old: int, new: int) -> list[bytes] | None:
        """Return the proof that the log of size `old` is the beginning of that of size `new`,
        or None if there is none.
        """
        return await self._store.consistency(old, new)

    async def leaf(self, index: int) -> Mapping[str, Any] | None:
        """Return the leaf at an index, decoded, or None if there is none."""
        entry = await self._store.leaf(index)
        return None if entry is None else msgspec.json.decode(entry)

    async def prove_bucket(self, hour: int, key: bytes, receipt: bytes | None) -> dict[str, Any] | None:
        """Return the proof that the signed log has a bucket and, if `receipt` (the hash of its
        core) is given, that the bucket has that receipt. Return None if there is no proof,
        perhaps only because the hour is not in the log yet: see `due_in`.
        """
        bucket = await self._store.find_bucket(hour, key)
        if bucket.seq is None:
            return None
        proof = await self.prove_leaf(bucket.seq)
        if proof is None or receipt is None:
            return proof
        if bucket.receipts is None:
            return None
        path = prove_receipt(bucket.receipts, receipt)
        return None if path is None else {**proof, "receipt": path.show()}

    async def prove_leaf(self, index: int) -> dict[str, Any] | None:
        """Return the proof that the signed log has a leaf, or None if it does not have it."""
        signed = await self.checkpoint()
        path, leaf = await self.inclusion(index, signed.size), await self.leaf(index)
        if path is None or leaf is None:
            return None
        return {"leaf": leaf, "size": signed.size, "path": [step.hex() for step in path], "checkpoint": signed.note}

    async def has_receipt(self, hour: int, key: bytes, receipt: bytes) -> bool | None:
        """Return True if a bucket of the log has a receipt, False if the bucket does not, and
        None if that cannot be said: while its hour is not in the log, or once its booked calls
        are only in an archive.
        """
        bucket = await self._store.find_bucket(hour, key)
        if bucket.receipts is None:
            return None
        return False if receipt not in bucket.receipts else None if bucket.seq is None else True

    async def due_in(self, hour: int) -> float | None:
        """Return the seconds within which the signed log will have an hour; None if it has it or nothing was booked.

        Whether it has a booked call is checked only after the hour has been closed.
        """
        head, left = await self._store.head(), closes_at(hour) - self._clock.time()
        if hour <= head.closed:
            signed = head.last is not None and head.last.size == head.size
            return None if signed else CLOSE_EVERY_S
        booked = left > 0 or hour in await self._store.list_hours(hour + 1)
        return max(left, 0) + CLOSE_EVERY_S if booked else None

    async def day(self, day: date) -> dict[str, Any]:
        """Return the uncharged calls of a day (UTC): sums, last calls, and the state of the log. Raises LogForked."""
        signed = await self.checkpoint()
        sums, calls, waiting = await self._store.day(day.isoformat(), EVENTS)
        root = base64.b64encode(signed.root).decode()
        state = {"origin": self.origin, "size": signed.size, "root": root, "waiting": waiting}
        return {**describe_day(day.isoformat(), sums, [_show_call(call) for call in calls]), "log": state}

    async def days(self) -> list[tuple[str, int]]:
        """Return the days with uncharged calls, the newest first, and the number of calls on each."""
        return await self._store.days(DAYS)


def _show_call(call: DayCall) -> dict[str, Any]:
    receipt = None if call.receipt is None else call.receipt.hex()
    shown = {"seq": call.seq, "ts": iso_ms(call.at / 1000), "reason": call.reason, "endpoint": call.endpoint}
    return {**shown, "credits": call.credits, "receipt_sha256": receipt}


def read_mark(marks: HighWater) -> LogMark | None:
    """Return the last signed state that is recorded outside the database, or None. Raises MarksBroken."""
    mark = marks.read(MARK)
    try:
        return None if mark is None else LogMark(int(mark["size"]), bytes.fromhex(mark["root"]))
    except (TypeError, KeyError, ValueError) as error:
        raise MarksBroken(f"the state of the log that is kept outside the database cannot be read: {error}") from None


def name_log(origin: str, marks: HighWater) -> str:
    """Return the name of the log in use: its address, followed by a number from the service's second log on."""
    part = (marks.read(MARK) or {}).get("part", 1)
    return origin if part == 1 else f"{origin}/{part}"


def begin_log(marks: HighWater, state: LogMark) -> int:
    """Begin another log with the existing leaves, and return its number. The previous log is never signed again."""
    mark = marks.change(MARK, lambda before: {**_write_mark(before, state), "part": (before or {}).get("part", 1) + 1})
    return int(mark["part"])


def _write_mark(before: dict[str, Any] | None, state: LogMark) -> dict[str, Any]:
    return {**(before or {}), "size": state.size, "root": state.root.hex()}
