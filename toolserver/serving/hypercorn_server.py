"""Run hypercorn with HTTP/1.1 only, strict message framing, deadlines and a limit on connections.

hypercorn decides about HTTP/2 in `ProtocolWrapper`, which it builds in `TCPServer.run`, and
has no deadline for a body. Only `StrictTcpServer.run` differs;
tests/serving/test_hypercorn_server.py pins the version it fits.
"""

import asyncio
import contextlib
import functools
import logging
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, cast

import h11

from toolserver.core.import_guard import left_out
from toolserver.serving.admission import HEAD_BYTES, Connection, Connections
from toolserver.serving.connections import CONNECTION, Listener, RequestGate, StopTimes, stop_accepting

UNUSED = (
    *("h2", "h2.events", "hypercorn.protocol.h2", "hypercorn.protocol.ws_stream"),
    *("logging.config", "multiprocessing", "multiprocessing.synchronize"),
)
"""What hypercorn would load for HTTP/2, for WebSockets, for files that configure logs, and for workers of its own."""

with left_out(*UNUSED):
    from hypercorn.asyncio.lifespan import Lifespan
    from hypercorn.asyncio.task_group import TaskGroup, _handle
    from hypercorn.asyncio.tcp_server import MAX_RECV, TCPServer
    from hypercorn.asyncio.worker_context import WorkerContext
    from hypercorn.config import Config
    from hypercorn.events import Closed, Event, RawData, Updated
    from hypercorn.protocol.h11 import H11Protocol
    from hypercorn.typing import AppWrapper, ConnectionState, LifespanState, Scope
    from hypercorn.utils import parse_socket_addr, wrap_app

_FOLDS = (b"\n ", b"\n\t")
Put = Callable[[Any], Awaitable[None]]
MOST_MESSAGES = 10  # pieces of a body that wait for the app


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


class ClientLeft(Exception):
    """The client has gone while its next request waited for the answer to the one before."""


class _NextTurn:
    """Lets reading go on once a request is answered, or never if the client has gone: then `wait` raises ClientLeft.

    hypercorn waits here with an event of its own, which only an answer sets. A client that had
    sent a byte too many could leave and be worked for to the end.
    """

    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self._is_left = False

    async def set(self) -> None:
        self._changed.set()

    async def clear(self) -> None:
        self._changed.clear()

    async def wait(self) -> None:
        if not self._is_left:
            await self._changed.wait()
        if self._is_left:
            raise ClientLeft

    def leave(self) -> None:
        self._is_left = True
        self._changed.set()


class _Inbox:
    """What an app receives of its request: pieces of the body, a few at a time, and at last that the client has gone.

    hypercorn's own queue takes nothing while it is full, that news neither. The connection of
    a request whose body the app does not read would then never end.
    """

    def __init__(self) -> None:
        self._messages: deque[Any] = deque()
        self._changed = asyncio.Event()
        self._is_ended = False

    async def get(self) -> Any:
        while not self._messages:
            await self._change()
        message = self._messages.popleft()
        self._changed.set()
        return message

    async def put(self, message: Any) -> None:
        """Add a message, after the app has taken others. After the end there is nobody to take it."""
        if message["type"] == "http.disconnect":
            self.end()
            return
        while len(self._messages) >= MOST_MESSAGES and not self._is_ended:
            await self._change()
        if not self._is_ended:
            self._messages.append(message)
            self._changed.set()

    def end(self) -> None:
        """Note that the client has gone, or has its answer."""
        if not self._is_ended:
            self._is_ended = True
            self._messages.append({"type": "http.disconnect"})
            self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


class _Tasks(TaskGroup):
    """The tasks of one connection. `inbox` is of its newest request."""

    inbox: _Inbox | None = None

    async def spawn_app(self, app: AppWrapper, config: Config, scope: Scope, send: Any) -> Put:
        inbox = self.inbox = _Inbox()
        in_thread = functools.partial(self._loop.run_in_executor, None)
        self.spawn(_handle, app, config, scope, inbox.get, send, in_thread, self._loop.call_soon_threadsafe)
        return inbox.put


class StrictH11Protocol(H11Protocol):
    """HTTP/1.1 on one connection. Reports its phases and refuses messages that proxies and servers read differently."""

    can_read: _NextTurn  # type: ignore[assignment]

    def __init__(self, *args: Any, ours: Connection) -> None:
        super().__init__(*args)
        self.ours = ours
        self.can_read = _NextTurn()
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
        if event.method == b"CONNECT":  # a proxy in front would take what follows for the content of a tunnel
            raise h11.RemoteProtocolError("no tunnels", error_status_hint=405)
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
        self._h11: StrictH11Protocol | None = None
        self._requests: _Tasks | None = None

    def leave(self) -> None:
        """Note that the client has gone: no more is read, and nobody waits for an answer."""
        self._ours.leave()
        if self._h11 is not None:
            self._h11.can_read.leave()
        if self._requests is not None and self._requests.inbox is not None:
            self._requests.inbox.end()

    async def run(self) -> None:
        sock = self.writer.get_extra_info("socket")
        self._ours.begin(cast("asyncio.Transport", self.writer.transport))
        try:
            client = parse_socket_addr(sock.family, sock.getpeername())
            server = parse_socket_addr(sock.family, sock.getsockname())
            self._requests = _Tasks(self.loop)
            async with self._requests as tasks:
                state = ConnectionState({**self.state, CONNECTION: self._ours})
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
        is_early = self._h11 is not None and self._h11.is_answered_early()
        if is_early and isinstance(event, Closed) and not self.writer.is_closing():
            self._is_ended = True
            with contextlib.suppress(OSError):  # the client has already gone
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
                try:
                    await self.protocol.handle(RawData(data))
                except ClientLeft:
                    break
        await self.protocol.handle(Closed())


class _WatchedReader(asyncio.StreamReaderProtocol):
    """Tells the server of a connection at once when its client leaves, whatever it is waiting for."""

    def __init__(self, reader: asyncio.StreamReader, run: Callable[[StrictTcpServer], Awaitable[None]], make: Any):
        self._server: StrictTcpServer | None = None

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._server = make(reader, writer)
            await run(self._server)

        super().__init__(reader, connected)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._leave()

    def eof_received(self) -> bool | None:
        is_kept = super().eof_received()
        self._leave()
        return is_kept

    def _leave(self) -> None:
        if self._server is not None:
            self._server.leave()


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

    async def run(server: StrictTcpServer) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        await server

    def protocol(connection: Connection) -> asyncio.BaseProtocol:
        def make(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> StrictTcpServer:
            return StrictTcpServer(app, loop, config, context, state, reader, writer, ours=connection)

        return _WatchedReader(asyncio.StreamReader(limit=MAX_RECV), run, make)

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
