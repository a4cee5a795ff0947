"""Limit client connections: how many there may be, and how long each phase of a request may take. Stop taking them.

Both HTTP servers accept through `Listener` and report the phases of each connection, so the
same limits hold for both.
"""

import asyncio
import errno
import logging
import resource
import socket
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from toolserver.core.caller import Addresses
from toolserver.serving.request_gate import RequestGate

log = logging.getLogger(__name__)

SWEEP_S = 1.0
ACCEPTS_A_TURN = 8  # a request in progress needs several turns of the event loop, each after this many new connections
HEAD_BYTES = 64 * 1024  # limit of a request line with its headers
RESERVED_FILES, RESERVED_PART = 64, 5  # descriptors for the database, upstreams, logs: so many, or a fifth if more
NO_DEADLINE = float("inf")
FEW = 2  # connections that a client may have waiting without being the first to lose one
STALLED_S = 2.0  # a client that has not read its answer for so long may lose its connection to another client
HAND_OVER_S = 5.0  # for clients to send the next request on a kept connection and learn that it ends
STOP_S = 10.0  # for requests in progress, a drain included; with what follows, a stop takes less than 15 seconds
LEAST_GRACE_S = 5.0  # of it, for the requests in progress at the end of a drain
LATE_S = 1.0  # for the first request on a connection that was opened at the end of a drain
LOOK_S = 0.05
LINGER_S = 2.0  # for a client to read an answer that came before its request was complete


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits on connections; times are in seconds.

    `head_s` is for the request line and headers, `body_s` for the whole body, `idle_s`
    between requests, `write_s` for a client to receive what was sent.
    """

    in_all: int = 4096
    per_client: int = 256
    head_s: float = 10
    body_s: float = 20
    idle_s: float = 75
    write_s: float = 60

    def allowed(self) -> int:
        """Return how many connections fit below the limit of open files."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft == resource.RLIM_INFINITY:
            return self.in_all
        return max(8, min(self.in_all, soft - max(RESERVED_FILES, soft // RESERVED_PART)))


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


class ClientPlaces:
    """The connections of one client: how many it has, and those that may be closed to make room."""

    __slots__ = ("is_exempt", "name", "places", "waiting")

    def __init__(self, name: str, *, is_exempt: bool) -> None:
        self.name, self.is_exempt = name, is_exempt
        self.places = 0
        self.waiting: dict[Connection, None] = {}  # the longest waiting first


class Connection:
    """One connection and the deadline of its current phase.

    `client` is who it counts for. `is_proxied` is true if a trusted proxy opened it; it then
    counts for the client that a request was forwarded for, until that request is answered,
    and `is_forwarding` is true as long.
    """

    __slots__ = (
        "_all",
        "address",
        "client",
        "deadline",
        "is_forwarding",
        "is_proxied",
        "is_working",
        "transport",
        "unsent_since",
    )

    def __init__(self, everyone: "Connections", address: str, client: ClientPlaces) -> None:
        self._all, self.address, self.client = everyone, address, client
        self.is_proxied, self.is_forwarding = client.is_exempt, False
        self.transport: asyncio.Transport | None = None
        self.deadline = NO_DEADLINE
        self.is_working = False
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
        if self.is_forwarding:
            self._all.count_for(self, None)
        self._wait(self._all.limits.idle_s)

    def await_body(self, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        """Note that the headers are complete and the body is not. The names of the headers are in lower case.

        If a trusted proxy sent them, the request counts for the client in X-Forwarded-For; if
        that client then has too many places, its longest waiting connection is closed.
        """
        if self.is_proxied:
            lines = [value.decode("latin-1") for name, value in headers if name == b"x-forwarded-for"]
            self._all.count_for(self, ", ".join(lines) if lines else None)
        self.deadline = self._all.now() + self._all.limits.body_s

    def await_end(self) -> None:
        """Note that a request was answered before it was complete, so that the client should end the connection."""
        self._wait(LINGER_S)

    def work(self) -> None:
        """Note that the request is complete and being answered, without a deadline."""
        self.is_working = True
        self._all.keep(self)
        self.deadline = NO_DEADLINE

    def end(self) -> None:
        """Note that the connection is closed."""
        self._all.forget(self)

    def _wait(self, seconds: float) -> None:
        self.is_working = False
        self._all.offer(self)
        self.deadline = self._all.now() + seconds


class Connections:
    """All connections of a listener. `closed` counts those that this server ended, by reason.

    A connection waits while its client has something to do: to send the next request or the
    rest of one, or to read an answer. When all places are taken, a waiting connection makes
    room. The client with most of them is the first to lose one, its longest waiting, so a
    client that opens many closes only its own.

    `addresses` names the client behind an address (IPv6 by /64) and a value of
    X-Forwarded-For, if there is one. Trusted proxies have no limit themselves: each of their
    requests counts for the client that it was forwarded for. Without `addresses`, every
    address is a client.
    """

    def __init__(self, limits: ConnectionLimits, now: Callable[[], float], addresses: Addresses | None = None) -> None:
        self.limits, self.now, self._addresses = limits, now, addresses
        self.closed: Counter[str] = Counter()
        self.draining = False
        self._open: set[Connection] = set()
        self._clients: dict[str, ClientPlaces] = {}
        self._waiting: dict[Connection, None] = {}  # of all clients, the longest waiting first
        self._pooled: dict[Connection, None] = {}  # of trusted proxies, which would lose the next request on it
        # clients with more than FEW waiting connections, by the number of these
        self._crowds: dict[int, dict[ClientPlaces, None]] = {}
        self._largest = 0  # that number for the client with most
        self._most = limits.allowed()

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, address: str) -> Connection | None:
        """Return the new connection, or None if its client has too many or all places are taken."""
        client = self._find_client(address, None)
        if client.places >= self.limits.per_client and not client.is_exempt:
            self.closed["per_client"] += 1
            return None
        if len(self._open) >= self._most:
            self.closed["in_all"] += 1
            return None
        connection = Connection(self, address, client)
        self._open.add(connection)
        self._take_place(client)
        return connection

    def has_verdict(self) -> bool:
        """Return True if it can be decided now whether to admit one more connection. False: a place will soon be free.

        If all places are taken, a waiting connection is closed. Its descriptor is free in the
        next turn of the event loop. If all are being answered, there is no place, and waiting
        is useless.
        """
        if len(self._open) < self._most:
            return True
        victim = self._find_victim()
        if victim is None:  # a connection that is only just being opened will wait
            return all(connection.transport is not None for connection in self._open)
        self._abort(victim, "made_room")
        return False

    def count_for(self, connection: Connection, forwarded: str | None) -> None:
        """Count a waiting connection of a trusted proxy for the client of its request, or for the proxy without one."""
        client = self._find_client(connection.address, forwarded)
        connection.is_forwarding = forwarded is not None
        if client is connection.client:
            return
        self.keep(connection)
        self._leave_place(connection.client)
        connection.client = client
        self._take_place(client)
        if client.places > self.limits.per_client and client.waiting and not client.is_exempt:
            self._abort(next(iter(client.waiting)), "per_client")
        self.offer(connection)

    def offer(self, connection: Connection) -> None:
        """Let a connection make room for others from now on, after all those that have waited longer."""
        client = connection.client
        if client.is_exempt:
            self._pooled.pop(connection, None)
            self._pooled[connection] = None
            return
        is_another = client.waiting.pop(connection, True)
        self._waiting.pop(connection, None)
        self._waiting[connection] = client.waiting[connection] = None
        if is_another and len(client.waiting) > FEW:
            self._rank(client, len(client.waiting) - 1)

    def keep(self, connection: Connection) -> None:
        """Let a connection no longer make room."""
        client = connection.client
        if client.is_exempt:
            self._pooled.pop(connection, None)
        elif connection in client.waiting:
            del client.waiting[connection], self._waiting[connection]
            if len(client.waiting) >= FEW:
                self._rank(client, len(client.waiting) + 1)

    def forget(self, connection: Connection) -> None:
        """Remove a closed connection from the count."""
        if connection in self._open:
            self._open.remove(connection)
            self.keep(connection)
            self._leave_place(connection.client)

    def sweep(self) -> None:
        """Abort every connection whose phase has taken too long, or whose client does not read what was sent."""
        now = self.now()
        for connection in list(self._open):
            if connection.deadline <= now:
                self._abort(connection, "deadline")
            elif (unread_s := self._measure_unread(connection, now)) > self.limits.write_s:
                self._abort(connection, "write")
            elif connection.is_working:
                self.keep(connection)
                if unread_s >= STALLED_S:
                    self.offer(connection)

    def drain(self) -> None:
        """Close the connections without a request in progress; the others close after their answer."""
        self.draining = True
        for connection in [*self._waiting, *self._pooled]:
            if connection.transport is not None:
                connection.transport.close()

    def _find_client(self, address: str, forwarded: str | None) -> ClientPlaces:
        addresses = self._addresses
        is_exempt = addresses is not None and forwarded is None and addresses.is_trusted(address)
        if is_exempt:
            name = f"proxy {address}"
        else:
            name = address if addresses is None else addresses.client(address, forwarded)
        return self._clients.get(name) or ClientPlaces(name, is_exempt=is_exempt)

    def _take_place(self, client: ClientPlaces) -> None:
        client.places += 1
        self._clients[client.name] = client

    def _leave_place(self, client: ClientPlaces) -> None:
        client.places -= 1
        if not client.places:
            del self._clients[client.name]

    def _rank(self, client: ClientPlaces, before: int) -> None:
        """Move a client to the others with as many waiting connections; it had one more or one fewer before."""
        after = len(client.waiting)
        if before > FEW:
            del self._crowds[before][client]
            if not self._crowds[before]:
                del self._crowds[before]
        if after > FEW:
            self._crowds.setdefault(after, {})[client] = None
        if after > self._largest or (before == self._largest and before not in self._crowds):
            self._largest = after

    def _find_victim(self) -> Connection | None:
        """Return the connection that makes room: of the client with most, of everyone, at last of trusted proxies."""
        crowd = self._crowds.get(self._largest)
        candidates = next(iter(crowd)).waiting if crowd else self._waiting or self._pooled
        return next(iter(candidates), None)

    def _measure_unread(self, connection: Connection, now: float) -> float:
        """Return for how many seconds a client has not read all that was sent to it."""
        transport = connection.transport
        if transport is None or not transport.get_write_buffer_size():
            connection.unsent_since = None
            return 0.0
        if connection.unsent_since is None:
            connection.unsent_since = now
        return now - connection.unsent_since

    def _abort(self, connection: Connection, reason: str) -> None:
        self.closed[reason] += 1
        self.forget(connection)
        if connection.transport is not None:
            connection.transport.abort()


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
                self._again = self._loop.call_soon(self.accept)
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
        self._paused = self._loop.call_later(SWEEP_S, lambda: self._loop.add_reader(self._sock.fileno(), self.accept))


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
