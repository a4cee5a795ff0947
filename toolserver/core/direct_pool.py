"""Sends requests over HTTP/1.1 straight to one host, on connections that are kept for later requests.

This is a transport of httpx. Its own one spends most of a request's CPU time on bookkeeping in
Python: locks, timeouts that nobody set, polls of idle sockets, a parser. Here the event loop
tells when an idle connection ends, httptools parses, and the caller's deadline is the only
one.

A host that prefers HTTP/2 is left to another transport, and so is everything that goes through
a proxy: see `outbound`.
"""

import asyncio
import socket
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

import httptools
from aiohappyeyeballs import start_connection

from toolserver.core.exchange import ThroughHttpx, UnreadResponse
from toolserver.core.http_library import httpx

BUFFERED = 256 * 1024  # bytes of a body that wait for the reader, after which no more are received
LONGEST_HEAD = 100 * 1024  # bytes, of a response's status and headers
EYEBALLS_S = 0.25  # after this, the next address of a host is tried at the same time (RFC 8305)
HTTP2 = "h2"
_NO_BODY = (204, 304)
_ENDED = "the host ended the connection before the response was complete"


class DirectPool(httpx.AsyncBaseTransport):
    """The connections to the host of a URL: at most `most` at once, idle ones for `kept_s` at most.

    With `make_http2`, HTTP/2 is offered: if the host takes it, every request goes to the
    transport that this makes. `http2_hosts` has the hosts that did, and is added to, so that a
    later pool to the same host need not ask again.

    A request on a kept connection which turns out to have ended is sent again on a new one if it is a GET.
    """

    def __init__(
        self,
        url: str,
        tls: ssl.SSLContext,
        *,
        most: int,
        kept_s: float,
        make_http2: Callable[[], httpx.AsyncBaseTransport] | None = None,
        http2_hosts: set[str] | None = None,
    ) -> None:
        parts = httpx.URL(url)
        self._host, is_tls = parts.raw_host.decode("ascii").strip("[]"), parts.scheme == "https"
        self._port, self._tls = parts.port or (443 if is_tls else 80), tls if is_tls else None
        self._place = f"{self._host}:{self._port}"
        self._make_http2 = make_http2 if is_tls else None
        if is_tls:
            tls.set_alpn_protocols(["http/1.1", HTTP2] if make_http2 else ["http/1.1"])
        self._http2: ThroughHttpx | None = None
        self._http2_hosts = set[str]() if http2_hosts is None else http2_hosts
        self._kept_s, self._seats = kept_s, asyncio.Semaphore(most)
        self._idle: deque[_Connection] = deque()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return the response, whose body is still to be read.

        Raises:
            httpx.TransportError: no response arrived, or none that is HTTP/1.1.
        """
        sent = write_request(request.method, request.url.raw_path, request.headers.raw, request.content)
        connection = await self._begin(request.method, sent)
        if connection is None:
            return await self._reach_http2().transport.handle_async_request(request)
        body = _Body(connection, self._take_back)
        return httpx.Response(connection.status, headers=connection.headers, stream=body, request=request)

    async def send(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> UnreadResponse:
        """Do what `handle_async_request` does, without the objects of httpx. `url` is absolute and encoded."""
        host, _, target = url.partition("://")[2].partition("/")
        fields = [(b"host", host.encode("ascii"))]
        fields += [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers.items()]
        if content:
            fields.append((b"content-length", b"%d" % len(content)))
        sent = write_request(method, b"/" + target.partition("#")[0].encode("ascii"), fields, content)
        connection = await self._begin(method, sent)
        if connection is None:
            return await self._reach_http2().send(method, url, headers, content)
        body = _Body(connection, self._take_back)
        received = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in connection.headers]
        return UnreadResponse(connection.status, received, body, body.aclose)

    async def _begin(self, method: str, sent: bytes) -> "_Connection | None":
        """Send a request and return its connection when the head of the response has arrived.

        Return None if the host prefers HTTP/2: then nothing was sent.
        """
        if self._place in self._http2_hosts:
            return None
        await self._seats.acquire()
        try:
            return await self._send_and_repeat(method, sent)
        except _PrefersHttp2:
            self._seats.release()
            return None
        except BaseException:
            self._seats.release()
            raise

    async def _send_and_repeat(self, method: str, sent: bytes) -> "_Connection":
        kept = self._take_idle()
        if kept is not None:
            try:
                return await _send(kept, sent)
            except EndedEarly:
                if method != "GET":
                    raise
        return await _send(await self._open(), sent)

    def _reach_http2(self) -> ThroughHttpx:
        if self._http2 is None:
            assert self._make_http2 is not None
            self._http2 = ThroughHttpx(self._make_http2())
        return self._http2

    async def aclose(self) -> None:
        """Close the idle connections, and each other one when its response was read."""
        self._kept_s = 0.0
        while self._idle:
            self._idle.pop().abort()
        if self._http2 is not None:
            await self._http2.aclose()

    def _take_idle(self) -> "_Connection | None":
        """Return the connection that was used last, if one is still open. End those that were kept too long."""
        too_old = time.monotonic() - self._kept_s
        while self._idle and self._idle[0].idle_since < too_old:
            self._idle.popleft().abort()
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_lost:
                return connection
        return None

    def _take_back(self, connection: "_Connection") -> None:
        """Keep a connection whose response was read as a whole, and end any other."""
        self._seats.release()
        if connection.is_reusable and self._kept_s:
            connection.idle_since = time.monotonic()
            self._idle.append(connection)
        else:
            connection.abort()

    async def _open(self) -> "_Connection":
        """Connect to the address of the host that answers first. Raise httpx.ConnectError."""
        loop, server_name = asyncio.get_running_loop(), None if self._tls is None else self._host
        try:
            addresses = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
            connected = await start_connection(addresses, happy_eyeballs_delay=EYEBALLS_S, interleave=1, loop=loop)
            _, connection = await loop.create_connection(
                _Connection, sock=connected, ssl=self._tls, server_hostname=server_name
            )
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error
        if connection.protocol == HTTP2:
            connection.abort()
            self._http2_hosts.add(self._place)
            raise _PrefersHttp2
        return connection


async def _send(connection: "_Connection", sent: bytes) -> "_Connection":
    """Send a request on a connection, which ends if that fails. Return it when the head of the response arrived."""
    try:
        await connection.send(sent)
    except BaseException:
        connection.abort()
        raise
    return connection


def write_request(method: str, target: bytes, fields: Iterable[tuple[bytes, bytes]], content: bytes) -> bytes:
    """Return the bytes of a request. Raise httpx.LocalProtocolError if a header has a line of its own."""
    lines = [b"%s %s HTTP/1.1" % (method.encode("ascii"), target)]
    lines += [b"%s: %s" % field for field in fields]
    head = b"\r\n".join(lines)
    if not head.count(b"\r") == head.count(b"\n") == len(lines) - 1 or b"\0" in head:
        raise httpx.LocalProtocolError("a header has a control character")
    return head + b"\r\n\r\n" + content


class _PrefersHttp2(Exception):
    """The host chose HTTP/2 for a new connection, which nothing was sent on."""


class EndedEarly(httpx.RemoteProtocolError):
    """A connection ended before anything of the response arrived."""


class _Body(httpx.AsyncByteStream):
    """The body of a response as it arrives. Closing it gives the connection back."""

    def __init__(self, connection: "_Connection", take_back: "Callable[[_Connection], None]") -> None:
        self._connection, self._take_back, self._is_open = connection, take_back, True

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while piece := await self._connection.receive():
            yield piece

    async def aclose(self) -> None:
        if self._is_open:
            self._is_open = False
            self._take_back(self._connection)


class _Connection(asyncio.Protocol):
    """One connection, with one request at a time. The parser calls the methods whose names begin with `on_`."""

    def __init__(self) -> None:
        self._transport: Any = None
        self._parser: Any = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[None] | None = None
        self._failure: httpx.TransportError | None = None
        self.protocol: str | None = None
        self.is_lost, self.idle_since = False, 0.0
        self._is_asked = self._is_paused = self._is_kept_alive = False
        self._begin()

    def _begin(self) -> None:
        self.status, self.headers = 0, list[tuple[bytes, bytes]]()
        self._pieces, self._waiting_size, self._head_size = deque[bytes](), 0, 0
        self._has_head = self._is_whole = self._ends_with_connection = False

    @property
    def is_reusable(self) -> bool:
        """True if the whole response was received, nothing came after it, and the host keeps the connection."""
        return self._is_whole and not self._pieces and self._is_kept_alive and not self.is_lost

    async def send(self, sent: bytes) -> None:
        """Send a request and wait for the head of its response. Raise httpx.TransportError."""
        self._begin()
        self._is_asked = True
        self._transport.write(sent)
        while not self._has_head:
            await self._wait()

    async def receive(self) -> bytes:
        """Return the next piece of the body, or none at its end. Raise httpx.TransportError."""
        while not self._pieces:
            if self._is_whole:
                return b""
            await self._wait()
        piece = self._pieces.popleft()
        self._waiting_size -= len(piece)
        if self._is_paused and self._waiting_size < BUFFERED:
            self._is_paused = False
            self._transport.resume_reading()
        return piece

    def abort(self) -> None:
        """End the connection at once."""
        self.is_lost = True
        if self._transport is not None:
            self._transport.abort()

    async def _wait(self) -> None:
        """Wait until something was received. Raise the failure of the connection."""
        if self._failure is not None:
            raise self._failure
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, failure: httpx.TransportError) -> None:
        if self._failure is None:
            self._failure = failure
        self.abort()
        self._wake()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        secured = transport.get_extra_info("ssl_object")
        self.protocol = None if secured is None else secured.selected_alpn_protocol()

    def data_received(self, data: bytes) -> None:
        if not self._is_asked or self._is_whole:
            self.abort()  # nobody asked
            return
        self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self._is_whole:
                self._fail(httpx.RemoteProtocolError(str(error)))
                return
            self._is_kept_alive = False  # something follows the response
        if not self._has_head and self._head_size > LONGEST_HEAD:
            self._fail(httpx.RemoteProtocolError("the head of the response is too long"))
        elif self._waiting_size > BUFFERED and not self._is_paused and not self._is_whole:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc)
        self._parser = None  # it refers to this

    def _end(self, cause: Exception | None) -> None:
        self.is_lost = True
        if self._ends_with_connection and cause is None:
            self._is_whole = True
        elif self._is_asked and not self._is_whole and self._failure is None:
            kind = httpx.RemoteProtocolError if self._head_size else EndedEarly
            self._failure = kind(_ENDED)
            self._failure.__cause__ = cause
        self._wake()

    def on_message_begin(self) -> None:
        if self._is_whole:
            self._is_kept_alive = False  # a response that nobody asked for

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_head:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self._is_whole:
            return
        self.status = self._parser.get_status_code()
        if self.status < 200:  # an interim response; the final one follows
            self.headers.clear()
            return
        named = {name.lower(): value.lower() for name, value in self.headers}
        is_bounded = b"content-length" in named or b"chunked" in named.get(b"transfer-encoding", b"")
        self._ends_with_connection = not is_bounded and self.status not in _NO_BODY
        self._has_head = True

    def on_body(self, body: bytes) -> None:
        if not self._is_whole:
            self._pieces.append(body)
            self._waiting_size += len(body)

    def on_message_complete(self) -> None:
        if self._has_head and not self._is_whole:
            self._is_whole, self._is_kept_alive = True, self._parser.should_keep_alive()
