"""Bounds the time of an exchange and the memory of its body, which is large for some sources.

Few large bodies are held at once, and one at a time is parsed, off the event loop. A source's
time stops while the service itself makes it wait.

A source may send up to its `max_bytes`, in some cases 24 MiB. A hundred sources at once, each
with the objects that its parser makes from its body, would take gigabytes. Therefore a
growing body waits for a place: see STEPS.
"""

import math
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar

import anyio
import anyio.to_thread

from toolserver.upstream.source import MIB, SourceDown, SourceLimited

R = TypeVar("R")

STEPS = ((256 * 1024, 8), (2 * MIB, 2))
"""The size from which a body needs a place, and the number of places. A very large body takes one of each."""

PARSED_APART_FROM, MOST_PARSED = 64 * 1024, 1
PATIENCE_S = 20.0


class SendingTime:
    """A deadline that carries over from one attempt to the next and stops during pauses."""

    def __init__(self, seconds: float) -> None:
        self._seconds = self.left_s = seconds
        self._scope: anyio.CancelScope | None = None

    @property
    def is_mostly_over(self) -> bool:
        """True if more than half of the time has passed, which is too much for another attempt."""
        return self.left_s < self._seconds / 2

    @contextmanager
    def spend(self) -> Iterator[None]:
        """Let the time run while the block runs. Raise SourceDown (`timeout`) when it has run out."""
        try:
            with anyio.fail_after(self.left_s) as self._scope:
                try:
                    yield
                finally:
                    self.left_s = max(0.0, self._scope.deadline - anyio.current_time())
        except TimeoutError:
            raise SourceDown(f"no answer within {self._seconds:g} s", word="timeout") from None
        finally:
            self._scope = None

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Stop the time while the block waits for something that does not depend on the source."""
        scope = self._scope
        if scope is None:
            yield
            return
        left_s, scope.deadline = scope.deadline - anyio.current_time(), math.inf
        try:
            yield
        finally:
            scope.deadline = anyio.current_time() + left_s


class TooManyBodies(SourceLimited):
    """Other large bodies occupied the places for too long. This says nothing about this source."""

    word = "budget"
    was_sent = False


class LargeBodies:
    """The places for large bodies of all sources."""

    def __init__(self) -> None:
        self._places = tuple((size, anyio.CapacityLimiter(places)) for size, places in STEPS)
        self._parsed = anyio.CapacityLimiter(MOST_PARSED)

    @asynccontextmanager
    async def reserve(self, time: SendingTime) -> AsyncIterator["BodyPlace"]:
        """Yield a place for one body, which is released when the block ends."""
        place = BodyPlace(self._places, time)
        try:
            yield place
        finally:
            place.leave()

    async def parse(self, size: int, parse: Callable[[], R]) -> R:
        """Run the parser of a body of `size` bytes: if it is large, in a worker thread and one at a time."""
        if size < PARSED_APART_FROM:
            return parse()
        async with _hold(self._parsed):
            return await anyio.to_thread.run_sync(parse)


class BodyPlace:
    """Admits the first bytes of a body, and more when there is a place for a larger body. `time` stops meanwhile."""

    def __init__(self, steps: tuple[tuple[int, anyio.CapacityLimiter], ...], time: SendingTime) -> None:
        self._steps, self.time = list(steps), time
        self._held: list[anyio.CapacityLimiter] = []

    async def admit(self, pieces: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
        """Yield the pieces, waiting for a place at each step of the body's size. Raise TooManyBodies."""
        size = 0
        async for piece in pieces:
            size += len(piece)
            while self._steps and size > self._steps[0][0]:
                await self._take(self._steps.pop(0)[1])
            yield piece

    async def _take(self, places: anyio.CapacityLimiter) -> None:
        with self.time.pause():
            await _acquire(places, self)
        self._held.append(places)

    def leave(self) -> None:
        """Release the places that were taken."""
        while self._held:
            self._held.pop().release_on_behalf_of(self)


@asynccontextmanager
async def _hold(places: anyio.CapacityLimiter) -> AsyncIterator[None]:
    await _acquire(places, holder := object())
    try:
        yield
    finally:
        places.release_on_behalf_of(holder)


async def _acquire(places: anyio.CapacityLimiter, holder: object) -> None:
    try:
        with anyio.fail_after(PATIENCE_S):
            await places.acquire_on_behalf_of(holder)
    except TimeoutError:
        raise TooManyBodies("other large answers are being read") from None
