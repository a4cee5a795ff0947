"""Each host has a pool of connections, which is made when it is used and closed when it is not."""

import threading
import time

import httpx

from tests.upstream.test_fetcher import URL, Get, Rig, source_of
from toolserver.core.outbound import NO_PROXIES
from toolserver.upstream import host_pools
from toolserver.upstream.fetcher import Fetcher
from toolserver.upstream.host_pools import KEPT_S, HostPools
from toolserver.upstream.http_sender import HttpSender


async def test_pools_are_made_with_the_first_request_and_each_host_has_its_own(monkeypatch):
    made, threads = [], []
    transport = httpx.MockTransport(lambda sent: httpx.Response(200, json={"value": 1}))
    monkeypatch.setattr(host_pools, "make_transport", lambda url, *more, **named: made.append(url) or transport)
    monkeypatch.setattr(host_pools, "make_tls_context", lambda: threads.append(threading.current_thread()))
    rig = Rig()
    sender = HttpSender(clock=rig.clock, keys={}, user_agent="t")
    fetcher = Fetcher(sender, keys={})
    for url in (URL, URL, "https://other.example/1", "https://other.example:8443/1"):
        await fetcher.fetch(source_of(Get(url)), None)
    assert made == [URL, "https://other.example/1", "https://other.example:8443/1"]
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()
    await fetcher.aclose()


async def test_a_pool_that_is_not_used_any_more_is_closed_with_a_later_request(monkeypatch):
    now, closed = [1000.0], []

    class Pool:
        async def aclose(self):
            closed.append(self)

    pools = [Pool() for _ in range(3)]
    waiting = iter(pools)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    opened = HostPools(NO_PROXIES, via="http://127.0.0.1:1", open_transport=lambda *more, **named: next(waiting))

    async def use(host):
        async with opened.use(httpx.URL(f"https://{host}/")) as outlet:
            return outlet.transport

    async with opened.use(httpx.URL("https://busy.example/")):
        assert await use("idle.example") is pools[1]
        now[0] += KEPT_S + 1
        assert await use("late.example") is pools[2]
        assert closed == [pools[1]]
    await opened.aclose()
    assert closed == [pools[1], pools[0], pools[2]]


async def test_hosts_without_number_share_a_pool():
    made = []
    via = "http://127.0.0.1:1"
    opened = HostPools(NO_PROXIES, via=via, most=2, open_transport=lambda url, *more, **named: made.append(url))
    for number in range(5):
        async with opened.use(httpx.URL(f"https://{number}.example/")):
            pass
    assert len(made) == 3
