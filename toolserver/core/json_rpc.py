"""Sends JSON-RPC 2.0 over HTTP: one request, one answer, bounded in time and in size.

It is for methods that only read: a request whose connection broke is sent again once. A
server's address may contain a key, so it appears in no exception and no log. aiohttp is used
because a burst of requests costs a quarter of httpx's. It knows HTTP proxies, but not SOCKS.

Certificates are verified with the public authorities first. A server whose certificate is from
an authority that only this machine trusts, as in a company that inspects its traffic, is used
too, but noted: a program with that authority's key can answer in place of any server.
"""

import asyncio
import functools
import itertools
import logging
import ssl
from typing import Any

import msgspec
from aiohttp import (
    ClientConnectorCertificateError,
    ClientError,
    ClientSession,
    ClientTimeout,
    ServerDisconnectedError,
    TCPConnector,
)

from toolserver.core.http import BodyTooLarge, BodyUnreadable, decode_pieces, read_body
from toolserver.core.outbound import NO_PROXIES, Proxies, make_public_tls_context, make_tls_context
from toolserver.errors import ToolserverError

CONNECTIONS = 8  # to one server
PIECE = 65_536
_HEADERS = {"content-type": "application/json", "accept-encoding": "identity"}

logging.getLogger("aiohttp").setLevel(logging.WARNING)  # lower levels log addresses, which may contain keys


class RpcUnusable(ToolserverError):
    """The server returned no usable answer. The text names the kind of failure, but never the address."""


class RpcRefused(RpcUnusable):
    """The server answered with a JSON-RPC error. `code` is its number, or None without one."""

    def __init__(self, code: int | None) -> None:
        super().__init__(f"JSON-RPC error {code}")
        self.code = code


class JsonRpcClient:
    """Queries one server. It connects with the first request and follows no redirect."""

    def __init__(self, url: str, *, timeout_s: float, most_bytes: int, proxies: Proxies = NO_PROXIES) -> None:
        """`timeout_s` bounds each request as a whole, `most_bytes` the body of each answer."""
        self._url, self._timeout_s, self._most_bytes = url, timeout_s, most_bytes
        self._proxy = proxies.find(url)
        self._session: ClientSession | None = None
        self._private_tls: ssl.SSLContext | None = None
        self._ids = itertools.count(1)

    @property
    def is_privately_certified(self) -> bool:
        """True if the server has shown a certificate that no public authority issued."""
        return self._private_tls is not None

    async def call(self, method: str, *params: Any) -> Any:
        """Return the result, which may be None. Raise RpcUnusable, or RpcRefused for an error from the server."""
        answer = await self.exchange(method, params)
        if "result" in answer:
            return answer["result"]
        code = answer["error"].get("code")
        raise RpcRefused(code if isinstance(code, int) else None)

    async def exchange(self, method: str, params: Any) -> dict[str, Any]:
        """Return the whole answer as an object with this request's id, and `result` or an object `error`.

        Raises:
            RpcUnusable: no answer, or not a JSON-RPC answer to this request.
        """
        id = next(self._ids)
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        try:
            answer = msgspec.json.decode(await self._post(body))
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise RpcUnusable("the body is not JSON") from None
        if not isinstance(answer, dict) or answer.get("id") != id:
            raise RpcUnusable("the answer belongs to another request")
        if "result" not in answer and not isinstance(answer.get("error"), dict):
            raise RpcUnusable("neither a result nor an error")
        return answer

    async def aclose(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()
            await asyncio.sleep(0)  # the event loop closes sockets in its next turn

    async def _post(self, body: bytes) -> bytes:
        """Return the body of the answer. A request is repeated only if the server had closed the connection."""
        if self._proxy is not None and self._proxy.is_socks:
            raise RpcUnusable(f"RPC servers are not reached through a SOCKS proxy ({self._proxy.named_by})")
        try:
            try:
                return await self._send(body)
            except ServerDisconnectedError:
                return await self._send(body)
        except BodyTooLarge:
            raise RpcUnusable("the answer is too long") from None
        except BodyUnreadable:
            raise RpcUnusable("the answer is damaged") from None
        except (ClientError, OSError, TimeoutError, ValueError) as failure:
            raise RpcUnusable(type(failure).__name__) from None

    async def _send(self, body: bytes) -> bytes:
        """Send a request, again with this machine's own authorities if no public one issued the certificate."""
        if self._private_tls is not None:
            return await self._exchange_bytes(body, self._private_tls)
        try:
            return await self._exchange_bytes(body, await self._find_public_tls())
        except ClientConnectorCertificateError:
            private_tls = await asyncio.to_thread(make_tls_context)
        answer = await self._exchange_bytes(body, private_tls)
        self._private_tls = private_tls  # for good, so that no answer of this server counts for more than it should
        return answer

    async def _find_public_tls(self) -> ssl.SSLContext | bool:
        return await asyncio.to_thread(_load_public_authorities) if self._url.startswith("https:") else True

    async def _exchange_bytes(self, body: bytes, tls: ssl.SSLContext | bool) -> bytes:
        if self._session is None:
            timeout = ClientTimeout(total=self._timeout_s)
            connector = TCPConnector(limit=CONNECTIONS)
            self._session = ClientSession(connector=connector, timeout=timeout, headers=_HEADERS, auto_decompress=False)
        proxy = None if self._proxy is None else self._proxy.address
        async with self._session.post(self._url, data=body, allow_redirects=False, ssl=tls, proxy=proxy) as response:
            if response.status != 200:
                raise RpcUnusable(f"HTTP {response.status}")
            pieces = decode_pieces(response.content.iter_chunked(PIECE), response.headers.get("Content-Encoding"))
            return await read_body(pieces, self._most_bytes)


@functools.cache
def _load_public_authorities() -> ssl.SSLContext:
    """Return the context that all clients share. Loading the authorities takes 30 ms."""
    return make_public_tls_context()
