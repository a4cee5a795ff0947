"""Limit client connections: how many there may be, and how long each phase of a request may take.

Both HTTP servers accept through `Listener` and report the phases of each connection, so the same limits hold for both.
"""

import asyncio
import errno
import logging
import resource
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

log = logging.getLogger(__name__)

SWEEP_S = 1.0
ACCEPTS_A_TURN = 8  # a request in progress needs several turns of the event loop, each after this many new connections
HEAD_BYTES = 64 * 1024  # limit of a request line with its headers
RESERVED_FILES = 64  # descriptors for the database, upstreams, logs and so on
NO_DEADLINE = float("inf")


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits on connections; times are in seconds.

    `head_s` is for the request line and headers, `body_s` for the whole body, `idle_s` between requests,
    `write_s` for a client to receive what was sent. `client_of` names the client behind an address (IPv6 by /64);
    `is_exempt` is true for addresses without a limit, such as proxies.
    """

    in_all: int = 4096
    per_client: int = 256
    head_s: float = 10
    body_s: float = 20
    idle_s: float = 75
    write_s: float = 60
    client_of: Callable[[str], str] = field(default=str)
    is_exempt: Callable[[str], bool] = field(default=lambda address: False)

    def allowed(self) -> int:
        """Return how many connections fit below the limit of open files."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft == resource.RLIM_INFINITY:
            return self.in_all
        return max(8, min(self.in_all, soft - RESERVED_FILES))


class Connection:
    """One connection and the deadline of its current phase."""

    __slots__ = ("_all", "client", "deadline", "is_waiting", "transport", "unsent_since")

    def __init__(self, everyone: "Connections", client: str) -> None:
        self._all, self.client = everyone, client
        self.transport: asyncio.Transport | None = None
        self.deadline = NO_DEADLINE
        self.is_waiting: Callable[[], bool] = lambda: (
            True
        )  # checked once a deadline has passed, if the end of the body is not reported
        self.unsent_since: float | None = None

    def begin(self, transport: asyncio.Transport) -> None:
        """Start to wait for the first request."""
        self.transport = transport
        self.await_head()

    def await_head(self) -> None:
        """Note that a request has begun to arrive."""
        self._wait(self._all.limits.head_s)

    def await_request(self) -> None:
        """Note that the last request is answered and the client may send another."""
        if self._all.draining and self.transport is not None:
            self.transport.close()
        self._wait(self._all.limits.idle_s)

    def await_body(self) -> None:
        """Note that the headers are complete and the body is not."""
        self._all.waiting.pop(self, None)
        self.deadline = self._all.now() + self._all.limits.body_s

    def work(self) -> None:
        """Note that the request is complete and being answered, without a deadline."""
        self._all.waiting.pop(self, None)
        self.deadline = NO_DEADLINE

    def end(self) -> None:
        """Note that the connection is closed."""
        self._all.forget(self)

    def _wait(self, seconds: float) -> None:
        waiting = self._all.waiting
        waiting.pop(self, None)
        waiting[self] = None
        self.deadline = self._all.now() + seconds


class Connections:
    """All connections of a listener. `closed` counts those that this server ended, by reason."""

    def __init__(self, limits: ConnectionLimits, now: Callable[[], float]) -> None:
        self.limits, self.now = limits, now
        self.waiting: dict[Connection, None] = {}  # those without a request in progress, the longest waiting first
        self.closed: Counter[str] = Counter()
        self.draining = False
        self._open: set[Connection] = set()
        self._clients: Counter[str] = Counter()
        self._most = limits.allowed()

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, address: str) -> Connection | None:
        """Return the new connection, or None if its client has too many or all places are taken."""
        client = self.limits.client_of(address)
        if self._clients[client] >= self.limits.per_client and not self.limits.is_exempt(address):
            self.closed["per_client"] += 1
            return None
        if len(self._open) >= self._most:
            self.closed["in_all"] += 1
            return None
        connection = Connection(self, client)
        self._open.add(connection)
        self._clients[client] += 1
        return connection

    def has_verdict(self) -> bool:
        """Return True if it can be decided now whether to admit one more connection. False: a place will soon be free.

        If all places are taken, the connection that has waited longest without a request is closed. Its descriptor is
        free in the next turn of the event loop. If all are being answered, there is no place, and waiting is useless.
        """
        if len(self._open) < self._most:
            return True
        if not self.waiting and any(connection.transport is None for connection in self._open):
            return False  # a connection that is only just being opened will wait
        victim = next(iter(self.waiting), None)
        if victim is not None:
            self._abort(victim, "made_room")
        return victim is None

    def forget(self, connection: Connection) -> None:
        """Remove a closed connection from the count."""
        if connection in self._open:
            self._open.remove(connection)
            self.waiting.pop(connection, None)
            self._clients[connection.client] -= 1
            if not self._clients[connection.client]:
                del self._clients[connection.client]

    def sweep(self) -> None:
        """Abort every connection whose phase has taken too long, or whose client does not read what was sent."""
        now = self.now()
        for connection in list(self._open):
            if connection.deadline <= now:
                if connection.is_waiting():
                    self._abort(connection, "deadline")
                else:
                    connection.deadline = NO_DEADLINE
            elif self._is_stalled(connection, now):
                self._abort(connection, "write")

    def drain(self) -> None:
        """Close the connections without a request in progress; the others close after their answer."""
        self.draining = True
        for connection in list(self.waiting):
            if connection.transport is not None:
                connection.transport.close()

    def _is_stalled(self, connection: Connection, now: float) -> bool:
        transport = connection.transport
        if transport is None or not transport.get_write_buffer_size():
            connection.unsent_since = None
            return False
        if connection.unsent_since is None:
            connection.unsent_since = now
        return now - connection.unsent_since > self.limits.write_s

    def _abort(self, connection: Connection, reason: str) -> None:
        self.closed[reason] += 1
        self.forget(connection)
        if connection.transport is not None:
            connection.transport.abort()


class Listener:
    """Accepts connections on a bound socket for as long as it is open.

    The servers' own accept loops log once per waiting client when the process is out of descriptors. This loop stays
    below the limit, and pauses for a second if the system still refuses.
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
        self._loop.add_reader(self._sock.fileno(), self._accept)
        self._sweep()

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

    def _accept(self) -> None:
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
            if not self._connections.has_verdict():
                self._next = sock, address
                self._again = self._loop.call_soon(self._accept)
                return
            connection = self._connections.admit(address[0])
            if connection is None:
                sock.close()
                continue
            sock.setblocking(False)
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
        self._paused = self._loop.call_later(SWEEP_S, lambda: self._loop.add_reader(self._sock.fileno(), self._accept))


def _is_gone(sock: socket.socket) -> bool:
    """Return True if the client reset its connection before it was accepted, so that nobody would read an answer."""
    return sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0
