"""Accept connections and pass on their requests, and stop taking them. `admission` decides which have a place.

Both HTTP servers accept through `Listener` and report the phases of each connection, so the
same limits hold for both.

`RequestGate` stands around the app. It knows the requests in progress, ends those that nobody
waits for, and answers all when the service stops: from then on, new requests and requests
whose body is not complete are refused, and nothing of them is carried out. Complete requests
have a limited time to be answered by the app; then the app is cancelled, which releases what
it reserved, and the request is refused as well. Only health is answered until the end, so a
load balancer learns why.

The servers pass on the connection of a request in its state, under `CONNECTION`. When its
client leaves, the app is cancelled, unless it waits for that news itself. A request whose
client has too many already is refused.
"""

import asyncio
import errno
import json
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from toolserver.calls.response import sending
from toolserver.core.caller import new_request_id
from toolserver.errors import CallRejected, Overloaded, ShuttingDown
from toolserver.registry import error_codes
from toolserver.registry.site_facts import HEALTH, SiteFacts
from toolserver.serving.admission import SWEEP_S, Connection, Connections, RequestInProgress

STOPPING_S, FULL_S = 5, 1  # seconds after which a refused client may come again


class Refusals:
    """Writes the refusals of one service: status, headers and a body of problem+json."""

    def __init__(self, facts: SiteFacts) -> None:
        self._facts = facts
        self.stopping = ShuttingDown(
            f"The service is stopping. Try again in {STOPPING_S} seconds.", retry_after_seconds=STOPPING_S
        )
        self.full = Overloaded(
            "The service has no room for this request, and this address has more than its share of it.",
            retry_after_seconds=FULL_S,
        )

    def write(self, refusal: CallRejected) -> tuple[list[tuple[bytes, bytes]], bytes]:
        """Return headers and body. The connection closes after the answer."""
        request_id = new_request_id()
        problem = error_codes.body(
            refusal.code, refusal.detail, facts=self._facts, request_id=request_id, **refusal.extra
        )
        body = json.dumps(problem).encode()
        headers = [
            (b"content-type", b"application/problem+json"),
            (b"content-length", b"%d" % len(body)),
            (b"retry-after", b"%d" % refusal.extra["retry_after_seconds"]),
            (b"cache-control", b"no-store"),
            (b"access-control-allow-origin", b"*"),
            (b"x-request-id", request_id.encode()),
            (b"connection", b"close"),
        ]
        return headers, body

    def full_bytes(self) -> bytes:
        """Return the whole answer to a request that has no place, as it goes over the wire."""
        headers, body = self.write(self.full)
        lines = b"".join(b"%s: %s\r\n" % header for header in headers)
        return b"HTTP/1.1 503 Service Unavailable\r\n%s\r\n%s" % (lines, body)


Asgi = Callable[[Any, Any, Any], Awaitable[None]]

CONNECTION = "toolserver.connection"
REFUSE_S = 2.0  # for the app to release what it reserved, and for the refusals to be sent


def never() -> bool:
    """Return False: a service that stops is not replaced by another process."""
    return False


