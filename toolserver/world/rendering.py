"""Encode replies for the wire in worker threads, and cache them for as long as they cannot change."""

import gzip
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

import anyio
from anyio import to_thread

from toolserver.core.single_flight import SingleFlight
from toolserver.world.model import Ask, Handler, Reply, World

MOST_BYTES = 64 * 1024 * 1024
MOST_PAGES = 1_024
THREADS = 2
COMPRESSED_FROM = 200
NOT_SEEN_BY_PROVIDERS = {
    "accept-encoding",
    "connection",
    "content-length",
    "host",
    "if-modified-since",
    "if-none-match",
    "traceparent",
}


@dataclass(frozen=True, slots=True)
class RenderedReply:
    """A reply with its validator and its compressed form."""

    reply: Reply
    etag: str
    packed: bytes | None

    @classmethod
    def of(cls, reply: Reply) -> "RenderedReply":
        etag = f'"{hashlib.sha256(reply.body).hexdigest()[:32]}"'
        packed = gzip.compress(reply.body, 1, mtime=0) if len(reply.body) >= COMPRESSED_FROM else None
        return cls(reply, etag, packed)

    @property
    def size(self) -> int:
        return len(self.reply.body) + len(self.packed or b"")


class Renderer:
    """Calls each provider once per distinct request, in a worker thread: some bodies take a second to make."""

    def __init__(self, *, most_bytes: int = MOST_BYTES, most_pages: int = MOST_PAGES) -> None:
        self._most_bytes, self._most_pages = most_bytes, most_pages
        self._kept: OrderedDict[object, tuple[RenderedReply, World]] = OrderedDict()
        self._bytes = 0
        self._single_flight = SingleFlight()
        self._threads = anyio.CapacityLimiter(THREADS)

    async def page(self, handler: Handler, world: World, ask: Ask) -> RenderedReply:
        """Return a provider's reply to a request in a world. A repeated request costs little."""
        headers = tuple(sorted((k, v) for k, v in ask.headers.items() if k not in NOT_SEEN_BY_PROVIDERS))
        request = (ask.method, ask.host, ask.path, ask.query, ask.body, headers)
        key = (handler, world.seed, world.now, id(world.edits), request)  # the cached world keeps that id in use
        if (cached := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return cached[0]

        async def render() -> RenderedReply:
            page = await self.run(lambda: RenderedReply.of(handler(world, ask)))
            self._keep(key, page, world)
            return page

        return await self._single_flight.do(key, render)

    async def changed(self, page: RenderedReply, change: Callable[[Reply], Reply]) -> RenderedReply:
        """Return the page after a fault changed it. The result is not cached."""
        return await self.run(lambda: RenderedReply.of(change(page.reply)))

    async def run(self, make: Callable[[], RenderedReply]) -> RenderedReply:
        return await to_thread.run_sync(make, limiter=self._threads)

    def _keep(self, key: object, page: RenderedReply, world: World) -> None:
        self._kept[key] = (page, world)
        self._bytes += page.size
        while len(self._kept) > self._most_pages or (self._bytes > self._most_bytes and len(self._kept) > 1):
            _, (old, _) = self._kept.popitem(last=False)
            self._bytes -= old.size
