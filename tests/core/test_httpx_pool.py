"""The pools of httpx: what happens when connections that were kept turn out to have ended.

That the events of httpx are read rightly is proved over real sockets, with tests/rehearsal.
"""

import httpx
import pytest

from toolserver.core.httpx_pool import HttpxPool

URL = "https://api.test.example/"


class Pool(httpx.AsyncBaseTransport):
    """A pool whose kept connections have ended after so many requests. It opens one for the first request."""

    def __init__(self, lasts, error=httpx.ReadError):
        self.lasts, self.error, self.requests, self.is_closed = lasts, error, [], False

    async def handle_async_request(self, request):
        assert not self.is_closed
        if not self.requests:
            await request.extensions["trace"]("connection.connect_tcp.started", {})
        self.requests.append(request.method)
        if len(self.requests) > self.lasts:
            raise self.error("ended")
        return httpx.Response(200, stream=Body(self))

    async def aclose(self):
        self.is_closed = True


class Body(httpx.AsyncByteStream):
    def __init__(self, pool):
        self.pool = pool

    async def __aiter__(self):
        assert not self.pool.is_closed
        yield b"ok"


class Rig:
    def __init__(self, *pools):
        self.pools, waiting = pools, list(pools)
        self.client = httpx.AsyncClient(transport=HttpxPool(lambda: waiting.pop(0)))

    async def read(self, method="GET"):
        return (await self.client.request(method, URL)).text


@pytest.mark.parametrize("error", [httpx.ReadError, httpx.RemoteProtocolError, httpx.LocalProtocolError])
async def test_a_get_on_an_ended_connection_is_sent_again_by_a_new_pool(error):
    old, new = Pool(1, error), Pool(9)
    rig = Rig(old, new)
    assert [await rig.read() for _ in range(3)] == ["ok"] * 3
    assert (old.requests, new.requests) == (["GET"] * 2, ["GET"] * 2)
    assert (old.is_closed, new.is_closed) == (True, False)
    await rig.client.aclose()
    assert new.is_closed


async def test_a_post_is_not_sent_again_but_the_next_request_has_a_new_connection():
    old, new = Pool(1), Pool(9)
    rig = Rig(old, new)
    await rig.read()
    with pytest.raises(httpx.ReadError):
        await rig.read("POST")
    assert await rig.read("POST") == "ok"
    assert (old.requests, new.requests) == (["GET", "POST"], ["POST"])


async def test_a_new_connection_that_fails_is_the_hosts_fault_and_nothing_is_sent_again():
    only = Pool(0)
    rig = Rig(only)
    with pytest.raises(httpx.ReadError):
        await rig.read()
    assert (only.requests, only.is_closed) == (["GET"], False)


async def test_it_is_sent_again_once():
    old, new = Pool(1), Pool(0)
    rig = Rig(old, new)
    await rig.read()
    with pytest.raises(httpx.ReadError):
        await rig.read()
    assert len(old.requests) + len(new.requests) == 3


async def test_a_pool_that_is_left_is_closed_after_its_last_response():
    old, new = Pool(2), Pool(9)
    rig = Rig(old, new)
    async with rig.client.stream("GET", URL) as first, rig.client.stream("GET", URL) as second:
        assert await rig.read() == "ok"
        assert not old.is_closed
        assert await first.aread() == b"ok"
        assert not old.is_closed
        assert await second.aread() == b"ok"
    assert old.is_closed
    assert not new.is_closed
    await rig.client.aclose()