class RequestGate:
    """An ASGI app around another one. `died` is set if the inner app ends without being asked to.

    `is_replaced` says whether another process already serves on the same socket when this one is asked to stop.
    """

    def __init__(
        self, app: Asgi, facts: SiteFacts, is_replaced: Callable[[], bool] = never, *, refuse_s: float = REFUSE_S
    ) -> None:
        self._app = app
        self._refusals = Refusals(facts)
        self.is_replaced = is_replaced
        self._refuse_s = refuse_s
        self._stopping = self._ending_connections = False
        self._in_progress: set[RequestInProgress] = set()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self.died = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._live(scope, receive, send)
        elif (connection := scope.get("state", {}).get(CONNECTION)) is not None and connection.is_left:
            connection.hang_up()
        elif connection is not None and connection.is_refused:
            await self._refuse(scope, send, self._refusals.full)
        elif self._stopping and scope["type"] == "http" and scope["path"] not in HEALTH:
            await self._refuse(scope, send, self._refusals.stopping)
        else:
            await self._pass(scope, receive, _end_connection(send) if self._ending_connections else send, connection)

    def end_connections(self) -> None:
        """Make every answer from now on the last one on its connection."""
        self._ending_connections = True

    async def stop(self, within_s: float) -> None:
        """Refuse new and incomplete requests from now on, and wait until every request in progress is answered.

        Those that the app has not answered within this limit in seconds are refused.
        """
        self._stopping = True
        for request in self._in_progress:
            if request.is_awaiting_body:
                request.refuse()
        if await self._is_quiet(within_s):
            return
        for request in self._in_progress:
            request.refuse()
        await self._is_quiet(self._refuse_s)

    async def _is_quiet(self, within_s: float) -> bool:
        """Return whether no request is in progress, after waiting for that for at most this many seconds."""
        try:
            async with asyncio.timeout(within_s):
                await self._quiet.wait()
        except TimeoutError:
            return False
        return True

    async def _pass(self, scope: Any, receive: Any, send: Any, connection: Connection | None) -> None:
        request = RequestInProgress(receive, send)
        if connection is not None:
            connection.request = request
        self._in_progress.add(request)
        self._quiet.clear()
        try:
            with sending():
                await self._app(scope, request.receive, request.send)
        except asyncio.CancelledError:
            if request.take_over():
                await self._refuse(scope, send, self._refusals.stopping)
            elif not request.is_left():
                raise
            elif connection is not None:
                connection.hang_up()
        finally:
            self._in_progress.discard(request)
            if connection is not None:
                connection.request = None
            if not self._in_progress:
                self._quiet.set()

    async def _live(self, scope: Any, receive: Any, send: Any) -> None:
        asked_to_end = False

        async def listen() -> Any:
            nonlocal asked_to_end
            message = await receive()
            asked_to_end = message["type"] == "lifespan.shutdown"
            return message

        try:
            await self._app(scope, listen, send)
        finally:
            if not asked_to_end:
                self.died.set()

    async def _refuse(self, scope: Any, send: Any, refusal: CallRejected) -> None:
        headers, body = self._refusals.write(refusal)
        await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


