"""The same call twice is one call: answers kept by the caller's own key."""

import hashlib
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import anyio
from cachetools import TTLCache

from toolserver import ids
from toolserver.clock import Clock
from toolserver.errors import IdempotencyConflict

T = TypeVar("T")

KEEP_S = 24 * 3600.0
ENTRIES = 10_000

Work = Callable[[str], Awaitable[T]]


def fingerprint(text: str) -> str:
    """SHA-256, hex: names a token or a request without holding it."""
    return hashlib.sha256(text.encode()).hexdigest()


class Idempotency(Protocol):
    """Runs work once per (scope, key)."""

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
        """The result of the first call with this key. A concurrent twin waits; a failure is not kept.

        `work` is given the call_id under which it may charge. When a process dies between charging and keeping the
        result, the next call with this key does the work again under the same call_id, and pays nothing more.

        Raises:
            IdempotencyConflict: the key was used for another request.
        """
        ...


@dataclass(slots=True)
class Running:
    """Work that is being done, or was."""

    request: str
    done: anyio.Event = field(default_factory=anyio.Event)
    result: Any = None
    ok: bool = False


Known = MutableMapping[tuple[str, str], Running]


async def once_here(
    known: Known, name: tuple[str, str], request: str, work: Callable[[], Awaitable[T]], *, keep: bool
) -> T:
    """Work done once for all in this process who ask for it at the same time, or ever, if it is to be kept."""
    while (running := known.get(name)) is not None:
        same(running.request, request)
        await running.done.wait()
        if running.ok:
            return running.result  # type: ignore[no-any-return]
    running = known[name] = Running(request)
    try:
        result = running.result = await work()
        running.ok = True
        return result
    finally:
        if not (running.ok and keep):
            known.pop(name, None)
        running.done.set()


def same(known: str, request: str) -> None:
    """Raises IdempotencyConflict when a key is used for another request."""
    if known != request:
        raise IdempotencyConflict("This Idempotency-Key was used with other arguments.")


class MemoryIdempotency:
    """Kept in memory for a day, bounded."""

    def __init__(self, clock: Clock) -> None:
        self._known: TTLCache[tuple[str, str], Running] = TTLCache(ENTRIES, KEEP_S, timer=clock.monotonic)

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
        return await once_here(self._known, (scope, key), request, lambda: work(ids.call_id()), keep=True)
