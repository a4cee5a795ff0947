"""hypercorn: the version that our protocol fits, and what it refuses and reports."""

import asyncio
import contextlib
import inspect
from importlib.metadata import version

import h11
import pytest
from hypercorn.asyncio import tcp_server
from hypercorn.asyncio.task_group import TaskGroup, _handle
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config
from hypercorn.events import Closed, RawData
from hypercorn.protocol import ProtocolWrapper
from hypercorn.typing import ConnectionState

from toolserver.registry.site_facts import SiteFacts
from toolserver.serving.admission import ConnectionLimits, Connections
from toolserver.serving.connections import RequestGate, StopTimes
from toolserver.serving.hypercorn_server import HEAD_BYTES, StrictH11Protocol, StrictTcpServer, serve_hypercorn
from toolserver.serving.listen import bind_socket


def test_the_seam_fits_this_version():
    """If this fails after an update: read TCPServer.run and ProtocolWrapper again, then change the version here."""
    assert version("hypercorn") == "0.18.0"
    assert issubclass(StrictTcpServer, tcp_server.TCPServer)
    assert list(inspect.signature(TaskGroup.spawn_app).parameters) == ["self", "app", "config", "scope", "send"]
    assert list(inspect.signature(_handle).parameters)[3:5] == ["receive", "send"], "our inbox stands for their queue"
    assert tcp_server.ProtocolWrapper is ProtocolWrapper, "TCPServer builds the protocol by this name"