def _end_connection(send: Any) -> Any:
    """Return a `send` that announces in each answer that its connection will close."""

    async def send_last(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
        await send(message)

    return send_last


log = logging.getLogger(__name__)

ACCEPTS_A_TURN = 8  # a request in progress needs several turns of the event loop, each after this many new connections
UNREAD_BYTES = 65_536  # of a refused connection, so that closing it does not take the refusal away again
HAND_OVER_S = 5.0  # for clients to send the next request on a kept connection and learn that it ends
STOP_S = 10.0  # for requests in progress, a drain included; with what follows, a stop takes less than 15 seconds
LEAST_GRACE_S = 5.0  # of it, for the requests in progress at the end of a drain
LATE_S = 1.0  # for the first request on a connection that was opened at the end of a drain
LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class StopTimes:
    """What a stop may take, in seconds.

    `drain_s` is for balancers to notice it, `hand_over_s` for clients to leave for the process
    that replaces this one; then `grace_s` for requests in progress.
    """

    drain_s: float = 0.0
    hand_over_s: float = HAND_OVER_S
    stop_s: float = STOP_S

    @property
    def grace_s(self) -> float:
        """What a drain leaves of the time for requests in progress, but at least `LEAST_GRACE_S`."""
        return max(self.stop_s - self.drain_s, min(self.stop_s, LEAST_GRACE_S))


class Listener:
    """Accepts connections on a bound socket for as long as it is open.

    The servers' own accept loops log once per waiting client when the process is out of
    descriptors. This loop stays below the limit, and pauses for a second if the system still
    refuses.
    """

    def __init__(
        self, sock: socket.socket, connections: Connections, protocol: Callable[[Connection], asyncio.BaseProtocol]
    ) -> None:
        self._sock, self._connections, self._protocol = sock, connections, protocol
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._sweeping: asyncio.TimerHandle | None = None
        self._paused: asyncio.TimerHandle | None = None
        self._next: tuple[socket.socket, Any] | None = None  # accepted and waiting for a place
        self._again: asyncio.Handle | None = None

    def open(self) -> None:
        """Start accepting."""
        self._loop.add_reader(self._sock.fileno(), self.accept)
        self._sweep()

    def refuse(self) -> None:
        """Make the system refuse connections from now on, even if another process still has the socket open."""
        with suppress(OSError):  # systems other than Linux refuse only once the last process closes it
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Stop accepting and close the socket."""
        for timer in (self._sweeping, self._paused, self._again):
            if timer is not None:
                timer.cancel()
        if self._next is not None:
            self._next[0].close()
        if self._sock.fileno() >= 0:
            self._loop.remove_reader(self._sock.fileno())
            self._sock.close()

    def _sweep(self) -> None:
        self._connections.sweep()
        self._sweeping = self._loop.call_later(SWEEP_S, self._sweep)

    def accept(self) -> None:
        """Accept some of the connections that wait. The event loop calls this while there are any."""
        if self._sock.fileno() < 0:  # closed after the loop had planned this call
            return
        for _ in range(ACCEPTS_A_TURN):
            try:
                sock, address = self._next or self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause(error)
                return
            self._next = None
            if _is_gone(sock):
                sock.close()
                continue
            if not self._connections.has_verdict(address[0]):
                self._next = sock, address
                self._again = self._loop.call_soon(self.accept)
                return
            sock.setblocking(False)
            connection = self._connections.admit(address[0])
            if connection is None:
                _refuse(sock, self._connections.refusal())
                continue
            task = self._loop.create_task(self._connect(sock, connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _connect(self, sock: socket.socket, connection: Connection) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: self._protocol(connection), sock)
        except OSError:  # the client has already gone
            connection.end()
            sock.close()

    def _pause(self, error: OSError) -> None:
        log.warning("no connection can be accepted", extra={"error": errno.errorcode.get(error.errno or 0, "OSError")})
        self._connections.closed["refused_by_system"] += 1
        self._loop.remove_reader(self._sock.fileno())
        self._paused = self._loop.call_later(SWEEP_S, lambda: self._loop.add_reader(self._sock.fileno(), self.accept))


def _refuse(sock: socket.socket, refusal: bytes) -> None:
    """Answer a connection that has no place, without waiting for its request, and close it."""
    with suppress(OSError):
        sock.send(refusal)
        sock.recv(UNREAD_BYTES)
    sock.close()


def _is_gone(sock: socket.socket) -> bool:
    """Return True if the client reset its connection before it was accepted, so that nobody would read an answer."""
    return sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0


async def stop_accepting(
    gate: RequestGate,
    listener: Listener,
    connections: Connections,
    times: StopTimes,
) -> None:
    """Stop taking connections, then answer requests in progress within `times`.

    A service that ends first drains: it still takes requests while /readyz says that it stops,
    so that balancers notice; then it takes no more connections, and a balancer that never
    asked tries the next instance. A service that is replaced by another process on the same
    socket leaves new connections to that process and answers requests on its own connections.
    In both cases each answer is the last on its connection and says so, so that no client
    sends a request that nobody reads. Without a drain, new requests are refused until the end.
    """
    if gate.is_replaced():
        listener.close()
        gate.end_connections()
        await _wait_until_left(connections, times.hand_over_s, gate.is_replaced)
    elif times.drain_s and not gate.died.is_set():
        gate.end_connections()
        await asyncio.sleep(times.drain_s)
        listener.refuse()
        listener.close()
        await _wait_until_left(connections, LATE_S)  # a connection that was just opened has a request on its way
        connections.drain()
    await gate.stop(times.grace_s)
    listener.close()


async def _wait_until_left(
    connections: Connections, within_s: float, is_replaced: Callable[[], bool] = lambda: True
) -> None:
    """Wait until every client has left, for at most this many seconds, or until the service must end."""
    loop = asyncio.get_running_loop()
    until = loop.time() + within_s
    while len(connections) and is_replaced() and loop.time() < until:  # noqa: ASYNC110 - three things at once
        await asyncio.sleep(LOOK_S)
