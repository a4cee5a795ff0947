"""A machine without a network says so at once, and asks again as soon as a connection succeeds."""

import socket
from dataclasses import replace

import anyio
import httpx
import pytest

from tests.calls.parts import START
from tests.upstream.test_fetcher import URL, Get, Rig, source_of
from toolserver.clock import ManualClock
from toolserver.core.outbound import NO_PROXIES, read_proxies
from toolserver.upstream import network_watch
from toolserver.upstream.network_watch import RETRIED_S, NetworkWatch, NoNetwork
from toolserver.upstream.source import Connect, HostGroup, SourceDown

HOST, WITNESS = ("api.test.example", 443), ("witness.example", 443)


class Net:
    """The network: which places can be connected to, and which were tried."""

    def __init__(self, *reachable, witnesses=("witness.example",), proxies=NO_PROXIES):
        self.clock, self.reachable, self.tried = ManualClock(START), set(reachable), []
        self.slow = set()
        self.watch = NetworkWatch(
            witnesses, monotonic=self.clock.monotonic, proxies=proxies, try_connection=self._try_connection
        )

    async def _try_connection(self, place):
        self.tried.append(place)
        return None if place in self.slow else place in self.reachable


async def is_gone(net, url=URL):
    try:
        await net.watch.judge_failure(url)
    except NoNetwork:
        return True
    return False


@pytest.fixture
def logged(caplog):
    return lambda: [record.getMessage() for record in caplog.records]


async def test_the_network_is_gone_when_neither_the_host_nor_a_witness_can_be_connected_to(logged):
    net = Net()
    assert await is_gone(net)
    assert await is_gone(net, "https://other.example/")
    assert sorted(net.tried) == [HOST, WITNESS]
    assert len(logged()) == 1


@pytest.mark.parametrize("reachable", [HOST, WITNESS])
async def test_it_is_not_gone_while_one_of_them_can_be(reachable, logged):
    net = Net(reachable)
    assert not await is_gone(net)
    assert not await is_gone(net)
    assert len(net.tried) <= 2  # the second failure believes the first one's look
    assert logged() == []


@pytest.mark.parametrize("slow", [HOST, WITNESS])
async def test_it_is_not_gone_while_one_of_them_has_not_failed_in_time(slow, logged):
    net = Net()
    net.slow.add(slow)
    assert not await is_gone(net)
    assert logged() == []


async def test_while_it_is_gone_a_request_is_sent_if_its_host_has_not_failed_in_time():
    net = Net()
    await is_gone(net)
    net.slow.add(HOST)
    await net.watch.admit(URL)
    with pytest.raises(NoNetwork):
        await net.watch.admit(URL)  # one request is enough to see
    net.clock.advance(RETRIED_S)
    await net.watch.admit(URL)
    assert net.watch.is_gone  # until it has an answer


async def test_a_name_that_takes_long_to_resolve_is_no_failure(monkeypatch):
    async def wait(host, port):
        await anyio.sleep_forever()

    monkeypatch.setattr(anyio, "connect_tcp", wait)
    assert await network_watch.try_tcp_connection(HOST, within_s=0) is None


async def test_a_refused_connection_is_a_failure():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = listener.getsockname()
        assert await network_watch.try_tcp_connection(place) is True
    assert await network_watch.try_tcp_connection(place) is False


async def test_without_a_witness_nothing_is_concluded():
    assert not await is_gone(Net(witnesses=()))


async def test_behind_a_proxy_the_proxy_is_the_witness():
    net = Net(proxies=read_proxies("http://proxy.corp:3128", {}))
    assert await is_gone(net)
    assert net.tried == [("proxy.corp", 3128)]


async def test_while_it_is_gone_a_host_is_tried_again_every_two_seconds_until_it_answers(logged):
    net = Net()
    await net.watch.admit(URL)
    await is_gone(net)
    net.tried.clear()
    for _ in range(3):
        with pytest.raises(NoNetwork):
            await net.watch.admit(URL)
    assert net.tried == [HOST]
    net.reachable.add(HOST)
    with pytest.raises(NoNetwork):
        await net.watch.admit(URL)
    net.clock.advance(RETRIED_S)
    await net.watch.admit(URL)
    await net.watch.admit("https://other.example/")
    assert net.tried == [HOST, HOST]
    assert len(logged()) == 2


async def test_an_answer_of_any_host_ends_it():
    net = Net()
    await is_gone(net)
    net.watch.note_answer()
    await net.watch.admit(URL)
    assert not net.watch.is_gone


async def test_a_source_fails_at_once_without_a_mark_against_it(logged):
    net = Net()
    rig = Rig(network=net.watch)
    rig.internet.serves(URL, httpx.ConnectError("no route"))
    for _ in range(5):
        with pytest.raises(NoNetwork) as failed:
            await rig.fetch(source_of(Get(URL)))
    assert failed.value.reason == "no_network"
    assert len(rig.internet.asked) == 1  # neither again, nor while the network is gone
    assert set(rig.observed) == {("no_network", False)}
    assert rig.fetcher.health.state("Test.request") == "closed"
    assert len(logged()) == 1

    rig.internet.serves(URL, {"value": 1})
    net.reachable.add(HOST)
    net.clock.advance(RETRIED_S)
    assert (await rig.fetch(source_of(Get(URL)))).answer.value.value == 1


async def test_a_wait_for_a_turn_ends_when_the_network_is_lost_and_a_request_under_way_does_not():
    """Two requests to a host that takes one at a time, the first of which is under way."""
    net, answered, outcomes = Net(), anyio.Event(), {}
    rig = Rig(network=net.watch)

    async def answer_late(request):
        await answered.wait()
        return httpx.Response(200, json={"value": 1})

    rig.internet.serves(URL, answer_late)
    source = source_of(Get(URL), hosts=HostGroup("one", 1, 0, 1000, 60), timeout_s=30)

    async def fetch(name):
        try:
            outcomes[name] = (await rig.fetch(source)).answer.value.value
        except NoNetwork:
            outcomes[name] = "no network"

    async with anyio.create_task_group() as tasks:
        for name in ("under way", "waiting"):
            tasks.start_soon(fetch, name)
            await anyio.wait_all_tasks_blocked()
        assert await is_gone(net)
        await anyio.wait_all_tasks_blocked()
        assert outcomes == {"waiting": "no network"}
        answered.set()
    assert outcomes == {"waiting": "no network", "under way": 1}
    assert len(rig.internet.asked) == 1


async def test_a_measure_of_the_network_is_no_answer_of_a_host():
    net = Net()
    rig = Rig(network=net.watch, via="http://127.0.0.1:1")
    await is_gone(net)
    rig.internet.serves("http://127.0.0.1:1/", {"unreachable": True})
    await rig.fetch(replace(source_of(Connect("https://10.0.0.1:443")), parse=lambda body, query: 1))
    assert net.watch.is_gone


async def test_a_source_that_is_down_alone_is_tried_twice_as_ever():
    rig = Rig(network=Net(WITNESS).watch)
    rig.internet.serves(URL, httpx.ConnectError("refused"))
    with pytest.raises(SourceDown, match="ConnectError"):
        await rig.fetch(source_of(Get(URL)))
    assert len(rig.internet.asked) == 2