class Phases:
    """A connection that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __getattr__(self, name: str):
        return lambda *_: self.told.append(name)


class Tasks:
    """A task group in which requests are only counted."""

    def __init__(self) -> None:
        self.scopes: list[dict] = []

    async def spawn_app(self, app, config, scope, send):
        self.scopes.append(scope)

        async def put(event):
            return None

        return put


class Said:
    """The answer to some bytes, the phases that were reported, the requests that were begun, and the protocol."""

    def __init__(self) -> None:
        self.sent, self.phases, self.tasks = b"", Phases(), Tasks()
        peer = (False, ("192.0.2.1", 1), ("192.0.2.2", 80), self.send)
        own = (None, Config(), WorkerContext(None), self.tasks, ConnectionState({}))
        self.protocol = StrictH11Protocol(*own, *peer, ours=self.phases)  # type: ignore[arg-type]

    async def send(self, event: object) -> None:
        self.sent += event.data if isinstance(event, RawData) else b"<closed>" if isinstance(event, Closed) else b""


async def said_to(*pieces: bytes) -> Said:
    """Say something; a complete request is never answered here, so its handling is cut short."""
    said = Said()
    for piece in pieces:
        handling = asyncio.ensure_future(said.protocol.handle(RawData(piece)))
        for _ in range(20):
            await asyncio.sleep(0)
        handling.cancel()
        await asyncio.gather(handling, return_exceptions=True)
    return said


HEAD = b"POST /x HTTP/1.1\r\nHost: a.example\r\n"


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"400"),
        (b"GET / HTTP/3.0\r\nHost: a\r\n\r\n", b"400"),
        (b"head / HTTP/1.1\r\nHost: a\r\n\r\n", b"400"),
        (HEAD + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", b"400"),
        (b"CONNECT b.example:443 HTTP/1.1\r\nHost: b.example\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", b"405"),
        (HEAD + b"X-A: b\r\n c\r\n\r\n", b"400"),
        (HEAD + b"X-A: b\r\n\tc\r\n\r\n", b"400"),
        (HEAD + b"X-A: " + b"a" * HEAD_BYTES + b"\r\n\r\n", b"431"),
        (b"\x00\x01\r\n\r\n", b"400"),
    ],
)
async def test_what_is_refused_is_answered_and_the_connection_closed(request_, status):
    said = await said_to(request_)

    assert said.sent.split()[1] == status
    assert said.sent.endswith(b"<closed>")
    assert said.tasks.scopes == []


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
async def test_a_wish_for_an_upgrade_is_ignored(protocol):
    wish = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: " + protocol + b"\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"
    said = await said_to(b"GET /x HTTP/1.1\r\nHost: a.example\r\n" + wish)

    assert said.sent == b""
    assert [(scope["type"], scope["http_version"]) for scope in said.tasks.scopes] == [("http", "1.1")]


async def test_folded_lines_inside_a_body_are_no_headers():
    said = await said_to(HEAD + b"Content-Length: 8\r\n\r\na: b\r\n c")

    assert (said.sent, len(said.tasks.scopes)) == (b"", 1)


async def test_the_phases_of_a_request_are_reported_and_a_slow_head_gains_no_time():
    said = await said_to(b"POST /x HT", b"TP/1.1\r\nHost: a\r\n", b"Content-Length: 2\r\n\r\n", b"a")
    assert said.phases.told == ["await_head", "await_body"]


@pytest.mark.parametrize("rest", [b"Content-Length: 2\r\n\r\nab", b"\r\n"])
async def test_a_complete_request_waits_for_nothing_more_of_its_client(rest):
    said = await said_to(HEAD + rest)

    assert said.phases.told == ["await_head", "await_body", "work"]


def test_h11_reads_its_buffer_where_we_look_for_folded_lines():
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(b"GET / HTTP/1.1\r\nA: b\r\n c")

    assert connection.trailing_data[0].endswith(b"\n c")


FACTS = SiteFacts(base_url="https://data.example", source="data.example")


class Slow:
    """An app that answers no request, and notes how each ends."""

    def __init__(self) -> None:
        self.begun, self.ended = asyncio.Queue(), asyncio.Queue()

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            for event in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{event}.complete"})
            return
        if scope["path"] == "/quick":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
            await send({"type": "http.response.body", "body": b"ok"})
            return
        self.begun.put_nowait(scope["path"])
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.ended.put_nowait(scope["path"])
            raise


@contextlib.asynccontextmanager
async def served(app):
    """hypercorn on a socket of its own; yields its address and its connections."""
    sock = bind_socket("127.0.0.1", 0)
    stop, connections = asyncio.Event(), Connections(ConnectionLimits(), asyncio.get_running_loop().time)
    address = sock.getsockname()
    times = StopTimes(hand_over_s=0, stop_s=1)
    running = asyncio.ensure_future(serve_hypercorn(RequestGate(app, FACTS), sock, connections, stop, times))
    try:
        yield address, connections
    finally:
        stop.set()
        await running


@pytest.mark.parametrize("surplus", [b"", b"GET /next", b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n" * 3])
async def test_a_request_whose_client_leaves_is_ended_whatever_came_behind_it(surplus):
    app = Slow()
    async with asyncio.timeout(10), served(app) as (address, connections):
        _, writer = await asyncio.open_connection(*address)
        writer.write(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n" + surplus)
        assert await app.begun.get() == "/slow"
        writer.close()
        assert await app.ended.get() == "/slow"
        while len(connections):  # noqa: ASYNC110 - nothing tells the end of the last one
            await asyncio.sleep(0)
    assert app.begun.empty()


async def test_a_body_in_many_pieces_that_the_app_does_not_read_holds_no_connection():
    app = Slow()
    async with asyncio.timeout(10), served(app) as (address, connections):
        reader, writer = await asyncio.open_connection(*address)
        head = b"GET /quick HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        writer.write(head + b"1\r\nx\r\n" * 40)
        assert (await reader.read()).endswith(b"ok"), "it was answered early, so the answer is the last one"
        writer.close()
        _, other = await asyncio.open_connection(*address)
        other.write(head.replace(b"quick", b"slow") + b"1\r\nx\r\n" * 40)
        assert await app.begun.get() == "/slow"
        other.close()
        assert await app.ended.get() == "/slow"
        while len(connections):  # noqa: ASYNC110 - nothing tells the end of the last one
            await asyncio.sleep(0)
