"""Provides an HTTP client for one other service, with requests bounded in time and responses in size."""

from collections.abc import AsyncIterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import anyio

from toolserver.core.http_body import BodyTooLarge, BodyUnreadable, decode_pieces, read_body
from toolserver.errors import ToolserverError

if TYPE_CHECKING:
    import httpx

    Transport = httpx.AsyncBaseTransport
else:
    Transport = object  # httpx takes long to import, and most services never need this client

CONNECT_S = 1.0
MOST_BYTES = 65_536
CONNECTIONS = 64
KEPT_S = 4.0  # servers close idle connections after 5 s, and would lose a request that arrives just then


class Unreachable(ToolserverError):
    """No complete response arrived in time. The request may still have been carried out."""


class HttpAnswer(NamedTuple):
    """A response. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpClient:
    """Sends requests to one service. Redirects are not followed; environment proxies are used only if `by_proxy`."""

    def __init__(
        self,
        url: str,
        *,
        transport: Transport | None = None,
        most_bytes: int = MOST_BYTES,
        connect_s: float = CONNECT_S,
        by_proxy: bool = False,
    ) -> None:
        import httpx

        self._most_bytes, self._connect_s = most_bytes, connect_s
        self._client = httpx.AsyncClient(
            base_url=url,
            transport=transport,
            trust_env=by_proxy,
            follow_redirects=False,
            limits=httpx.Limits(max_connections=CONNECTIONS, keepalive_expiry=KEPT_S),
            headers={"accept": "application/json", "accept-encoding": "identity", "user-agent": "toolserver"},
        )

    async def ask(
        self, method: str, path: str, *, body: bytes | None = None, headers: Mapping[str, str], within_s: float
    ) -> HttpAnswer:
        """Send a request and return the whole response. Raise Unreachable."""
        import httpx

        timeout = httpx.Timeout(within_s, connect=min(self._connect_s, within_s))
        try:
            with anyio.fail_after(within_s):
                async with self._client.stream(
                    method, path.lstrip("/"), content=body, headers=headers, timeout=timeout
                ) as response:
                    body_read = await read_response(response, self._most_bytes)
                    return HttpAnswer(response.status_code, response.headers, body_read)
        except BodyTooLarge as failure:
            raise Unreachable("the answer is too long") from failure
        except (httpx.HTTPError, BodyUnreadable, TimeoutError) as failure:
            raise Unreachable(type(failure).__name__) from failure

    async def aclose(self) -> None:
        await self._client.aclose()


async def read_response(response: "httpx.Response", limit: int) -> bytes:
    """Return the decoded body of a streamed response, at most `limit` bytes. Raise BodyTooLarge, BodyUnreadable."""
    return await read_body(iter_response(response), limit)


def iter_response(response: "httpx.Response") -> AsyncIterable[bytes]:
    """Return the decoded pieces of a streamed response. Raise BodyUnreadable, also during the iteration.

    They are decoded from the raw stream, because httpx would inflate each raw piece as a whole, without a size limit.
    """
    import httpx

    if not isinstance(response.stream, httpx.AsyncByteStream):
        raise TypeError("not a response of an asynchronous client")
    return decode_pieces(response.stream, response.headers.get("content-encoding"))
