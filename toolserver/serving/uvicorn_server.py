"""Run uvicorn with HTTP/1.1 only, deadlines, and limits on headers and connections.

Connections are accepted by `Listener`, so uvicorn is started without its own sockets.
tests/serving/test_uvicorn_server.py pins the version that `StrictHttpToolsProtocol` fits.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from typing import cast

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from toolserver.serving.admission import HEAD_BYTES, Connection, Connections
from toolserver.serving.connections import CONNECTION, Listener, RequestGate, StopTimes, stop_accepting

_REFUSED = b"HTTP/1.1 %s\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class _Outlet:
    """The writing half of a transport. It drops writes after closing, for which uvloop would raise.

    uvicorn marks only its newest request as disconnected. An earlier request, or one whose
    body was refused during its answer, continues to write. `must_linger` says whether the
    client may still be sending what nobody reads: a plain close would then reset the
    connection, and the client might lose the answer.
    """

    def __init__(self, transport: asyncio.Transport, must_linger: Callable[[], bool]) -> None:
        self._transport, self._must_linger = transport, must_linger
        self.is_ended = False

    def is_closing(self) -> bool:
        return self.is_ended or self._transport.is_closing()

    def write(self, data: bytes) -> None:
        if not self.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        if self.is_closing() or not self._must_linger():
            self._transport.close()
        else:
            self.is_ended = True
            with contextlib.suppress(OSError):  # the client has already gone
                self._transport.write_eof()


class StrictHttpToolsProtocol(HttpToolsProtocol):
    """HTTP/1.1 on one connection. It reports its phases, limits its headers and accepts no other version."""

    ours: Connection
    _outlet: _Outlet
    _head_bytes = 0
    _is_refused = _can_stay = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._outlet = _Outlet(transport, self._is_answered_early)
        self._open_cycles: list[RequestResponseCycle] = []
        self.transport = cast("asyncio.Transport", self._outlet)
        self.ours.begin(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for cycle in self._open_cycles:  # uvicorn marks only the newest, and logs a fault if an earlier app ends now
            cycle.disconnected = True
        self._unset_keepalive_if_required()  # uvicorn forgets it after a reset: the timer would keep all of this alive
        self.ours.end()

    def data_received(self, data: bytes) -> None:
        if not self._is_refused and not self._outlet.is_ended:
            super().data_received(data)

    def send_400_response(self, msg: str) -> None:
        if not self._is_refused:
            super().send_400_response(msg)

    def on_message_begin(self) -> None:
        self._head_bytes = 0
        self.ours.await_head()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.parser.get_http_version() not in ("1.1", "1.0"):
            self._refuse(b"400 Bad Request")
        names = {name for name, _ in self.headers}
        if b"content-length" in names and b"transfer-encoding" in names:
            self._refuse(b"400 Bad Request")
        self.ours.await_body(self.headers)
        super().on_headers_complete()
        self._open_cycles = [*(cycle for cycle in self._open_cycles if not cycle.response_complete), self.cycle]
        self._can_stay = self.cycle.keep_alive
        self.cycle.keep_alive = False  # an answer before the end of the body is the last one on its connection

    def on_message_complete(self) -> None:
        self.ours.work()
        if not self.cycle.response_started:
            self.cycle.keep_alive = self._can_stay
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._outlet.is_ended:
            self.flow.resume_reading()
            self.ours.await_end()
        elif not self.pipeline:
            self.ours.await_request()

    def _is_answered_early(self) -> bool:
        return self.cycle is not None and self.cycle.response_complete and self.cycle.more_body

    def _count_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > HEAD_BYTES:
            self._refuse(b"431 Request Header Fields Too Large")

    def _refuse(self, status: bytes) -> None:
        """Answer with a status and close. Raises an exception that stops the parser; `data_received` catches it."""
        self._is_refused = True
        self.transport.write(_REFUSED % status)
        self.transport.close()
        raise httptools.HttpParserError(status.decode())


class UvicornServer(uvicorn.Server):
    """A server that reports whether its app has started, without ending the process itself."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        except SystemExit:  # raised in a task, it would end the event loop at once
            self.should_exit = True
        self.is_up.set()


def is_worth_a_line(record: logging.LogRecord) -> bool:
    """Return False for messages that anyone can cause at will, and for cancellations that uvicorn has announced."""
    if record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError):
        return False
    return not str(record.msg).startswith(("Invalid HTTP request", "Unsupported upgrade", "No supported WebSocket"))


async def serve_uvicorn(
    gate: RequestGate, sock: socket.socket, connections: Connections, stop: asyncio.Event, times: StopTimes
) -> None:
    """Serve until `stop` is set or the app ends, then answer requests in progress within these times."""
    config = uvicorn.Config(
        gate,
        log_config=None,
        access_log=False,
        lifespan="on",
        http=StrictHttpToolsProtocol,
        ws="none",
        proxy_headers=False,  # we identify the client ourselves: trusted proxies are a setting
        timeout_keep_alive=int(connections.limits.idle_s),
        timeout_graceful_shutdown=1,
        server_header=False,
    )
    server = UvicornServer(config)
    logging.getLogger("uvicorn.error").addFilter(is_worth_a_line)
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign, assignment]  # signals are ours

    def protocol(connection: Connection) -> asyncio.BaseProtocol:
        http = StrictHttpToolsProtocol(config, server.server_state, {**server.lifespan.state, CONNECTION: connection})
        http.ours = connection
        return http

    running = asyncio.ensure_future(server.serve(sockets=[]))
    await server.is_up.wait()
    if not server.started:
        await running
        raise SystemExit(1)
    listener = Listener(sock, connections, protocol)
    listener.open()
    await stop.wait()
    await stop_accepting(gate, listener, connections, times)
    connections.drain()
    server.should_exit = True
    await running
