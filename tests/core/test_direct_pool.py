"""The transport that sends requests straight to a host: what it sends, reads, keeps and gives up, over real sockets."""

import asyncio
import contextlib
import ssl
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread
import httpx
import pytest
import trustme

from toolserver.core import direct_pool
from toolserver.core.direct_pool import BUFFERED, LONGEST_HEAD, DirectPool

HOST = "localhost"
PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Host:
    """A host that answers each request of a connection with the next bytes of its script, and then ends it."""

    def __init__(self, *scripts, then=b""):
        self._scripts, self._then = list(scripts), then
        self.requests, self.connections, self.ended = [], 0, 0
        self.port = 0

    async def serve(self, reader, writer):
        self.connections += 1
        try:
            for answer in self._scripts.pop(0) if self._scripts else ():
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
                writer.write(answer)
                await writer.drain()
            await (reader.read() if self._then is None else asyncio.sleep(0))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.ended += 1
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    def url(self, path="/v1"):
        return f"http://127.0.0.1:{self.port}{path}"


@asynccontextmanager
async def listening(host, tls=None):
    server = await asyncio.start_server(host.serve, "127.0.0.1", 0, ssl=tls)
    host.port = server.sockets[0].getsockname()[1]
    try:
        yield host
        await until(lambda: host.ended == host.connections)
    finally:
        server.close()


async def until(is_so):
    with anyio.fail_after(20):
        while not is_so():
            await anyio.to_thread.run_sync(int)  # a turn for the others, however busy the machine is


@asynccontextmanager
async def pooling(host, *, most=4, kept_s=20.0):
    pool = DirectPool(host.url(), PLAIN, most=most, kept_s=kept_s)
    try:
        yield pool
    finally:
        await pool.aclose()


async def ask(pool, url, method="GET", headers=None, content=b""):
    """Status, body and headers of one request."""
    received = await pool.send(method, url, headers or {}, content)
    try:
        body = b"".join([piece async for piece in received.pieces])
    finally:
        await received.release()
    return received.status, body, received.headers


async def answered(*answers, **more):
    """What a host's answers are read as; each is asked for in turn."""
    async with listening(Host(answers, **more)) as host, pooling(host) as pool:
        return [(await ask(pool, host.url()))[:2] for _ in answers], host


async def test_a_connection_is_kept_and_each_request_is_written_as_it_is():
    async with listening(Host((OK, OK))) as host, pooling(host) as pool:
        assert (await ask(pool, host.url("/a?b=c%20d"), headers={"X-Key": "k"}))[:2] == (200, b"ok")
        assert (await ask(pool, host.url(), "POST", content=b"[1,2,3]"))[:2] == (200, b"ok")
    first, second = (each.decode().split("\r\n") for each in host.requests)
    assert (first[0], second[0]) == ("GET /a?b=c%20d HTTP/1.1", "POST /v1 HTTP/1.1")
    assert {f"host: 127.0.0.1:{host.port}", "X-Key: k"} <= set(first)
    assert "content-length: 7" in second
    assert host.connections == 1


async def test_a_client_of_httpx_has_the_same():
    async with listening(Host((b"HTTP/1.1 201 Made\r\nContent-Length: 2\r\nA: 1\r\na: 2\r\n\r\nok",))) as host:
        async with httpx.AsyncClient(transport=DirectPool(host.url(), PLAIN, most=1, kept_s=1)) as client:
            response = await client.post(host.url("/a b?c#d"), json={"a": 1})
    assert (response.status_code, response.text, response.headers["a"]) == (201, "ok", "1, 2")
    assert host.requests[0].startswith(b"POST /a%20b?c HTTP/1.1\r\n")
    assert b"Content-Type: application/json\r\n" in host.requests[0]


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\nTrailer: t\r\n\r\n",
            b"abc",
        ),
        (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK, b"ok"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nold", b"old"),
    ],
)
async def test_each_way_to_end_a_body_is_read(answer, body):
    assert (await answered(answer))[0] == [(200, body)]


async def test_a_response_without_a_body_does_not_wait_for_one():
    found, host = await answered(b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n", OK)
    assert found == [(304, b""), (200, b"ok")]
    assert host.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokk",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * (2 * LONGEST_HEAD),
    ],
    ids=[
        "nothing",
        "short",
        "short chunk",
        "no chunk",
        "two lengths",
        "unequal lengths",
        "upgrade",
        "ssh",
        "long head",
    ],
)
async def test_what_is_no_whole_response_is_an_error_and_the_connection_ends(answer):
    async with listening(Host((answer,))) as host, pooling(host) as pool:
        with pytest.raises(httpx.TransportError):
            await ask(pool, host.url())
        assert not pool._idle


