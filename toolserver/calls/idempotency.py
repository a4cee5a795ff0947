"""The same call twice is one call: the result is kept for a day under a key of the caller's own choice."""

import hashlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio

from toolserver.calls.idempotency_store import IdempotencyStore
from toolserver.calls.kept_results import KeptResult, KeyClaim, KeyedCall, KeyName, KeyTaken
from toolserver.core import ids
from toolserver.errors import IdempotencyConflict
from toolserver.storage.errors import StorageFailed

log = logging.getLogger(__name__)

T = TypeVar("T")

Work = Callable[[str], Awaitable[T]]
Unpack = Callable[[str, bytes], T]
AtOnce = Callable[[str, KeyClaim], Awaitable[T | None]]


def fingerprint(text: str) -> str:
    """SHA-256 in hex: it names a token or a request without holding it."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(slots=True)
class _RunningWork:
    """Work that this process is doing, for the calls that wait for the same result: `done` is there once one waits."""

    request: str
    done: anyio.Event | None = None
    result: Any = None
    succeeded: bool = False

    async def wait(self) -> None:
        """Wait until the work has ended."""
        self.done = self.done or anyio.Event()
        await self.done.wait()


class Idempotency:
    """Does work once for each key.

    Before the work begins its call_id is stored, and when it is done, its result. A key that is stored without a result
    belongs to work that died with its process: that work is done again under the same call_id, so that what the ledger
    had charged for it stays charged once.

    Work that can be done at once stores its key and its result itself, in the transaction that charges for it.
    """

    def __init__(self, store: IdempotencyStore) -> None:
        self._store = store
        self._running: dict[KeyName, _RunningWork] = {}

    async def once(
        self,
        scope: str,
        key: str,
        request: str,
        work: Work[T],
        *,
        pack: Callable[[T], KeptResult],
        unpack: Unpack[T],
        at_once: AtOnce[T] | None = None,
    ) -> T:
        """The result of the first call with this key of this scope. A call at the same time waits for it.

        `work` is given the call_id under which it may charge. `pack` turns its result into bytes; `unpack` makes it of
        the call_id and those bytes again.
        The result of work that raises is not kept: the next call is a new one. `at_once` is given the key too, and does
        the work together with storing its result, or raises KeyTaken; it returns None where that is not possible.

        Raises:
            IdempotencyConflict: the key was used for another request.
            StorageFailed: the store cannot be written, so the work was not begun.
        """
        name = (scope, key)
        while (running := self._running.get(name)) is not None:
            _check_same_request(running.request, request)
            await running.wait()
            if running.succeeded:
                return running.result  # type: ignore[no-any-return]
        running = self._running[name] = _RunningWork(request)
        try:
            result = await self._find_or_do(KeyClaim(name, request), work, pack, unpack, at_once)
            running.result, running.succeeded = result, True
            return result
        finally:
            del self._running[name]
            if running.done is not None:
                running.done.set()

    async def sweep(self) -> int:
        """Forget results that are older than a day. Returns how many."""
        return await self._store.sweep()

    async def _find_or_do(
        self,
        claim: KeyClaim,
        work: Work[T],
        pack: Callable[[T], KeptResult],
        unpack: Unpack[T],
        at_once: AtOnce[T] | None,
    ) -> T:
        call_id, known = ids.call_id(), None
        if at_once is not None:
            try:
                if (done := await at_once(call_id, claim)) is not None:
                    return done
            except KeyTaken as taken:
                known = taken.known
        known = known or await self._store.begin(claim.name, claim.request, call_id)
        _check_same_request(known.request, claim.request)
        if known.result is not None:
            return unpack(known.call_id, known.result)
        return await self._do(claim.name, known, work, pack, unpack)

    async def _do(
        self, name: KeyName, known: KeyedCall, work: Work[T], pack: Callable[[T], KeptResult], unpack: Unpack[T]
    ) -> T:
        """Do the work of a call that is stored without its result, and store that.

        Where another instance did the same work and has stored its result first, that one is the result of both.
        """
        try:
            result = await work(known.call_id)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await _log_failure(self._store.drop(name, known.call_id))
            raise
        own = pack(result)
        kept = await _log_failure(self._store.keep(name, own))
        return result if kept is None or kept == own.whole else unpack(known.call_id, kept)


async def _log_failure(write: Awaitable[T]) -> T | None:
    """Wait for a write. A call that was charged is answered even when its answer cannot be kept."""
    try:
        return await write
    except StorageFailed:
        log.exception("an idempotent answer could not be kept")
        return None


def _check_same_request(known: str, request: str) -> None:
    """Raises IdempotencyConflict when a key is used for another request."""
    if known != request:
        raise IdempotencyConflict("This Idempotency-Key was used with other arguments.")
