"""Run hypercorn with HTTP/1.1 only, strict message framing, deadlines and a limit on connections.

hypercorn decides about HTTP/2 in `ProtocolWrapper`, which it builds in `TCPServer.run`, and
has no deadline for a body. Only `StrictTcpServer.run` differs;
tests/serving/test_hypercorn_server.py pins the version it fits.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any, cast

import h11
from hypercorn.asyncio.lifespan import Lifespan
from hypercorn.asyncio.task_group import TaskGroup
from hypercorn.asyncio.tcp_server import MAX_RECV, TCPServer
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.typing import AppWrapper, ConnectionState, LifespanState
from hypercorn.utils import parse_socket_addr, wrap_app

from toolserver.serving.connections import HEAD_BYTES, Connection, Connections, Listener, StopTimes, stop_accepting
from toolserver.serving.request_gate import RequestGate

_FOLDS = (b"\n ", b"\n\t")


class _ReportingConnection(h11.Connection):
    """Reports the end of each request, which hypercorn passes on without a place to note it."""

    def __init__(self, on_end: Callable[[], None], most_bytes: int) -> None:
        super().__init__(h11.SERVER, max_incomplete_event_size=most_bytes)
        self._on_end = on_end

    def next_event(self) -> Any:
        event = super().next_event()
        if type(event) is h11.EndOfMessage:  # isinstance of an abstract class takes longer than all else here
            self._on_end()
        return event


class StrictH11Protocol(H11Protocol):
    """HTTP/1.1 on one connection. Reports its phases and refuses messages that proxies and servers read differently."""

    def __init__(self, *args: Any, ours: Connection) -> None:
        super().__init__(*args)
        self.ours = ours
        self.connection = _ReportingConnection(ours.work, self.config.h11_max_incomplete_size)

    async def handle(self, event: Event) -> None:
        if isinstance(event, RawData) and event.data:
            if self.connection.their_state is h11.IDLE and not self.connection.trailing_data[0]:
                self.ours.await_head()
            self.connection.receive_data(event.data)
            if self.connection.their_state is h11.IDLE and self._is_folded():
                await self._refuse(400)
                return
            await self._handle_events()
        else:
            await super().handle(event)

    async def _create_stream(self, request: h11.Request) -> None:
        """Begin a request. No upgrade is offered, so a request for one is ignored, as RFC 9110 allows."""
        if any(name == b"upgrade" for name, _ in request.headers):
            headers = [(name, value) for name, value in request.headers if name != b"upgrade"]
            request = h11.Request(
                method=request.method, target=request.target, headers=headers, http_version=request.http_version
            )
        self.ours.await_body(request.headers)
        await super()._create_stream(request)

    async def _check_protocol(self, event: h11.Request) -> None:
        """Refuse other versions, lower-case methods, ambiguous framing and too many headers.

        hypercorn would begin HTTP/2 here. It passes `head` to the service as `HEAD`, while
        h11 treats `head` as another method, so the service's answer without a body would end
        in an exception.
        """
        if event.method != event.method.upper():
            raise h11.RemoteProtocolError("methods are case-sensitive", error_status_hint=400)
        if event.http_version not in (b"1.1", b"1.0"):
            raise h11.RemoteProtocolError("unknown version", error_status_hint=400)
        if sum(len(name) + len(value) for name, value in event.headers) > HEAD_BYTES:
            raise h11.RemoteProtocolError("too many headers", error_status_hint=431)
        names = {name for name, _ in event.headers}
        if b"content-length" in names and b"transfer-encoding" in names:
            raise h11.RemoteProtocolError("two lengths", error_status_hint=400)

    async def _handle_events(self) -> None:
        try:
            await super()._handle_events()
        except h11.RemoteProtocolError as error:
            await self._refuse(error.error_status_hint)

    async def _refuse(self, status: int) -> None:
        if self.connection.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            await self._send_error_response(status)
        await self.send(Closed())

    async def _send_error_response(self, status_code: int) -> None:
        """Answer an unknown transfer coding with 400 where h11 suggests 501, so that no client can cause a 5xx."""
        await super()._send_error_response(status_code if status_code < 500 else 400)

    def _is_folded(self) -> bool:
        head = self.connection.trailing_data[0].partition(b"\r\n\r\n")[0]
        return any(fold in head for fold in _FOLDS)

    def is_answered_early(self) -> bool:
        """Return True if the request was answered before its body was complete."""
        return self.connection.their_state is h11.SEND_BODY and self.connection.our_state in (h11.DONE, h11.MUST_CLOSE)


class StrictTcpServer(TCPServer):
    """One connection. `Connection` sets the deadlines, so hypercorn's own timer for idle connections is not used."""

    def __init__(self, *args: Any, ours: Connection) -> None:
        super().__init__(*args)
        self._ours, self._is_ended = ours, False

    async def run(self) -> None:
        sock = self.writer.get_extra_info("socket")
        self._ours.begin(cast("asyncio.Transport", self.writer.transport))
        try:
            client = parse_socket_addr(sock.family, sock.getpeername())
            server = parse_socket_addr(sock.family, sock.getsockname())
            async with TaskGroup(self.loop) as tasks:
                state = ConnectionState(self.state)
                protocol = StrictH11Protocol(
                    self.app,
                    self.config,
                    self.context,
                    tasks,
                    state,
                    False,
                    client,
                    server,
                    self.protocol_send,
                    ours=self._ours,
                )
                self.protocol, self._h11 = protocol, protocol  # type: ignore[assignment]
                await self._read_data()
        except OSError:
            pass
        finally:
            await self._close()
            self._ours.end()

    async def protocol_send(self, event: Event) -> None:
        """Pass on what the protocol sends. A plain close while the client still sends could lose it the answer."""
        if isinstance(event, Closed) and self._h11.is_answered_early() and not self.writer.is_closing():
            self._is_ended = True
            self.writer.write_eof()
            self._ours.await_end()
        elif not isinstance(event, Updated):
            await super().protocol_send(event)
        elif event.idle:
            self._ours.await_request()

    async def _read_data(self) -> None:
        while not self.reader.at_eof():
            try:
                data = await self.reader.read(MAX_RECV)
            except OSError:
                break
            if not self._is_ended:
                await self.protocol.handle(RawData(data))
        await self.protocol.handle(Closed())


