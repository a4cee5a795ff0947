"""Connections: bounds per client and in all, deadlines by phase, and room made for those who come."""

import asyncio
import resource
import socket
import struct

import pytest

from toolserver.core.caller import Addresses
from toolserver.registry.site_facts import SiteFacts
from toolserver.serving.admission import STALLED_S, Connection, ConnectionLimits, Connections
from toolserver.serving.connections import Listener, RequestGate, StopTimes, stop_accepting


class Wire:
    """A transport that only remembers how it ended."""

    def __init__(self, unsent: int = 0) -> None:
        self.ended: list[str] = []
        self.unsent = unsent
        self.is_refused = False

    def abort(self) -> None:
        self.ended.append("abort")

    def write(self, words: bytes) -> None:
        self.is_refused = words.startswith(b"HTTP/1.1 503 ")

    def close(self) -> None:
        self.ended.append("503" if self.is_refused else "close")

    def is_closing(self) -> bool:
        return bool(self.ended)

    def is_reading(self) -> bool:
        return True

    def get_write_buffer_size(self) -> int:
        return self.unsent


class Unadmitting(Connections):
    """Notes the addresses for which a place is wanted, and has none."""

    def __init__(self) -> None:
        super().__init__(ConnectionLimits(), asyncio.get_running_loop().time)
        self.wanted: list[str] = []

    def admit(self, address: str) -> None:
        self.wanted.append(address)


class Time:
    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


PROXY = "10.0.0.1"
ADDRESSES = Addresses([PROXY])


def forwarded(client: str) -> list[tuple[bytes, bytes]]:
    """The headers of a request for a client that claims to be another one."""
    return [(b"host", b"a.example"), (b"x-forwarded-for", f"203.0.113.1, {client}".encode())]


def opened(connections: Connections, address: str = "192.0.2.1") -> Connection:
    connection = connections.admit(address)
    assert connection is not None
    connection.begin(Wire())  # type: ignore[arg-type]
    return connection


def ended(connection: Connection) -> list[str]:
    return connection.transport.ended  # type: ignore[union-attr]


def test_a_client_has_a_share_and_one_that_leaves_frees_its_place():
    connections = Connections(ConnectionLimits(per_client=2), Time())
    first, _ = opened(connections), opened(connections)

    assert connections.admit("192.0.2.1") is None
    assert connections.admit("192.0.2.2") is not None
    first.end()
    assert connections.admit("192.0.2.1") is not None
    assert connections.closed == {"per_client": 1}


def test_a_trusted_proxy_has_no_share_of_its_own():
    connections = Connections(ConnectionLimits(per_client=1), Time(), ADDRESSES)

    assert [connections.admit("10.0.0.1") is not None for _ in range(5)] == [True] * 5


@pytest.mark.parametrize("phase", ["await_head", "await_body", "await_request", "await_end"])
def test_when_all_places_are_taken_the_longest_waiting_gives_up_its_place(phase):
    connections = Connections(ConnectionLimits(in_all=8), Time())
    waiting = [opened(connections, f"192.0.2.{n}") for n in range(8)]
    for connection in waiting:
        getattr(connection, phase)()
    waiting[0].work()

    assert not connections.has_verdict("203.0.113.9"), "its place is free in the next turn"
    assert ended(waiting[0]) == [], "it is being answered"
    is_unfinished = phase in ("await_head", "await_body")
    assert ended(waiting[1]) == ["503" if is_unfinished else "abort"], "an idle client would misread a 503"
    assert connections.has_verdict("203.0.113.9")
    assert connections.admit("198.51.100.1") is not None
    assert len(connections) == 8


def test_the_client_with_most_places_is_the_first_to_lose_one_and_keeps_two():
    connections = Connections(ConnectionLimits(in_all=9), Time())
    slow = opened(connections, "192.0.2.1")
    slow.await_body()
    many = [opened(connections, "192.0.2.2") for _ in range(5)]
    fewer = [opened(connections, "192.0.2.3") for _ in range(3)]
    for connection in (*many, *fewer):
        connection.await_body()
    many[0].work()
    newcomers = [f"198.51.100.{n}" for n in range(5)]

    for newcomer, expected in zip(newcomers, (many[1], many[2], many[3], fewer[0], slow), strict=True):
        assert not connections.has_verdict(newcomer)
        assert ended(expected) == ["503"]
        opened(connections, newcomer).work()
    assert [ended(each) for each in (many[0], many[4], *fewer[1:])] == [[]] * 4, "two are left to each"


