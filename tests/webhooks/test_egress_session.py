"""Sessions to addresses that others name. What they refuse is shown in test_delivery.py and test_inside.py."""

import pytest

from tests.webhooks.receivers import receiving, status
from tests.webhooks.room import everywhere_here
from toolserver.clock import SystemClock
from toolserver.webhooks.egress import DnsLane, EgressGuard, GuardedSession, RequestFailed


async def ask(url, *, allow_loopback):
    lane = DnsLane(EgressGuard(allow_loopback=allow_loopback), SystemClock(), lookup=everywhere_here)
    session = GuardedSession(lane, headers={"X-Mine": "1"}, connect_s=5, total_s=5)
    try:
        async with session.request("GET", url) as answer:
            return answer.status
    finally:
        await session.close()
        lane.close()


async def test_a_request_reaches_an_address_that_is_allowed_with_the_headers_of_its_session():
    async with receiving(status(200, "Set-Cookie: a=b")) as receiver:
        assert await ask(receiver.url(), allow_loopback=True) == 200
    assert receiver.requests[0].headers["x-mine"] == "1"


async def test_no_connection_is_made_to_an_address_that_is_not_allowed():
    async with receiving() as receiver:
        for url in (receiver.url(), receiver.url(host="host.example")):
            with pytest.raises(RequestFailed, match="target_refused"):
                await ask(url, allow_loopback=False)
    assert receiver.connections == 0


async def test_proxies_of_the_environment_are_not_used(monkeypatch):
    async with receiving() as proxy, receiving(status(200)) as receiver:
        monkeypatch.setenv("HTTP_PROXY", proxy.url(path=""))
        await ask(receiver.url(), allow_loopback=True)
    assert (proxy.connections, receiver.connections) == (0, 1)
