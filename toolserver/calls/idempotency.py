"""Makes repeated calls one call: the result is kept for a day under a key that the caller chooses."""

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
from toolserver.sql.errors import StorageFailed

log = logging.getLogger(__name__)

T = TypeVar("T")

Work = Callable[[str], Awaitable[T]]
Unpack = Callable[[str, bytes], T]
AtOnce = Callable[[str, KeyClaim], Awaitable[T | None]]


def fingerprint(text: str) -> str:
    """Return the SHA-256 in hex, which names a token or a request without revealing it."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(slots=True)
class _RunningWork:
    """Work in progress in this process, for calls that wait for the same result. The first waiter creates `done`."""

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

    The call_id is stored before the work begins, and the result when it is done. A key without a result belongs to work
    that died with its process. That work is done again under the same call_id, so that the ledger charges for it once.

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
        """Return the result of the first call with this key in this scope. A simultaneous call waits for it.

        `work` gets the call_id under which it may charge. `pack` turns its result into bytes; `unpack` restores the
        result from the call_id and those bytes. If the work raises, nothing is kept, and the next call is a new one.
        `at_once` also gets the key. It does the work and stores the result in one step, raises KeyTaken, or returns
        None if that is not possible.

        Raises:
            IdempotencyConflict: the key was used for another request.
            StorageFailed: the store cannot be written, so the work was not started.
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
        """Forget results that are older than a day, and return their number."""
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
        """Do the work of a call that is stored without a result, and store the result.

        If another instance did the same work and stored its result first, that result counts for both.
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
    """Wait for a write, and log its failure: a charged call is answered even if its answer cannot be kept."""
    try:
        return await write
    except StorageFailed:
        log.exception("an idempotent answer could not be kept")
        return None


def _check_same_request(known: str, request: str) -> None:
    """Raise IdempotencyConflict if a key is used for another request."""
    if known != request:
        raise IdempotencyConflict("This Idempotency-Key was already used with other arguments.")