def test_complete_requests_of_the_client_with_most_are_refused_for_others_and_not_for_its_own_next_one():
    connections = Connections(ConnectionLimits(in_all=8), Time())
    honest = opened(connections, "192.0.2.1")
    honest.await_body()
    many = [opened(connections, "192.0.2.2") for _ in range(7)]
    for connection in many:
        connection.await_head()
        connection.await_body()
        connection.work()

    assert connections.has_verdict("192.0.2.2")
    assert connections.admit("192.0.2.2") is None, "its next one is refused, and nothing that is being answered"
    for number in range(5):
        assert not connections.has_verdict(f"198.51.100.{number}")
        assert ended(many[number]) == ["503"], "the oldest first"
        opened(connections, f"198.51.100.{number}").work()
    assert [ended(each) for each in (honest, *many[5:])] == [[]] * 3
    assert connections.closed == {"in_all": 1, "cut_short": 5}


def test_at_a_tie_the_oldest_unfinished_request_loses():
    connections = Connections(ConnectionLimits(in_all=9), Time())
    first, third, second = ([opened(connections, f"192.0.2.{n}") for _ in range(3)] for n in range(3))
    for connection in first:
        connection.work()
    for connection in (*second, *third):
        connection.await_body()

    assert not connections.has_verdict("203.0.113.9")
    assert ended(third[0]) == ["503"]


def test_networks_of_one_48_weigh_as_one_and_lose_before_a_client_with_three():
    connections = Connections(ConnectionLimits(in_all=12), Time(), Addresses([]))
    honest = [opened(connections, "2001:db8:ffff:1::1") for _ in range(3)]
    many = [opened(connections, f"2001:db8:1:{n:x}::1") for n in range(9)]
    for connection in (*honest, *many):
        connection.await_body()
    for n in range(6):
        assert not connections.has_verdict("192.0.2.1")
        assert ended(many[n]) == ["503"]
        opened(connections, f"192.0.2.{n}").work()

    assert [ended(connection) for connection in honest] == [[]] * 3


def test_a_client_behind_a_proxy_with_too_many_complete_requests_is_refused_until_one_is_answered():
    connections = Connections(ConnectionLimits(in_all=12, per_client=2), Time(), ADDRESSES)
    kept = [opened(connections, PROXY) for _ in range(3)]
    for connection in kept:
        connection.await_body(forwarded("192.0.2.2"))
        connection.work()
    assert [connection.is_refused for connection in kept] == [False, False, True]
    for connection in (kept[2], kept[0]):
        connection.await_request()
    kept[2].await_body(forwarded("192.0.2.2"))

    assert not kept[2].is_refused
    assert [ended(connection) for connection in kept] == [[]] * 3
    assert connections.closed == {"per_client": 1}


def test_a_flood_of_unfinished_requests_closes_its_own_connections_and_no_request_of_others():
    """Five addresses, each with as many as it may have: more than there are places."""
    connections = Connections(ConnectionLimits(in_all=100, per_client=30), Time())
    honest: list[Connection] = []
    for n in range(400):
        if n % 20 == 0:
            while not connections.has_verdict("203.0.113.9"):
                pass
            honest.append(opened(connections, f"198.51.100.{n % 7}"))
        while not connections.has_verdict("203.0.113.9"):
            pass
        if (attacker := connections.admit(f"192.0.2.{n % 5}")) is not None:
            attacker.begin(Wire())  # type: ignore[arg-type]
            attacker.await_body()
    for connection in honest:
        connection.await_body()
        connection.work()

    assert [ended(connection) for connection in honest] == [[]] * 20
    assert connections.closed["in_all"] == 0
    assert connections.closed["made_room"] > 0


def test_a_connection_that_moves_counts_once_and_those_without_any_are_forgotten():
    connections = Connections(ConnectionLimits(in_all=100), Time(), ADDRESSES)
    opened_ones = [opened(connections, PROXY) for _ in range(6)]
    for _ in range(3):
        for n, connection in enumerate(opened_ones):
            connection.await_head()
            connection.await_body(forwarded(f"192.0.2.{n % 2}"))
            connection.work()
            connection.await_request()
    for connection in opened_ones:
        connection.end()

    assert connections.count() == (100, 0, {"waiting": 0, "answering": 0, "of_proxies": 0}, {})


