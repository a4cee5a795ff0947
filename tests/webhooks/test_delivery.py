import asyncio
import json
import socket
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import anyio
import pytest
from yarl import URL

from tests.requirements import proves
from tests.webhooks import receivers
from tests.webhooks.receivers import certificates, receiving, status
from tests.webhooks.room import LOCAL
from tests.webhooks.shop import NOW, fire, subscription
from toolserver.clock import ManualClock, SystemClock
from toolserver.webhooks.delivery import DeliveryNetwork, WebhookMessage, WebhookSender, compose_body
from toolserver.webhooks.egress import DnsLane, EgressGuard
from toolserver.webhooks.signing import SubscriptionSecrets

IMPATIENT = replace(LOCAL, total_s=0.3, rest_s=0.1)


@asynccontextmanager
async def sending(guard=None, network=LOCAL):
    lane = DnsLane(guard or EgressGuard(allow_loopback=True), SystemClock(), lookup=network.lookup)
    sender = WebhookSender(lane, SystemClock(), network)
    try:
        yield sender
    finally:
        await sender.close()
        lane.close()


async def attempt(answer, network=LOCAL):
    async with receiving(answer) as receiver, sending(network=network) as sender:
        return await sender.send(URL(receiver.url()), b"{}", {}), receiver


@proves("webhook.sender")
async def test_a_delivery_is_a_post_of_these_bytes_with_our_name_and_the_headers_of_the_owner():
    async with receiving() as receiver, sending() as sender:
        outcome = await sender.send(URL(receiver.url(path="/hook?a=b")), b'{"a":1}', {"X-Mine": "1"})
    assert (outcome.delivered, outcome.status, outcome.error) == (True, 204, None)
    (request,) = receiver.requests
    assert (request.path, request.body) == ("/hook?a=b", b'{"a":1}')
    assert request.headers["content-type"] == "application/json"
    assert request.headers["user-agent"] == "toolserver-webhook/1.0"
    assert request.headers["x-mine"] == "1"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (status(200, body=b"ok"), (200, None)),
        (status(202), (202, None)),
        (status(500), (500, "http_500")),
        (status(404), (404, "http_404")),
        (status(410), (410, "http_410")),
        (status(302, "Location: https://example.com/"), (302, "redirect")),
        (status(307, "Location: http://127.0.0.1:1/"), (307, "redirect")),
        (receivers.close, (None, "closed")),
        (receivers.close_in_head, (None, "closed")),
        (receivers.close_in_body, (200, None)),
        (receivers.hang, (None, "timeout")),
        (receivers.drip_head, (None, "timeout")),
        (receivers.drip_body, (200, None)),
        (receivers.flood_body, (200, None)),
    ],
)
async def test_every_end_has_one_word_and_is_reached_in_time(answer, expected):
    started = anyio.current_time()
    outcome, receiver = await attempt(answer, IMPATIENT)
    assert (outcome.status, outcome.error) == expected
    assert anyio.current_time() - started <= 2 * IMPATIENT.total_s  # of idle time: that of a busy machine is not in it
    assert len(receiver.requests) == 1


@proves("webhook.no-redirect")
async def test_a_redirect_is_not_followed():
    async with receiving() as target:
        async with receiving(status(302, f"Location: {target.url()}")) as receiver, sending() as sender:
            await sender.send(URL(receiver.url()), b"{}", {})
        assert (target.connections, len(receiver.requests)) == (0, 1)


async def test_nobody_listening_is_a_failure_to_connect():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        async with sending() as sender:
            outcome = await sender.send(URL(f"http://127.0.0.1:{unused.getsockname()[1]}/"), b"{}", {})
    assert (outcome.status, outcome.error) == (None, "connect")


async def test_a_name_without_an_address_is_a_failure_of_its_own():
    def fail(host):
        raise OSError(-2, "unknown")

    async with sending(network=DeliveryNetwork(lookup=fail)) as sender:
        outcome = await sender.send(URL("https://nobody.example/"), b"{}", {})
    assert (outcome.status, outcome.error) == (None, "dns")


async def test_proxies_of_the_environment_are_not_used(monkeypatch):
    async with receiving() as proxy, receiving() as receiver, sending() as sender:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url())
        assert (await sender.send(URL(receiver.url()), b"{}", {})).delivered
        assert proxy.connections == 0


async def test_cookies_are_not_kept():
    async with receiving(status(200, "Set-Cookie: a=b; Path=/")) as receiver, sending() as sender:
        for _ in range(2):
            await sender.send(URL(receiver.url()), b"{}", {})
    assert all("cookie" not in request.headers for request in receiver.requests)


