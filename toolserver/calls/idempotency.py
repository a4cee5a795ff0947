"""The same call twice is one call: the result is kept for a day under a key of the caller's own choice."""

import hashlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import anyio

from toolserver.calls.idempotency_store import IdempotencyStore, KeyName
from toolserver.core import ids
from toolserver.errors import IdempotencyConflict
from toolserver.storage.errors import StorageFailed

log = logging.getLogger(__name__)

T = TypeVar("T")

Work = Callable[[str], Awaitable[T]]


def fingerprint(text: str) -> str:
    """SHA-256 in hex: it names a token or a request without holding it."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(slots=True)
class _RunningWork:
    """Work that this process is doing, for the calls that wait for the same result."""

    request: str
    done: anyio.Event = field(default_factory=anyio.Event)
    result: Any = None
    succeeded: bool = False


class Idempotency:
    """Does work once for each key.

    Before the work begins its call_id is stored, and when it is done, its result. A key that is stored without a result
    belongs to work that died with its process: that work is done again under the same call_id, so that what the ledger
    had charged for it stays charged once.
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
        pack: Callable[[T], bytes],
        unpack: Callable[[bytes], T],
    ) -> T:
        """The result of the first call with this key of this scope. A call at the same time waits for it.

        `work` is given the call_id under which it may charge. `pack` and `unpack` turn its result into bytes and back.
        The result of work that raises is not kept: the next call is a new one.

        Raises:
            IdempotencyConflict: the key was used for another request.
            StorageFailed: the store cannot be written, so the work was not begun.
        """
        name = (scope, key)
        while (running := self._running.get(name)) is not None:
            _check_same_request(running.request, request)
            await running.done.wait()
            if running.succeeded:
                return running.result  # type: ignore[no-any-return]
        running = self._running[name] = _RunningWork(request)
        try:
            result = await self._find_or_do(name, request, work, pack, unpack)
            running.result, running.succeeded = result, True
            return result
        finally:
            del self._running[name]
            running.done.set()

    async def sweep(self) -> int:
        """Forget results that are older than a day. Returns how many."""
        return await self._store.sweep()

    async def _find_or_do(
        self, name: KeyName, request: str, work: Work[T], pack: Callable[[T], bytes], unpack: Callable[[bytes], T]
    ) -> T:
        known = await self._store.begin(name, request, ids.call_id())
        _check_same_request(known.request, request)
        if known.result is not None:
            return unpack(known.result)
        try:
            result = await work(known.call_id)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await _log_failure(self._store.drop(name, known.call_id))
            raise
        await _log_failure(self._store.keep(name, pack(result)))
        return result


async def _log_failure(write: Awaitable[None]) -> None:
    """Wait for a write. A call that was charged is answered even when its answer cannot be kept."""
    try:
        await write
    except StorageFailed:
        log.exception("an idempotent answer could not be kept")


def _check_same_request(known: str, request: str) -> None:
    """Raises IdempotencyConflict when a key is used for another request."""
    if known != request:
        raise IdempotencyConflict("This Idempotency-Key was used with other arguments.")