def test_a_request_behind_a_trusted_proxy_counts_for_the_client_it_was_forwarded_for():
    connections = Connections(ConnectionLimits(in_all=12, per_client=4), Time(), ADDRESSES)
    idle = opened(connections, PROXY)
    idle.await_request()
    honest = opened(connections, PROXY)
    honest.await_body(forwarded("198.51.100.7"))
    many = [opened(connections, PROXY) for _ in range(6)]
    for connection in many:
        connection.await_body(forwarded("192.0.2.2"))

    assert [ended(each) for each in many] == [["503"], ["503"], [], [], [], []], "a client has four places"
    assert connections.closed == {"per_client": 2}
    for _ in range(6):
        opened(connections, PROXY).work()
    assert not connections.has_verdict("203.0.113.9")
    assert ended(many[2]) == ["503"]
    assert (ended(honest), ended(idle)) == ([], [])


def test_a_client_behind_a_proxy_has_a_place_only_while_a_request_of_its_is_under_way():
    connections = Connections(ConnectionLimits(in_all=12, per_client=2), Time(), ADDRESSES)
    kept = [opened(connections, PROXY) for _ in range(5)]
    for connection in kept:
        connection.await_body(forwarded("192.0.2.2"))
        connection.work()
        connection.await_request()

    assert [ended(connection) for connection in kept] == [[]] * 5
    assert connections.closed == {}


def test_a_connection_that_a_trusted_proxy_keeps_is_the_last_to_make_room():
    """The proxy may be sending an honest request on it, and not send it again."""
    connections = Connections(ConnectionLimits(in_all=8), Time(), ADDRESSES)
    kept = [opened(connections, PROXY) for _ in range(7)]
    direct = opened(connections, "192.0.2.1")

    assert not connections.has_verdict("203.0.113.9")
    assert ended(direct) == ["abort"]
    assert connections.admit("192.0.2.2") is not None
    assert not connections.has_verdict("203.0.113.9")
    assert ended(kept[0]) == ["abort"]


def test_who_does_not_read_an_answer_makes_room_and_who_reads_on_keeps_its_place():
    time = Time()
    connections = Connections(ConnectionLimits(in_all=8, write_s=60), time)
    working = [opened(connections, f"192.0.2.{n}") for n in range(8)]
    for connection in working:
        connection.work()
    for connection in working[:2]:
        connection.transport.unsent = 100  # type: ignore[union-attr]
    connections.sweep()
    assert connections.has_verdict("203.0.113.9"), "it may be reading"
    time.at = STALLED_S
    working[0].transport.unsent = 0  # type: ignore[union-attr]
    connections.sweep()

    assert not connections.has_verdict("203.0.113.9")
    assert [ended(each) for each in working] == [[], ["abort"], *[[]] * 6]
    opened(connections, "192.0.2.2").work()
    assert connections.has_verdict("203.0.113.9")


def test_nobody_who_is_being_answered_makes_room():
    connections = Connections(ConnectionLimits(in_all=8), Time())
    for n in range(8):
        opened(connections, f"192.0.2.{n}").work()

    assert connections.has_verdict("203.0.113.9")
    assert connections.admit("198.51.100.1") is None
    assert connections.closed == {"in_all": 1}


@pytest.mark.parametrize(
    ("phase", "seconds"),
    [("await_head", 10), ("await_body", 20), ("await_request", 75), ("await_end", 2), ("work", None)],
)
def test_each_phase_has_its_deadline(phase, seconds):
    time = Time()
    connections = Connections(ConnectionLimits(), time)
    connection = opened(connections)
    getattr(connection, phase)()

    time.at = 1e6 if seconds is None else seconds - 0.1
    connections.sweep()
    assert ended(connection) == []
    if seconds is not None:
        time.at = seconds
        connections.sweep()
        assert ended(connection) == ["abort"]
        assert len(connections) == 0


def test_a_client_that_takes_nothing_is_cut_off_and_one_that_takes_all_is_not():
    time = Time()
    connections = Connections(ConnectionLimits(write_s=60), time)
    stuck, quick = opened(connections), opened(connections)
    for connection in (stuck, quick):
        connection.work()
        connection.transport.unsent = 100  # type: ignore[union-attr]
    connections.sweep()
    quick.transport.unsent = 0  # type: ignore[union-attr]
    time.at = 30
    connections.sweep()
    quick.transport.unsent = 100  # type: ignore[union-attr]
    time.at = 61
    connections.sweep()

    assert (ended(stuck), ended(quick)) == (["abort"], [])
    assert connections.closed == {"write": 1}


