"""Every way to point a delivery at this machine or its network: none of them opens a connection."""

from contextlib import asynccontextmanager

import pytest
from yarl import URL

from tests.calls.parts import RICH
from tests.requirements import proves
from tests.size import a_share
from tests.webhooks.receivers import receiving, status
from tests.webhooks.room import NETWORK, open_room
from tests.webhooks.test_egress import ADDRESSES, REFUSED_HOSTS, is_address
from toolserver.clock import SystemClock
from toolserver.errors import InvalidArguments
from toolserver.webhooks.delivery import DeliveryNetwork, WebhookSender
from toolserver.webhooks.egress import PORTS, DnsLane, EgressGuard
from toolserver.webhooks.records import SubscriptionRequest
from toolserver.webhooks.subscription_operations import AddSubscription

INSIDE = sorted({address for address in ADDRESSES if is_address(address)})
NAMED = [[inside] for inside in INSIDE] + [["1.1.1.1", "::1"], ["10.0.0.1", "2606:4700:4700::1111"]]
LEADING_HERE = ["127.0.0.1", "localhost", "0x7f000001", "0x7f.0x1", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"]
REFUSED_BY_AIOHTTP = ["2130706433", "127.1", "0177.1", "0"]  # it takes no host of digits that is no usual address


class Blind(EgressGuard):
    """A guard that lets everything through, to show that the receivers would have been reached."""

    def check_address(self, text, port=None):
        pass


@asynccontextmanager
async def listening():
    """A receiver for each family, and ports that deliveries may go to: nothing but the address is to be refused."""
    async with receiving() as four, receiving(host="::1") as six:
        yield (four, six), (*PORTS, four.port, six.port)


@asynccontextmanager
async def sending(guard):
    lane = DnsLane(guard, SystemClock())
    sender = WebhookSender(lane, SystemClock(), NETWORK)
    yield sender
    await sender.close()
    lane.close()


@pytest.mark.parametrize("host", LEADING_HERE + REFUSED_BY_AIOHTTP)
@proves("webhook.target")
async def test_what_a_blind_guard_would_connect_to_is_not_connected_to(host):
    async with listening() as (receivers, ports):
        urls = [URL(f"{scheme}://{host}:{r.port}/", encoded=True) for r in receivers for scheme in ("http", "https")]
        async with sending(EgressGuard(ports=ports)) as sender:
            ends = {(await sender.send(url, b"{}", {})).error for url in urls}
        assert ends == {"target_refused"}
        assert [receiver.connections for receiver in receivers] == [0, 0]
        async with sending(Blind()) as sender:
            for url in urls[::2]:  # the plain ones
                await sender.send(url, b"{}", {})
        assert (sum(receiver.connections for receiver in receivers) >= 1) is (host in LEADING_HERE)


def lead_inside(host):
    """Where every name leads but one literal."""
    return ["1.1.1.1"] if host == "1.1.1.1" else ["127.0.0.1"]


@asynccontextmanager
async def guarded_room(tmp_path, monkeypatch, lookup):
    """A room without the development switch, the addresses that sockets were opened for, and both receivers."""
    opened, original = [], EgressGuard.open_socket

    def count(guard, info):
        connection = original(guard, info)
        opened.append(info[4])
        return connection

    monkeypatch.setattr(EgressGuard, "open_socket", count)
    async with listening() as (receivers, ports):
        network = DeliveryNetwork(lookup=lookup, ports=ports)
        async with open_room(tmp_path, network=network, allow_loopback=False) as room:
            yield room, opened, receivers


@pytest.mark.slow("the whole way of a delivery for every form")
@proves("webhook.target")
async def test_no_form_of_an_inside_address_is_registered_or_delivered_to(tmp_path, monkeypatch):
    async with guarded_room(tmp_path, monkeypatch, lead_inside) as (room, opened, receivers):
        first = await room.subscribe("https://1.1.1.1/")
        await room.hooks.subscriptions.cancel(RICH, first.id)
        urls = [f"https://{host}:{receiver.port}/" for host in REFUSED_HOSTS for receiver in receivers]
        for number, url in enumerate(urls):
            with pytest.raises(InvalidArguments):
                await room.subscribe(url)
            payer = f"{number:064x}"
            forced = first._replace(id=f"wh_{number:016x}", owner=payer, payer=payer, url=url, host=f"host{number}")
            await room.hooks.store.apply(AddSubscription(forced))
        assert await room.pass_slots() == len(urls)
        active = [each for each in await room.hooks.store.all(1000) if each.state == "active"]
        assert {each.last_error for each in active} == {"target_refused"}
        assert opened == []
        assert [receiver.connections for receiver in receivers] == [0, 0]
        assert (await room.spent(), await room.held()) == (0, 0)


@proves("webhook.rebinding")
@pytest.mark.parametrize("addresses", a_share(NAMED, 4), ids=",".join)
async def test_a_name_that_leads_inside_is_refused_at_registration_and_after_a_rebinding(
    tmp_path, monkeypatch, addresses
):
    answers = {"a.example": ["1.1.1.1"]}
    async with guarded_room(tmp_path, monkeypatch, lambda host: answers[host]) as (room, opened, receivers):
        subscription = await room.subscribe(f"https://a.example:{receivers[0].port}/")
        answers |= {"a.example": addresses, "b.example": addresses}
        with pytest.raises(InvalidArguments) as refused:
            await room.hooks.subscriptions.subscribe(RICH, SubscriptionRequest("report", "https://b.example/"))
        assert refused.value.extra["errors"][0]["type"] == "private_address"
        await room.pass_slots()
        (fire,) = await room.fires(subscription.id)
        assert (fire.state, fire.error, fire.attempts) == ("released", "target_refused", 1)
        assert opened == []
        assert [receiver.connections for receiver in receivers] == [0, 0]


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_no_redirect_leads_inside(tmp_path, code):
    async with receiving() as target, open_room(tmp_path) as room:
        async with receiving(status(code, f"Location: {target.url()}")) as receiver:
            subscription = await room.subscribe(receiver.url())
            await room.pass_slots()
            assert (len(receiver.requests), target.connections) == (1, 0)
        (fire,) = await room.fires(subscription.id)
        assert (fire.status, fire.error) == (code, "redirect")