def _config() -> Config:
    config = Config()
    config.accesslog = None
    config.errorlog = logging.getLogger("hypercorn.error")
    config.include_server_header = False
    config.h11_max_incomplete_size = HEAD_BYTES
    config.keep_alive_max_requests = 10**9
    config.alpn_protocols = ["http/1.1"]
    return config


async def serve_hypercorn(
    gate: RequestGate, sock: socket.socket, connections: Connections, stop: asyncio.Event, times: StopTimes
) -> None:
    """Serve until `stop` is set or the app ends, then answer requests in progress within these times."""
    loop, config = asyncio.get_running_loop(), _config()
    app: AppWrapper = wrap_app(gate, config.wsgi_max_body_size, "asgi")
    state: LifespanState = {}
    context, lifespan = WorkerContext(None), Lifespan(app, config, loop, state)
    living = loop.create_task(lifespan.handle_lifespan())
    await lifespan.wait_for_startup()
    if living.done() and (error := living.exception()) is not None:
        raise error
    tasks: set[asyncio.Task[Any]] = set()

    def protocol(connection: Connection) -> asyncio.BaseProtocol:
        reader = asyncio.StreamReader(limit=MAX_RECV)

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            await StrictTcpServer(app, loop, config, context, state, reader, writer, ours=connection)

        return asyncio.StreamReaderProtocol(reader, connected)

    listener = Listener(sock, connections, protocol)
    listener.open()
    await stop.wait()
    await stop_accepting(gate, listener, connections, times)
    await context.terminated.set()
    connections.drain()
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=1)
        for task in late:
            task.cancel()
    await lifespan.wait_for_shutdown()
    living.cancel()
    await asyncio.gather(living, return_exceptions=True)
