"""Sends requests through httpx's own pool of connections, for HTTP/2 and for everything that goes through a proxy.

httpx notices only with the next request that a host or a proxy has ended an idle HTTP/2
connection, and a pool can hold several of those, so that the next attempt may fail too. All of
them are therefore left behind together: a new pool takes over, and the old one is closed after
its last response.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from toolserver.core.http_library import httpx

_OPENING = "connection.connect"  # the events that httpx reports when it opens a connection
_BROKEN = (httpx.NetworkError, httpx.ProtocolError)


class HttpxPool(httpx.AsyncBaseTransport):
    """The connections of a pool that `make_pool` returns. A GET on a kept connection that fails is sent once more."""

    def __init__(self, make_pool: Callable[[], httpx.AsyncBaseTransport]) -> None:
        self._make_pool = make_pool
        self._current = _LeavablePool(make_pool())

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return the response, whose body is still to be read. Raise httpx.TransportError."""
        pool = self._current
        opened = False

        async def note(event: str, info: Any) -> None:
            nonlocal opened
            opened = opened or event.startswith(_OPENING)

        request.extensions = {**request.extensions, "trace": note}
        try:
            return await pool.send(request)
        except _BROKEN:
            if opened:
                raise
            if pool is self._current:
                self._current = _LeavablePool(self._make_pool())
                await pool.retire()
            if request.method != "GET":
                raise
        return await self._current.send(request)

    async def aclose(self) -> None:
        await self._current.transport.aclose()


class _LeavablePool:
    """A pool, and how many of its responses are not yet read."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self.transport = transport
        self._users, self._is_retired = 0, False

    async def send(self, request: httpx.Request) -> httpx.Response:
        self._users += 1
        try:
            response = await self.transport.handle_async_request(request)
        except BaseException:
            await self._release()
            raise
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _PooledBody(response.stream, self._release)
        return response

    async def retire(self) -> None:
        """Close the pool, now or when its last response was read."""
        self._is_retired = True
        if not self._users:
            await self.transport.aclose()

    async def _release(self) -> None:
        self._users -= 1
        if self._is_retired and not self._users:
            await self.transport.aclose()


class _PooledBody(httpx.AsyncByteStream):
    """The body of a response as it arrives. Closing it releases the pool."""

    def __init__(self, body: httpx.AsyncByteStream, release: Callable[[], Awaitable[None]]) -> None:
        self._body, self._release, self._is_open = body, release, True

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._body:
            yield piece

    async def aclose(self) -> None:
        if self._is_open:
            self._is_open = False
            try:
                await self._body.aclose()
            finally:
                await self._release()