LITERALS = ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f000001", "127.1", "0", "0177.1"]


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("host", LITERALS)
@proves("webhook.target")
async def test_the_guard_alone_keeps_every_form_of_this_machine_from_being_connected_to(host, scheme):
    family = "::1" if host == "[::1]" else "127.0.0.1"
    async with receiving(host=family) as receiver, sending(EgressGuard()) as sender:
        sent = [await sender.send(URL(f"{scheme}://{host}:{receiver.port}/", encoded=True), b"{}", {}) for _ in "ab"]
        assert {outcome.error for outcome in sent} <= {"target_refused", "dns"}
        assert receiver.connections == 0


@proves("webhook.rebinding")
async def test_a_name_that_leads_inside_on_its_second_lookup_is_not_connected_to():
    async with receiving() as receiver:
        answers = iter([["1.1.1.1"], ["127.0.0.1"]])
        clock = ManualClock(datetime(2027, 1, 1, tzinfo=UTC))
        lane = DnsLane(EgressGuard(), clock, lookup=lambda host: next(answers))
        await lane.resolve("a.example")
        clock.advance(31)
        sender = WebhookSender(lane, clock, LOCAL)
        outcome = await sender.send(URL(f"https://a.example:{receiver.port}/"), b"{}", {})
        await sender.close()
        lane.close()
        assert (outcome.error, receiver.connections) == ("target_refused", 0)


async def test_the_certificate_must_be_of_the_name_and_of_an_authority_that_is_trusted():
    server, client = certificates("good.localhost")
    async with receiving(tls=server) as receiver:
        async with sending(network=replace(LOCAL, load_tls=lambda: client)) as sender:
            assert (await sender.send(URL(receiver.url("https", "good.localhost")), b"{}", {})).delivered
            assert (await sender.send(URL(receiver.url("https", "bad.localhost")), b"{}", {})).error == "tls"
        async with sending() as stranger:
            assert (await stranger.send(URL(receiver.url("https", "good.localhost")), b"{}", {})).error == "tls"
        assert len(receiver.requests) == 1


async def test_retry_after_is_heard_as_seconds_or_as_a_date_and_up_to_four_minutes():
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    for header, low, high in (("7", 7, 7), ("0", 0, 0), (soon, 50, 60)):
        outcome, _ = await attempt(status(429, f"Retry-After: {header}"))
        assert low <= outcome.retry_after_s <= high
    for header in ("241", "soon", "-1", "1e3", "٣"):
        outcome, _ = await attempt(status(429, f"Retry-After: {header}"))
        assert outcome.retry_after_s in (None, 0)
    outcome, _ = await attempt(status(200, "Retry-After: 7"))
    assert outcome.retry_after_s is None


@pytest.mark.parametrize("year", [2001, 2040])
async def test_a_date_to_wait_for_is_one_of_the_receivers_clock(year):
    there = datetime(year, 5, 6, tzinfo=UTC)
    said_at, until = (format_datetime(there + timedelta(seconds=after), usegmt=True) for after in (0, 90))
    outcome, _ = await attempt(status(503, f"Date: {said_at}", f"Retry-After: {until}"))
    assert outcome.retry_after_s == 90


async def test_what_is_no_failure_of_the_receiver_is_not_hidden():
    async with sending() as sender:
        with pytest.raises(TypeError):
            await sender.send(URL("http://127.0.0.1:1/"), b"{}", {1: 2})


async def test_a_connection_is_used_again():
    async with receiving() as receiver, sending() as sender:
        for _ in range(3):
            await sender.send(URL(receiver.url()), b"{}", {})
        assert (receiver.connections, len(receiver.requests)) == (1, 3)
    await asyncio.sleep(0)


HELD = SubscriptionSecrets("whsec_00112233445566778899aabbccddeeff", headers={"X-Mine": "1", "webhook-id": "false"})


def test_the_body_is_that_of_the_specification_with_the_payload_as_it_is():
    body = compose_body(fire(sent_at=NOW + 7), subscription(), b'{"a": 1.50}')
    assert body == (
        b'{"subscription_id":"wh_0000000000000001","endpoint":"world-deltas",'
        b'"delivered_at":"2027-01-15T08:00:00.007Z","data":{"a": 1.50}}'
    )


def test_conditions_and_tests_add_one_member_each():
    conditional = fire(kind="fired", condition=b'{"name":"n"}')
    assert json.loads(compose_body(conditional, subscription(), b"{}"))["condition"] == {"name": "n"}
    assert json.loads(compose_body(fire(kind="test"), subscription(), b"{}"))["test"] is True


def test_our_headers_win_over_custom_ones_and_a_free_delivery_names_no_receipt():
    headers = WebhookMessage(fire(), subscription(), b"{}").headers(HELD, NOW)
    assert (headers["X-Mine"], headers["webhook-id"]) == ("1", fire().message_id)
    assert headers["X-Service-Subscription"] == subscription().id
    assert headers["X-Service-Receipt-Id"] == fire().receipt_id
    assert "X-Service-Receipt-Id" not in WebhookMessage(fire(price=0), subscription(), b"{}").headers(HELD, NOW)
