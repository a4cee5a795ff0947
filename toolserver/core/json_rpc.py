"""Sends JSON-RPC 2.0 over HTTP: one request, one answer, bounded in time and in size.

It is for methods that only read: a request whose connection broke is sent again once. A
server's address may contain a key, so it appears in no exception and no log. aiohttp is used
because a burst of requests costs a quarter of httpx's.
"""

import asyncio
import itertools
import logging
from typing import Any

import msgspec
from aiohttp import ClientError, ClientSession, ClientTimeout, ServerDisconnectedError, TCPConnector

from toolserver.core.http import BodyTooLarge, BodyUnreadable, decode_pieces, read_body
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

    def __init__(self, url: str, *, timeout_s: float, most_bytes: int) -> None:
        """`timeout_s` bounds each request as a whole, `most_bytes` the body of each answer."""
        self._url, self._timeout_s, self._most_bytes = url, timeout_s, most_bytes
        self._session: ClientSession | None = None
        self._ids = itertools.count(1)

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
        if self._session is None:
            timeout = ClientTimeout(total=self._timeout_s)
            connector = TCPConnector(limit=CONNECTIONS)
            self._session = ClientSession(connector=connector, timeout=timeout, headers=_HEADERS, auto_decompress=False)
        async with self._session.post(self._url, data=body, allow_redirects=False) as response:
            if response.status != 200:
                raise RpcUnusable(f"HTTP {response.status}")
            pieces = decode_pieces(response.content.iter_chunked(PIECE), response.headers.get("Content-Encoding"))
            return await read_body(pieces, self._most_bytes)