async def test_after_something_that_nobody_asked_for_a_connection_is_not_used_again():
    for more in (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged", b"garbage"):
        async with listening(Host((OK + more,), (OK,))) as host, pooling(host) as pool:
            assert [(await ask(pool, host.url()))[1] for _ in range(2)] == [b"ok", b"ok"]
        assert host.connections == 2


async def test_a_kept_connection_that_has_ended_is_replaced_for_a_get_alone():
    async def ask_twice(method, *, wait):
        async with listening(Host((OK,), (OK,))) as host, pooling(host) as pool:
            await ask(pool, host.url())
            if wait:
                await until(lambda: pool._idle[0].is_lost)
            return (await ask(pool, host.url(), method))[1], host.connections

    assert await ask_twice("GET", wait=True) == (b"ok", 2)
    assert await ask_twice("POST", wait=True) == (b"ok", 2)

    class Gone(direct_pool._Connection):
        async def send(self, sent):
            if self.idle_since:
                raise direct_pool.EndedEarly("it ended while the request was on its way")
            await super().send(sent)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(direct_pool, "_Connection", Gone)
        assert await ask_twice("GET", wait=False) == (b"ok", 2)
        with pytest.raises(httpx.RemoteProtocolError):
            await ask_twice("POST", wait=False)


async def test_a_host_has_no_more_connections_than_allowed_and_the_others_wait():
    async with listening(Host(*[(OK,) * 8] * 8)) as host, pooling(host, most=2) as pool:
        found = await asyncio.gather(*(ask(pool, host.url()) for _ in range(8)))
    assert [body for _, body, _ in found] == [b"ok"] * 8
    assert host.connections == 2


async def test_a_connection_that_was_kept_too_long_is_not_used():
    async with listening(Host((OK, OK), (OK,), then=None)) as host, pooling(host, kept_s=0.05) as pool:
        await ask(pool, host.url())
        pool._idle[0].idle_since -= 1
        await ask(pool, host.url())
    assert host.connections == 2


async def test_an_abandoned_request_and_an_unread_body_end_their_connection_and_free_its_seat():
    long = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nx"
    async with listening(Host((b"", b""), (long, b""), (OK,), then=None)) as host, pooling(host, most=1) as pool:
        waiting = asyncio.create_task(ask(pool, host.url()))
        await until(lambda: host.requests)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await (await pool.send("GET", host.url(), {}, b"")).release()
        assert (await ask(pool, host.url()))[1] == b"ok"
        assert host.connections == 3


async def test_no_more_of_a_body_is_received_than_the_reader_takes():
    size = 16 * BUFFERED
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + bytes(size)
    async with listening(Host((answer,))) as host, pooling(host) as pool:
        received = await pool.send("GET", host.url(), {}, b"")
        connection = received.pieces._connection
        await until(lambda: connection._is_paused)
        assert connection._waiting_size < 4 * BUFFERED
        assert sum([len(piece) async for piece in received.pieces]) == size
        await received.release()


@pytest.mark.parametrize("value", ["a\r\nX-Other: b", "a\nb", "a\0b"])
async def test_a_header_cannot_bring_another(value):
    async with listening(Host()) as host, pooling(host) as pool:
        with pytest.raises(httpx.LocalProtocolError):
            await ask(pool, host.url(), headers={"X-Key": value})
    assert host.connections == 0


async def test_a_refused_connection_is_a_connect_error():
    async with listening(Host()) as host:
        pass
    async with pooling(host) as pool:
        with pytest.raises(httpx.ConnectError):
            await ask(pool, host.url())


@pytest.fixture
def authority():
    return trustme.CA()


@asynccontextmanager
async def secured(authority, *, protocols, name=HOST, host=None):
    """A host with a certificate, and a pool that trusts its authority and is told what HTTP/2 would be sent by."""
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert(name).configure_cert(server)
    authority.configure_trust(client)
    server.set_alpn_protocols(protocols)
    made, hosts = [], set()

    def make_http2():
        made.append(httpx.MockTransport(lambda request: httpx.Response(200, content=b"two")))
        return made[-1]

    async with listening(host or Host((OK, OK)), server) as host:
        url = f"https://{HOST}:{host.port}/v1"

        def make_pool():
            return DirectPool(url, client, most=4, kept_s=20.0, make_http2=make_http2, http2_hosts=hosts)

        yield host, url, make_pool, made


async def test_a_host_that_prefers_http2_is_connected_to_once_and_then_left_to_the_other_transport(
    authority, monkeypatch
):
    connect, connected = direct_pool.start_connection, []

    async def count(*given, **named):
        connected.append(await connect(*given, **named))
        return connected[-1]

    monkeypatch.setattr(direct_pool, "start_connection", count)
    async with secured(authority, protocols=["h2", "http/1.1"]) as (host, url, make_pool, made):
        pool = make_pool()
        assert [(await ask(pool, url))[1] for _ in range(3)] == [b"two"] * 3
        await pool.aclose()
        later = make_pool()
        assert (await ask(later, url))[1] == b"two"
        await later.aclose()
    assert (len(connected), host.requests, len(made)) == (1, [], 2)


async def test_a_host_with_http1_alone_is_spoken_to_over_tls(authority):
    async with secured(authority, protocols=["http/1.1"]) as (host, url, make_pool, made):
        pool = make_pool()
        assert [(await ask(pool, url))[1] for _ in range(2)] == [b"ok"] * 2
        await pool.aclose()
    assert (host.connections, made) == (1, [])


async def test_a_certificate_of_another_host_is_refused(authority):
    async with secured(authority, protocols=[], name="other.example") as (_, url, make_pool, _):
        pool = make_pool()
        with pytest.raises(httpx.ConnectError) as refused:
            await ask(pool, url)
    assert isinstance(refused.value.__cause__, ssl.SSLError)
