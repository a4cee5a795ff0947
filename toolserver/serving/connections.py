"""Accept connections, and stop taking them. `admission` decides which of them have a place, and for how long.

Both HTTP servers accept through `Listener` and report the phases of each connection, so the
same limits hold for both.
"""

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from toolserver.serving.admission import SWEEP_S, Connection, Connections
from toolserver.serving.request_gate import RequestGate

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
    so that balancers notice; then it takes no more connections, and a balancer that never asked
    tries the next instance. A service that is replaced by another process on the same socket
    leaves new connections to that process and answers requests on its own connections. In both
    cases each answer is the last on its connection and says so, so that no client sends a
    request that nobody reads. Without a drain, new requests are refused until the end.
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
