"""One HTTP exchange, and as little as a request to a source needs: no cookies, redirects, or object for each header."""

from collections.abc import AsyncIterable, Awaitable, Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from toolserver.core.http_library import httpx

REDIRECTS = (301, 302, 303, 307, 308)


class UnreadResponse:
    """A response whose body is still to be read. `fields` are its headers as they came, with names in lower case.

    `pieces` are those of the body, not decoded. `release` is called when no more are read, even if some are left.
    """

    def __init__(
        self,
        status: int,
        fields: list[tuple[str, str]],
        pieces: AsyncIterable[bytes],
        release: Callable[[], Awaitable[None]],
    ) -> None:
        self.status, self.fields, self.pieces, self.release = status, fields, pieces, release

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """The headers by name. The values of one that came several times are separated by commas."""
        found: dict[str, str] = {}
        for name, value in self.fields:
            found[name] = f"{found[name]}, {value}" if name in found else value
        return found

    @property
    def is_redirect(self) -> bool:
        return self.status in REDIRECTS and "location" in self.headers


class Outlet(Protocol):
    """Sends requests to one host, or to any."""

    async def send(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> UnreadResponse:
        """Send a request and return the response. Raise httpx.TransportError."""
        ...

    async def aclose(self) -> None: ...


class ThroughHttpx:
    """Sends requests through a transport of httpx."""

    def __init__(self, transport: "httpx.AsyncBaseTransport") -> None:
        self.transport = transport

    async def send(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> UnreadResponse:
        """Send a request and return the response. Raise httpx.TransportError."""
        from toolserver.core.http_library import httpx

        sent = httpx.Request(method, url, headers=headers, content=content or None)
        response = await self.transport.handle_async_request(sent)
        if not isinstance(response.stream, httpx.AsyncByteStream):
            raise TypeError("not a response of an asynchronous transport")
        return UnreadResponse(response.status_code, response.headers.multi_items(), response.stream, response.aclose)

    async def aclose(self) -> None:
        await self.transport.aclose()