def test_draining_closes_the_idle_at_once_and_the_busy_after_their_answer():
    connections = Connections(ConnectionLimits(), Time())
    idle, busy = opened(connections), opened(connections)
    busy.work()
    connections.drain()

    assert (ended(idle), ended(busy)) == (["close"], [])
    busy.await_request()
    assert ended(busy) == ["close"]


@pytest.mark.parametrize(("descriptors", "places"), [(128, 64), (1024, 820), (65_536, 4096)])
def test_no_more_connections_than_descriptors_allow(monkeypatch, descriptors, places):
    """The rest is for what answers them: a soak test needs up to 92."""
    monkeypatch.setattr(resource, "getrlimit", lambda which: (descriptors, descriptors))

    assert ConnectionLimits(in_all=4096).allowed() == places


class Echo(asyncio.Protocol):
    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.connection.begin(transport)  # type: ignore[arg-type]
        transport.write(b"hello")  # type: ignore[attr-defined]

    def connection_lost(self, exc: Exception | None) -> None:
        self.connection.end()


def listening() -> socket.socket:
    sock = socket.create_server(("127.0.0.1", 0))
    sock.setblocking(False)
    return sock


async def test_a_listener_accepts_up_to_the_share_and_closes_the_rest():
    sock = listening()
    address = sock.getsockname()
    connections = Connections(ConnectionLimits(per_client=1), asyncio.get_running_loop().time)
    listener = Listener(sock, connections, Echo)
    listener.open()
    reader, writer = await asyncio.open_connection(*address)
    assert await reader.readexactly(5) == b"hello"
    refused, other = await asyncio.open_connection(*address)
    assert (await refused.read()).startswith(b"HTTP/1.1 503 ")
    for each in (writer, other):
        each.close()
        await each.wait_closed()
    listener.close()
    assert sock.fileno() == -1


async def test_of_many_that_come_at_once_the_last_is_served_and_the_first_make_room():
    """More silent clients than places, in the queue before any of them was accepted."""
    sock = listening()
    sock.listen(100)
    connections = Connections(ConnectionLimits(in_all=8), asyncio.get_running_loop().time)
    silent = [socket.create_connection(sock.getsockname()) for _ in range(30)]
    honest = socket.create_connection(sock.getsockname())
    listener = Listener(sock, connections, Echo)
    listener.open()
    reader, writer = await asyncio.open_connection(sock=honest)

    async with asyncio.timeout(5):
        assert await reader.readexactly(5) == b"hello"
    assert connections.closed == {"made_room": 23}
    writer.close()
    for each in silent:
        each.close()
    async with asyncio.timeout(5):
        while len(connections):  # noqa: ASYNC110 - nothing tells the end of the last one
            await asyncio.sleep(0)
    listener.close()


async def test_who_resets_a_connection_in_the_queue_is_not_served():
    """And takes no place: a flood of resets costs a system call each."""
    sock = listening()
    sock.listen(100)
    connections = Unadmitting()
    for _ in range(20):
        with socket.create_connection(sock.getsockname()) as gone:
            gone.sendall(b"GET / HTTP/1.1\r\n\r\n")
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with socket.create_connection(sock.getsockname()) as honest:
        honest.sendall(b"GET / HTTP/1.1\r\n\r\n")
        listener = Listener(sock, connections, Echo)
        listener.open()
        async with asyncio.timeout(5):
            while not connections.wanted:  # noqa: ASYNC110 - nothing tells that a connection was refused
                await asyncio.sleep(0)
    assert len(connections.wanted) == 1
    listener.close()


async def test_newcomers_are_accepted_in_small_groups_between_which_the_others_have_their_turn():
    sock = listening()
    sock.listen(100)
    connections = Unadmitting()
    waiting = [socket.create_connection(sock.getsockname()) for _ in range(50)]
    listener = Listener(sock, connections, Echo)
    listener.accept()
    assert 0 < len(connections.wanted) <= 10
    for each in waiting:
        each.close()
    listener.close()


