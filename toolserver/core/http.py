"""Bounds the bodies that peers send, and the requests that we send to one other service.

A body is read up to a limit of bytes, so that peers cannot decide how much memory it takes. It
arrives as an asynchronous iterator over its raw pieces: `response.stream` of httpx,
`iter_chunked(n)` of an aiohttp session that does not decompress, or `request_pieces(receive)`
of an ASGI request. `decode_pieces` inflates gzip in small steps, so that the limit counts
decoded bytes and also stops a few kilobytes that expand to gigabytes.

`HttpClient` bounds the time of each request too.
"""

import ssl
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
from anyio.lowlevel import checkpoint

from toolserver.core.outbound import NO_PROXIES, Proxies, make_client
from toolserver.errors import ToolserverError

if TYPE_CHECKING:
    from toolserver.core.http_library import httpx

    Transport = httpx.AsyncBaseTransport
else:
    Transport = object  # httpx takes long to import, and most services never need this client


STEP = 65_536  # bytes inflated at a time; between two steps other tasks run
MOST_MEMBERS = 1000  # of one gzip body; each takes time to set up, and tools that join files make only a few
_GZIP = 16 + zlib.MAX_WBITS


class BodyTooLarge(ToolserverError):
    """The body has more bytes than the reader allows. The rest was not read."""


class BodyUnreadable(ToolserverError):
    """The body is damaged gzip, or has an encoding that was not requested."""


async def read_body(pieces: AsyncIterable[bytes], limit: int) -> bytes:
    """Return the whole body, at most `limit` bytes. Raise BodyTooLarge as soon as a piece exceeds the limit."""
    body, is_cut = await read_prefix(pieces, limit)
    if is_cut:
        raise BodyTooLarge(f"over {limit} bytes")
    return body


async def read_prefix(pieces: AsyncIterable[bytes], limit: int) -> tuple[bytes, bool]:
    """Return the first `limit` bytes of the body and whether there are more. Reading stops at the limit."""
    read, size = [], 0
    async for piece in pieces:
        size += len(piece)
        if size > limit:
            read.append(piece[: len(piece) - (size - limit)])
            return b"".join(read), True
        read.append(piece)
    return b"".join(read), False


async def request_pieces(receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> AsyncIterator[bytes]:
    """Yield the body of an ASGI request in pieces. It ends early if the client disconnects."""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return
        yield message.get("body", b"")
        if not message.get("more_body", False):
            return


def decode_pieces(pieces: AsyncIterable[bytes], encoding: str | None) -> AsyncIterable[bytes]:
    """Return the decoded pieces of a body with this Content-Encoding: gzip (one layer) or none.

    Raises:
        BodyUnreadable: at once for another encoding; during the iteration for damaged gzip.
    """
    name = (encoding or "identity").strip().lower()
    if name in ("identity", ""):
        return pieces
    if name not in ("gzip", "x-gzip"):
        raise BodyUnreadable(f"encoded as {name[:40]!r}")
    return _inflate(pieces)


async def _inflate(pieces: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Yield the content of gzip members, at most STEP bytes at a time. No pieces are an empty body."""
    stream = _GzipStream()
    async for piece in pieces:
        stream.feed(piece)
        while decoded := stream.next_step():
            yield decoded
            await checkpoint()
    stream.check_end()


class _GzipStream:
    """Inflates gzip members one after the other. Zero bytes may fill the end, as gzip itself allows."""

    def __init__(self) -> None:
        self._member: zlib._Decompress | None = None
        self._members = 0
        self._waiting = b""

    def feed(self, piece: bytes) -> None:
        self._waiting = self._waiting + piece if self._waiting else piece

    def next_step(self) -> bytes:
        """Return the next decoded bytes, at most STEP, or none if more raw bytes are needed. Raise BodyUnreadable."""
        while self._waiting:
            if self._member is None and not self._start_member():
                return b""
            if decoded := self._take_step():
                return decoded
        return self._take_step() if self._member is not None else b""

    def check_end(self) -> None:
        """Raise BodyUnreadable if the body ends inside a member."""
        if self._member is not None:
            raise BodyUnreadable("gzip ends too early")

    def _start_member(self) -> bool:
        """Begin a member, if more than padding is left."""
        if self._members:
            self._waiting = self._waiting.lstrip(b"\0")
        if not self._waiting:
            return False
        self._members += 1
        if self._members > MOST_MEMBERS:
            raise BodyUnreadable(f"over {MOST_MEMBERS} gzip members")
        self._member = zlib.decompressobj(_GZIP)
        return True

    def _take_step(self) -> bytes:
        """Inflate up to STEP bytes of the current member and keep the raw bytes that were not needed."""
        assert self._member is not None
        try:
            decoded = self._member.decompress(self._waiting, STEP)
        except zlib.error as error:
            raise BodyUnreadable(f"damaged gzip: {error}") from error
        self._waiting = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
        if self._member.eof:
            self._member = None
        return decoded


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
    """Sends requests to one service, through its proxy in `proxies` if it has one. Redirects are not followed."""

    def __init__(
        self,
        url: str,
        *,
        transport: Transport | None = None,
        most_bytes: int = MOST_BYTES,
        connect_s: float = CONNECT_S,
        proxies: Proxies = NO_PROXIES,
    ) -> None:
        self._most_bytes, self._connect_s = most_bytes, connect_s
        self._client = make_client(
            url,
            proxies,
            transport=transport,
            connections=CONNECTIONS,
            kept_s=KEPT_S,
            headers={"accept": "application/json", "accept-encoding": "identity", "user-agent": "toolserver"},
        )

    async def ask(
        self, method: str, path: str, *, body: bytes | None = None, headers: Mapping[str, str], within_s: float
    ) -> HttpAnswer:
        """Send a request and return the whole response. Raise Unreachable."""
        from toolserver.core.http_library import httpx

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
            raise Unreachable(name_failure(failure)) from failure

    async def aclose(self) -> None:
        await self._client.aclose()


def name_failure(failure: BaseException) -> str:
    """Return the class of a failure, or what is wrong with the other side's certificate, if that was the cause."""
    cause: BaseException | None = failure
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({cause.verify_message})"
        cause = cause.__cause__ or cause.__context__
    return type(failure).__name__


async def read_response(response: "httpx.Response", limit: int) -> bytes:
    """Return the decoded body of a streamed response, at most `limit` bytes. Raise BodyTooLarge, BodyUnreadable."""
    return await read_body(iter_response(response), limit)


def iter_response(response: "httpx.Response") -> AsyncIterable[bytes]:
    """Return the decoded pieces of a streamed response. Raise BodyUnreadable, also during the iteration.

    They are decoded from the raw stream, because httpx would inflate each raw piece as a whole, without a size limit.
    """
    from toolserver.core.http_library import httpx

    if not isinstance(response.stream, httpx.AsyncByteStream):
        raise TypeError("not a response of an asynchronous client")
    return decode_pieces(response.stream, response.headers.get("content-encoding"))
