"""Decide which connections and requests have a place, and how long each phase of a request may take.

A place is scarce in two ways. A connection takes a descriptor from when it is accepted; a
request takes work only once its body is whole. While there are free places, a client may have
`per_client` of them. When all are taken, one of the client with most makes room, whatever it
is doing: first what it has not finished, the oldest of it, then the oldest request that is
being answered. A client that has no more than `FEW` loses a place only if nobody has more,
and then only a connection with an unfinished request, the oldest of all.

A client is an IPv4 address or the /64 of an IPv6 address, behind a trusted proxy the one that
the request was forwarded for. What a /48 has counts together first, so that 65,536 networks
of one owner weigh as one.

A refused client gets a 503 of a few bytes, except on a connection between two requests,
where a client would take it for the answer to the next one.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from toolserver.core.caller import Addresses, crowd_of
from toolserver.core.descriptors import read_descriptor_limit
from toolserver.core.metrics import ConnectionCounts

SWEEP_S = 1.0
HEAD_BYTES = 64 * 1024  # limit of a request line with its headers
RESERVED_FILES, RESERVED_PART = 64, 5  # descriptors for the database, upstreams, logs: so many, or a fifth if more
NO_DEADLINE = float("inf")
FEW = 2  # places that a client may have without being the first to lose one
STALLED_S = 2.0  # a client that has not read its answer for so long may lose its connection to another client
LINGER_S = 2.0  # for a client to read an answer that came before its request was complete
PLAIN_REFUSAL = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"

_TCP_INFO = (socket.IPPROTO_TCP, socket.TCP_INFO) if hasattr(socket, "TCP_INFO") else None
_ENDED = (7, 8)  # the states TCP_CLOSE and TCP_CLOSE_WAIT of Linux

T = TypeVar("T")


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
        most = read_descriptor_limit()
        if most is None:
            return self.in_all
        return max(8, min(self.in_all, most - max(RESERVED_FILES, most // RESERVED_PART)))


class RequestInProgress:
    """One request that the app has: whether the app waits for its client, whether its answer has begun, its refusal."""

    __slots__ = (
        "_is_complete",
        "_is_listening",
        "_receive",
        "_send",
        "_task",
        "has_answer",
        "is_abandoned",
        "is_awaiting_body",
        "is_refused",
    )

    def __init__(self, receive: Any, send: Any) -> None:
        self._receive, self._send, self._task = receive, send, asyncio.current_task()
        self._is_complete = self._is_listening = self.is_awaiting_body = False
        self.has_answer = self.is_abandoned = self.is_refused = False

    async def receive(self) -> Any:
        if self._is_complete:
            self._is_listening = True
            return await self._receive()
        self.is_awaiting_body = True
        message = await self._receive()
        self.is_awaiting_body = False
        self._is_complete = not message.get("more_body")
        return message

    async def send(self, message: Any) -> None:
        self.has_answer = True
        await self._send(message)

    def refuse(self) -> None:
        """Cancel the app, once. The gate then answers in its place."""
        if not self.is_refused and self._task is not None:
            self.is_refused = True
            self._task.cancel()

    def abandon(self) -> None:
        """Cancel the app, because its client has gone. One that listens for that decides itself what it finishes."""
        if not (self._is_listening or self.is_awaiting_body or self.has_answer or self.is_abandoned or self.is_refused):
            self.is_abandoned = True
            if self._task is not None:
                self._task.cancel()

    def is_left(self) -> bool:
        """Return True if the app was cancelled only because its client has gone."""
        return self.is_abandoned and self._task is not None and not self._task.uncancel()

    def take_over(self) -> bool:
        """Return True if the app was cancelled only to be refused, and the gate can still answer."""
        if not self.is_refused or self._task is None:
            return False
        return not self._task.uncancel() and not self.has_answer


class PlaceRanking(Generic[T]):
    """Finds those with most places without a search. Numbers change by one."""

    __slots__ = ("_members", "most")

    def __init__(self) -> None:
        self._members: dict[int, dict[T, None]] = {}
        self.most = 0

    def move(self, member: T, before: int, after: int) -> None:
        """Note that a member has `after` places now. 0 is for one that is new or leaves."""
        if before:
            del self._members[before][member]
            if not self._members[before]:
                del self._members[before]
        if after:
            self._members.setdefault(after, {})[member] = None
        if after > self.most or (before == self.most and before not in self._members):
            self.most = after

    def leaders(self) -> Collection[T]:
        """Return those with most places, in the order in which they got there."""
        return self._members.get(self.most, {})


class Crowd:
    """The clients of one /48, or one client that is in none, and how many places they have together."""

    __slots__ = ("clients", "name", "places")

    def __init__(self, name: str) -> None:
        self.name = name
        self.places = 0
        self.clients: PlaceRanking[ClientPlaces] = PlaceRanking()

    def find_greediest(self) -> "ClientPlaces":
        """Return the client with most places, of equals the one with the oldest unfinished request."""
        return min(self.clients.leaders(), key=ClientPlaces.order)

    def order(self) -> float:
        """Return the place in time of the connection that this crowd would lose first."""
        return self.find_greediest().order()


class ClientPlaces:
    """The connections of one client: how many, those that wait for it, and those that are being answered."""

    __slots__ = ("crowd", "is_exempt", "name", "places", "waiting", "working")

    def __init__(self, name: str, crowd: Crowd, *, is_exempt: bool) -> None:
        self.name, self.crowd, self.is_exempt = name, crowd, is_exempt
        self.places = 0
        self.waiting: dict[Connection, None] = {}  # the longest waiting first
        self.working: dict[Connection, None] = {}  # the longest working first

    def order(self) -> float:
        """Return the place in time of the oldest connection that waits for this client, infinity without one."""
        return next(iter(self.waiting)).waits_since if self.waiting else NO_DEADLINE


class Connection:
    """One connection and the deadline of its current phase.

    `client` is who it counts for. `is_proxied` is true if a trusted proxy opened it; it then
    counts for the client that a request was forwarded for, until that request is answered,
    and `is_forwarding` is true as long. `is_left` is true once the client has gone.
    `is_refused` is true once its client has too many complete requests: the gate then answers
    503 in place of the app.
    """

    __slots__ = (
        "_all",
        "address",
        "client",
        "deadline",
        "is_begun",
        "is_forwarding",
        "is_left",
        "is_proxied",
        "is_refused",
        "is_working",
        "request",
        "transport",
        "unsent_since",
        "waits_since",
    )

    def __init__(self, everyone: "Connections", address: str, client: ClientPlaces) -> None:
        self._all, self.address, self.client = everyone, address, client
        self.is_proxied, self.is_forwarding = client.is_exempt, False
        self.transport: asyncio.Transport | None = None
        self.request: RequestInProgress | None = None
        self.deadline = NO_DEADLINE
        self.is_begun = self.is_left = self.is_refused = self.is_working = False
        self.unsent_since: float | None = None
        self.waits_since = 0

    def begin(self, transport: asyncio.Transport) -> None:
        """Start to wait for the first request."""
        self.transport = transport
        self._wait(self._all.limits.head_s)

    def await_head(self) -> None:
        """Note that a request has begun to arrive."""
        self.is_begun = True
        self._wait(self._all.limits.head_s)

    def await_request(self) -> None:
        """Note that the last request is answered and the client may send another."""
        if self._all.draining and self.transport is not None:
            self.transport.close()
        if self.is_forwarding:
            self._all.count_for(self, None)
        self.is_begun = self.is_refused = False
        self._wait(self._all.limits.idle_s)

    def await_body(self, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        """Note that the headers are complete and the body is not. The names of the headers are in lower case.

        If a trusted proxy sent them, the request counts for the client in X-Forwarded-For; if
        that client then has too many places, its longest waiting connection is closed, and
        without one this request is refused.
        """
        self.is_begun = True
        if self.is_proxied:
            lines = [value.decode("latin-1") for name, value in headers if name == b"x-forwarded-for"]
            self._all.count_for(self, ", ".join(lines) if lines else None)
        self.deadline = self._all.now() + self._all.limits.body_s

    def await_end(self) -> None:
        """Note that a request was answered before it was complete, so that the client should end the connection."""
        self.is_begun = False
        self._wait(LINGER_S)

    def work(self) -> None:
        """Note that the request is complete and being answered, without a deadline."""
        self.is_working = True
        self._all.keep(self)
        self.deadline = NO_DEADLINE

    def leave(self) -> None:
        """Note that the client has gone, so that nobody waits for an answer."""
        self.is_left = True
        if self.request is not None:
            self.request.abandon()

    def hang_up(self) -> None:
        """Close it without an answer to the last request, for which a server would otherwise answer 500."""
        if self.transport is not None:
            self.transport.close()

    def end(self) -> None:
        """Note that the connection is closed."""
        self._all.forget(self)
        self.leave()

    def has_left(self) -> bool:
        """Return True if a client has gone whose end nobody reads, because it sent more than is read meanwhile."""
        transport = self.transport
        if transport is None or transport.is_closing() or transport.is_reading():
            return False
        sock = transport.get_extra_info("socket")
        return sock is not None and _TCP_INFO is not None and sock.getsockopt(*_TCP_INFO, 1)[0] in _ENDED

    def close(self, refusal: bytes) -> None:
        """Close it at once. A client that waits for an answer reads this refusal first."""
        transport = self.transport
        if transport is None:
            return
        has_answer = self.request is not None and self.request.has_answer
        if not self.is_begun or has_answer or transport.is_closing() or transport.get_write_buffer_size():
            transport.abort()
            return
        transport.write(refusal)
        if transport.get_write_buffer_size():
            transport.abort()
        else:
            transport.close()

    def _wait(self, seconds: float) -> None:
        self.is_working = False
        self._all.offer(self)
        self.deadline = self._all.now() + seconds


class Connections:
    """All connections of a listener. `closed` counts those that this server ended or refused, by reason.

    A connection waits while its client has something to do: to send the next request or the
    rest of one, or to read an answer. Which one makes room when all places are taken, the
    comment on top of the module says.

    `addresses` names the client behind an address (IPv6 by /64) and a value of
    X-Forwarded-For, if there is one. Trusted proxies have no limit themselves: each of their
    requests counts for the client that it was forwarded for. Without `addresses`, every
    address is a client. `refusal` makes the bytes of a refusal.
    """

    def __init__(
        self,
        limits: ConnectionLimits,
        now: Callable[[], float],
        addresses: Addresses | None = None,
        refusal: Callable[[], bytes] = lambda: PLAIN_REFUSAL,
    ) -> None:
        self.limits, self.now, self.refusal, self._addresses = limits, now, refusal, addresses
        self.closed: Counter[str] = Counter()
        self.draining = False
        self._open: set[Connection] = set()
        self._clients: dict[str, ClientPlaces] = {}
        self._crowds: dict[str, Crowd] = {}
        self._ranking: PlaceRanking[Crowd] = PlaceRanking()
        self._waiting: dict[Connection, None] = {}  # of all clients, the longest waiting first
        self._pooled: dict[Connection, None] = {}  # of trusted proxies, which would lose the next request on it
        self._waits = 0
        self.most = limits.allowed()

    def __len__(self) -> int:
        return len(self._open)

    def count(self) -> ConnectionCounts:
        """Return how many there are, by what they do, and how many this server ended or refused."""
        waiting, pooled = len(self._waiting), len(self._pooled)
        phases = {"waiting": waiting, "answering": len(self._open) - waiting - pooled, "of_proxies": pooled}
        return ConnectionCounts(self.most, len(self._clients), phases, dict(self.closed))

    def admit(self, address: str) -> Connection | None:
        """Return the new connection, or None if its client has too many or all places are taken."""
        client = self._find_client(address, None)
        if client.places >= self.limits.per_client and not client.is_exempt:
            self.closed["per_client"] += 1
            return None
        if len(self._open) >= self.most:
            self.closed["in_all"] += 1
            return None
        connection = Connection(self, address, client)
        self._open.add(connection)
        self._take_place(client)
        return connection

    def has_verdict(self, address: str) -> bool:
        """Return True if it can be decided now whether to admit one more connection. False: a place will soon be free.

        If all places are taken, another connection is closed, and its descriptor is free in
        the next turn of the event loop. There is no place, and waiting is useless, if only
        requests that are being answered could make room, and those of this client first.
        """
        if len(self._open) < self.most:
            return True
        victim = self._find_victim()
        if victim is None:  # a connection that is only just being opened will wait
            return all(connection.transport is not None for connection in self._open)
        is_working = victim in victim.client.working
        if is_working and victim.client is self._find_client(address, None):
            return True
        self._end(victim, "cut_short" if is_working else "made_room")
        return False

    def count_for(self, connection: Connection, forwarded: str | None) -> None:
        """Count a waiting connection of a trusted proxy for the client of its request, or for the proxy without one."""
        client = self._find_client(connection.address, forwarded)
        connection.is_forwarding = forwarded is not None
        if client is connection.client:
            return
        self.keep(connection)
        connection.client.working.pop(connection, None)
        self._leave_place(connection.client)
        connection.client = client
        self._take_place(client)
        if client.places > self.limits.per_client and not client.is_exempt:
            if client.waiting:
                self._end(next(iter(client.waiting)), "per_client")
            else:
                self.closed["per_client"] += 1
                connection.is_refused = True
        self.offer(connection)

    def offer(self, connection: Connection) -> None:
        """Let a connection make room for others from now on, after all those that have waited longer."""
        client = connection.client
        if client.is_exempt:
            self._pooled.pop(connection, None)
            self._pooled[connection] = None
            return
        self._waits += 1
        connection.waits_since = self._waits
        client.working.pop(connection, None)
        client.waiting.pop(connection, None)
        self._waiting.pop(connection, None)
        self._waiting[connection] = client.waiting[connection] = None

    def keep(self, connection: Connection) -> None:
        """Let a connection make room only after all of its client that wait."""
        client = connection.client
        if client.is_exempt:
            self._pooled.pop(connection, None)
        elif connection not in client.working:
            client.waiting.pop(connection, None)
            self._waiting.pop(connection, None)
            client.working[connection] = None

    def forget(self, connection: Connection) -> None:
        """Remove a closed connection from the count."""
        if connection in self._open:
            self._open.remove(connection)
            self.keep(connection)
            connection.client.working.pop(connection, None)
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
                if connection.has_left():
                    self._abort(connection, "left")
                elif unread_s >= STALLED_S:
                    self.offer(connection)
                else:
                    self.keep(connection)

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
        client = self._clients.get(name)
        if client is None:
            crowd = crowd_of(name)
            client = ClientPlaces(name, self._crowds.get(crowd) or Crowd(crowd), is_exempt=is_exempt)
        return client

    def _take_place(self, client: ClientPlaces) -> None:
        client.places += 1
        self._clients[client.name] = client
        self._rank(client, 1)

    def _leave_place(self, client: ClientPlaces) -> None:
        client.places -= 1
        self._rank(client, -1)
        if not client.places:
            del self._clients[client.name]

    def _rank(self, client: ClientPlaces, change: int) -> None:
        """Move a client and its crowd, which have one place more or fewer than before."""
        if client.is_exempt:
            return
        crowd = client.crowd
        crowd.places += change
        crowd.clients.move(client, client.places - change, client.places)
        self._ranking.move(crowd, crowd.places - change, crowd.places)
        if crowd.places:
            self._crowds[crowd.name] = crowd
        else:
            del self._crowds[crowd.name]

    def _find_victim(self) -> Connection | None:
        """Return the connection that makes room, or None if there is none that may."""
        if self._ranking.most > FEW:
            client = min(self._ranking.leaders(), key=Crowd.order).find_greediest()
            return next(iter(client.waiting or client.working), None)
        return next(iter(self._waiting or self._pooled), None)

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

    def _end(self, connection: Connection, reason: str) -> None:
        """Take a place away for the sake of other clients, and say so to a client that waits for an answer."""
        self.closed[reason] += 1
        self.forget(connection)
        connection.close(self.refusal())