def test_while_all_are_only_just_being_opened_the_next_one_waits_in_the_queue():
    connections = Connections(ConnectionLimits(in_all=8), Time())
    admitted = [connections.admit(f"192.0.2.{n}") for n in range(8)]

    assert not connections.has_verdict("203.0.113.9")
    assert connections.closed == {}
    for each in admitted:
        assert each is not None
        each.begin(Wire())  # type: ignore[arg-type]
    assert not connections.has_verdict("203.0.113.9")
    assert connections.closed == {"made_room": 1}


async def test_a_refusal_by_the_system_pauses_and_is_logged_once(caplog):
    sock = listening()
    connections = Connections(ConnectionLimits(), asyncio.get_running_loop().time)

    class Exhausted:
        fileno, close = staticmethod(sock.fileno), staticmethod(sock.close)

        def accept(self) -> None:
            raise OSError(24, "too many open files")

    listener = Listener(Exhausted(), connections, Echo)  # type: ignore[arg-type]
    listener.open()
    listener.accept()
    assert [record.message for record in caplog.records] == ["no connection can be accepted"]
    assert connections.closed == {"refused_by_system": 1}
    listener.close()


async def test_an_accept_that_the_loop_had_planned_before_the_close_does_nothing(caplog):
    connections = Unadmitting()
    listener = Listener(listening(), connections, Echo)
    listener.open()
    listener.close()
    listener.accept()
    assert (caplog.records, connections.wanted, dict(connections.closed)) == ([], [], {})


FACTS = SiteFacts(base_url="https://data.example", source="data.example")


class Listening:
    is_open = True

    is_refusing = False

    def refuse(self):
        self.is_refusing = True

    def close(self):
        self.is_open = False


async def answer(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x", b"y")]})
    await send({"type": "http.response.body", "body": b"yes"})


async def ask(gate):
    """The status of an answer, and its headers."""
    sent = []

    async def send(message):
        sent.append(message)

    await gate({"type": "http", "method": "GET", "path": "/"}, None, send)
    return sent[0]["status"], sent[0]["headers"]


@pytest.fixture
def parts():
    return Listening(), Connections(ConnectionLimits(), lambda: 0.0)


async def test_a_service_that_ends_refuses_what_comes_while_it_accepts(parts):
    listener, connections = parts
    gate = RequestGate(answer, FACTS)
    assert await ask(gate) == (200, [(b"x", b"y")])
    await stop_accepting(gate, listener, connections, StopTimes(stop_s=0))
    assert not listener.is_open
    assert (await ask(gate))[0] == 503


async def test_one_that_drains_takes_requests_and_then_no_more_connections(parts):
    listener, connections = parts
    idle = opened(connections)
    gate = RequestGate(answer, FACTS)
    draining = asyncio.ensure_future(stop_accepting(gate, listener, connections, StopTimes(drain_s=0.05)))
    await asyncio.sleep(0)
    assert listener.is_open
    assert await ask(gate) == (200, [(b"x", b"y"), (b"connection", b"close")])
    assert ended(idle) == []
    await draining
    assert (listener.is_refusing, listener.is_open) == (True, False)
    assert ended(idle) == ["close"]
    assert (await ask(gate))[0] == 503


@pytest.mark.parametrize(("drain_s", "grace_s"), [(0, 10), (5, 5), (3, 7), (60, 5)])
def test_requests_in_progress_have_what_a_drain_leaves_and_no_less_than_five_seconds(drain_s, grace_s):
    assert StopTimes(drain_s=drain_s).grace_s == grace_s


async def test_one_that_is_replaced_answers_over_connections_it_has_and_each_answer_is_the_last(parts):
    listener, connections = parts
    kept = connections.admit("192.0.2.1")
    gate = RequestGate(answer, FACTS, lambda: True)
    leaving = asyncio.ensure_future(stop_accepting(gate, listener, connections, StopTimes()))
    await asyncio.sleep(0)
    assert not listener.is_open
    assert await ask(gate) == (200, [(b"x", b"y"), (b"connection", b"close")])
    assert not leaving.done()
    kept.end()
    await leaving


@pytest.mark.parametrize("service_ends", [True, False])
async def test_clients_that_keep_silent_are_not_waited_for_without_end(parts, service_ends):
    listener, connections = parts
    connections.admit("192.0.2.1")
    answers = iter([True, True])
    gate = RequestGate(answer, FACTS, lambda: next(answers, not service_ends))
    async with asyncio.timeout(20):
        times = StopTimes(stop_s=0, hand_over_s=60.0 if service_ends else 0.01)
        await stop_accepting(gate, listener, connections, times)
    assert (await ask(gate))[0] == 503
