"""Sessions to addresses that strangers name. What they refuse is shown in test_delivery.py and test_dns_lane.py."""

import aiohttp
import pytest

from tests.webhooks.receivers import receiving, status
from toolserver.clock import SystemClock
from toolserver.webhooks.dns_lane import DnsLane
from toolserver.webhooks.egress import EgressGuard
from toolserver.webhooks.guarded_session import make_guarded_session


async def ask(url, *, allow_loopback, **how):
    guard = EgressGuard(allow_loopback=allow_loopback)
    lane = DnsLane(guard, SystemClock(), lookup=lambda host: ["127.0.0.1"])
    times = aiohttp.ClientTimeout(total=5)
    async with make_guarded_session(guard, lane, tls=None, times=times, headers={"X-Mine": "1"}) as session:
        async with session.get(url, **how) as answer:
            return answer.status, dict(answer.headers)
    lane.close()


async def test_a_request_reaches_an_address_that_is_allowed_with_the_headers_of_its_session():
    async with receiving(status(200, "Set-Cookie: a=b")) as receiver:
        assert (await ask(receiver.url(), allow_loopback=True))[0] == 200
    assert receiver.requests[0].headers["x-mine"] == "1"


async def test_no_connection_is_made_to_an_address_that_is_not_allowed():
    async with receiving() as receiver:
        for url in (receiver.url(), receiver.url(host="host.example")):
            with pytest.raises((aiohttp.ClientError, OSError)):
                await ask(url, allow_loopback=False)
    assert receiver.connections == 0


async def test_proxies_of_the_environment_are_not_used(monkeypatch):
    async with receiving() as proxy, receiving(status(200)) as receiver:
        monkeypatch.setenv("HTTP_PROXY", proxy.url(path=""))
        await ask(receiver.url(), allow_loopback=True)
    assert (proxy.connections, receiver.connections) == (0, 1)
