"""Subscriptions of MCP Events: what wakes an agent, what it costs, and what its receiver has to prove."""

import base64
import hashlib
import json

import pytest
import standardwebhooks

from tests.calls.parts import POOR, RICH
from tests.calls.shop import DOWN
from tests.calls.toy import FIRST, SECOND
from tests.requirements import proves
from tests.webhooks.receivers import receiving, receiving_events, status
from tests.webhooks.room import EVENT_SECRET, open_room
from toolserver.errors import InsufficientCredits, InvalidArguments, NotFound, SubscriptionConflict
from toolserver.webhooks import events
from toolserver.webhooks.event_subscriptions import (
    DEFAULT_TTL_MS,
    LEAST_TTL_MS,
    MOST_TTL_MS,
    EventRequest,
    ReceiverUnverified,
)
from toolserver.webhooks.events import MOST_BODY, UnknownEvent
from toolserver.webhooks.records import SubscriptionRequest

OTHER_SECRET = "whsec_" + base64.b64encode(bytes(range(64))).decode()


def events_of(receiver):
    """The bodies of the events that arrived, without verifications."""
    bodies = [json.loads(request.body) for request in receiver.requests]
    return [body for body in bodies if body.get("type") != "verification"]


def deliveries_of(receiver):
    return [request for request in receiver.requests if b'"verification"' not in request.body]


@proves("events.once", "events.quiet")
async def test_a_bound_wakes_once_in_a_slot_never_on_stale_data_and_costs_one_credit_over_a_restart(tmp_path):
    async with receiving_events() as receiver:
        async with open_room(tmp_path) as room:
            room.values(95_000)
            stored = await room.subscribe_event(receiver.url(), below=90_000)
            await room.pass_time(0)
            assert events_of(receiver) == []
            room.shop.internet.serves(FIRST, DOWN)
            room.shop.internet.serves(SECOND, DOWN)
            await room.pass_slots(2)  # the last price is stale by now
            assert events_of(receiver) == []
            room.values(89_500)
            await room.pass_slots()
            [event] = events_of(receiver)
        clock = room.clock
        async with open_room(tmp_path, clock=clock) as room:
            for price in (89_000, 89_900, 91_000):  # still below, and back again, which wakes nobody
                room.values(price)
                await room.pass_slots()
            assert events_of(receiver) == [event]
            assert await room.spent() == 1
            room.values(88_000)
            await room.pass_slots()
            assert len(events_of(receiver)) == 2
            assert await room.spent() == 2

    assert event["name"] == "number.crossed"
    assert event["data"]["items"] == [{"id": "number", "value": 89_500.0}]
    assert event["data"]["fetch"] == {"tool": "number", "arguments": {}}
    assert event["cursor"] is None
    [first, _] = deliveries_of(receiver)
    assert first.headers["webhook-id"] == event["eventId"]
    assert first.headers["x-mcp-subscription-id"] == stored.id
    assert not [name for name in first.headers if name.startswith("x-service-") and "receipt" not in name]


@proves("events.once", "webhook.standard")
async def test_a_library_verifies_the_delivery_and_its_receipt_is_of_these_bytes(tmp_path):
    async with open_room(tmp_path) as room, receiving_events() as receiver:
        room.values(1)
        await room.subscribe_event(receiver.url(), below=2)
        await room.pass_time(0)
        [delivery] = deliveries_of(receiver)
        signed = standardwebhooks.Webhook(EVENT_SECRET).sign(
            delivery.headers["webhook-id"], room.clock.now(), delivery.body.decode()
        )
        assert delivery.headers["webhook-signature"] == signed
        receipt = await room.shop.evidence.receipt(delivery.headers["x-service-receipt-id"], RICH)
        digest = hashlib.sha256(delivery.body).hexdigest()
        verdict = await room.shop.evidence.verify(receipt["receipt"], digest)
        assert verdict["valid"] is True
        assert verdict["checks"]["body"] is True


@proves("events.once")
async def test_ten_in_a_slot_are_one_delivery_for_one_credit(tmp_path):
    async with open_room(tmp_path) as room, receiving_events() as receiver:
        room.values(3)
        await room.subscribe_event(receiver.url(), "number.listed")
        await room.pass_time(0)
        room.values(13)
        await room.pass_slots(2)
        [event] = events_of(receiver)
        assert [item["id"] for item in event["data"]["items"]] == [f"n{number}" for number in range(3, 13)]
        assert event["data"]["more"] == 0
        assert await room.spent() == 1


async def test_what_is_more_than_one_event_shows_is_counted(tmp_path):
    async with open_room(tmp_path) as room, receiving_events() as receiver:
        room.values(0)
        await room.subscribe_event(receiver.url(), "number.listed")
        await room.pass_time(0)
        room.values(60)
        await room.pass_slots()
        [event] = events_of(receiver)
        assert (len(event["data"]["items"]), event["data"]["more"]) == (50, 10)


async def test_every_attempt_has_the_same_bytes_and_a_new_signature(tmp_path):
    async with open_room(tmp_path) as room, receiving_events(status(503)) as receiver:
        room.values(1)
        await room.subscribe_event(receiver.url(), below=2)
        await room.pass_time(0)
        await room.pass_time(10)
        one, other = deliveries_of(receiver)
        assert one.body == other.body
        assert one.headers["webhook-id"] == other.headers["webhook-id"]
        assert one.headers["webhook-signature"] != other.headers["webhook-signature"]
        assert await room.spent() == 0


@proves("events.ended")
@pytest.mark.parametrize(("code", "state"), [(413, "active"), (410, "cancelled")])
async def test_a_body_that_is_too_large_or_unwanted_is_sent_once_and_410_ends_the_subscription(tmp_path, code, state):
    async with open_room(tmp_path) as room, receiving_events(status(code)) as receiver:
        room.values(1)
        stored = await room.subscribe_event(receiver.url(), below=2)
        await room.pass_time(0)
        await room.pass_time(200)
        assert len(deliveries_of(receiver)) == 1
        assert (await room.subscription(stored.subscription.id)).state == state
        assert await room.spent() == 0


@proves("events.verified")
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (status(204), "challenge_failed"),
        (status(200, body=b'{"challenge":"other"}'), "challenge_failed"),
        (status(200, body=b"[" * 9000), "challenge_failed"),
        (status(404), "http_4xx"),
        (status(503), "http_5xx"),
        (status(302, "Location: http://127.0.0.1/"), "http_4xx"),
    ],
)
async def test_a_receiver_that_does_not_repeat_the_challenge_gets_nothing(tmp_path, answer, reason):
    async with open_room(tmp_path) as room, receiving(answer) as receiver:
        room.values(1)
        with pytest.raises(ReceiverUnverified) as refused:
            await room.subscribe_event(receiver.url(), below=2)
        assert refused.value.reason == reason
        assert await room.hooks.store.all(10) == []
        [asked] = receiver.requests
        assert asked.headers["webhook-id"].startswith("msg_verification_")
        assert set(json.loads(asked.body)) == {"type", "challenge"}


async def test_a_receiver_that_is_not_there_is_named_so(tmp_path):
    async with open_room(tmp_path) as room, receiving_events() as receiver:
        pass
    async with open_room(tmp_path / "other") as room:
        room.values(1)
        with pytest.raises(ReceiverUnverified, match="connection_refused"):
            await room.subscribe_event(receiver.url(), below=2)


@proves("events.verified")
async def test_a_proof_counts_for_a_day_for_the_same_owner_and_receiver_also_after_a_restart(tmp_path):
    async with receiving_events() as receiver:
        async with open_room(tmp_path) as room:
            room.values(9)
            await room.subscribe_event(receiver.url(), below=2)
            await room.subscribe_event(receiver.url(), below=3)
            assert room.verifications == 1
        async with open_room(tmp_path, clock=room.clock) as room:
            room.values(9)
            await room.subscribe_event(receiver.url(), below=2)
            assert room.verifications == 0
            await room.subscribe_event(receiver.url(path="/other"), below=2)
            assert room.verifications == 1
            room.clock.advance(86_400)
            await room.subscribe_event(receiver.url(), below=2)
            assert room.verifications == 2
        assert len(receiver.requests) == 3


@proves("events.renewed")
async def test_the_same_call_renews_and_is_one_of_the_five(tmp_path):
    async with open_room(tmp_path) as room, receiving_events() as receiver:
        room.values(9)
        first = await room.subscribe_event(receiver.url(), below=2)
        room.clock.advance(1000)
        again = await room.subscribe_event(receiver.url(), below=2.0)
        assert (again.id, again.subscription.id) == (first.id, first.subscription.id)
        assert again.subscription.expires_at == first.subscription.expires_at + 1_000_000
        assert first.id.startswith("sub_")
        assert len(first.id) == 36
        for bound in (3, 4):
            await room.subscribe_event(receiver.url(), below=bound)
        for number in range(2):
            await room.subscribe(receiver.url(path=f"/{number}"))
        with pytest.raises(SubscriptionConflict):
            await room.subscribe_event(receiver.url(path="/sixth"), below=6)
        assert len(receiver.requests) == 1, "no receiver is asked in vain"
        assert (await room.subscribe_event(receiver.url(), below=2)).id == first.id


@proves("events.secret")
async def test_a_new_secret_signs_with_the_old_one_for_a_day(tmp_path):
    async with open_room(tmp_path) as room, receiving_events() as receiver:
        room.values(9)
        await room.subscribe_event(receiver.url(), below=2)
        await room.subscribe_event(receiver.url(), below=2, secret=OTHER_SECRET)
        room.values(1)
        await room.pass_slots()
        [delivery] = deliveries_of(receiver)
        signatures = delivery.headers["webhook-signature"].split(" ")
        signed = [
            standardwebhooks.Webhook(secret).sign(
                delivery.headers["webhook-id"], room.clock.now(), delivery.body.decode()
            )
            for secret in (OTHER_SECRET, EVENT_SECRET)
        ]
        assert signatures == signed


@proves("events.secret")
async def test_the_secret_is_in_no_file_and_in_no_record(tmp_path, caplog):
    async with open_room(tmp_path) as room, receiving_events() as receiver:
        room.values(9)
        stored = await room.subscribe_event(receiver.url(), below=2)
        assert EVENT_SECRET[6:] not in repr(stored)
        assert EVENT_SECRET[6:] not in repr(EventRequest("n", {}, "u", EVENT_SECRET))
        assert not [note for note in caplog.records if EVENT_SECRET[6:] in note.getMessage()]
    for file in tmp_path.rglob("*"):
        assert file.is_dir() or EVENT_SECRET[6:].encode() not in file.read_bytes()


@proves("events.secret")
async def test_our_own_tools_neither_rotate_nor_test_what_a_client_keeps_the_secret_of(tmp_path):
    async with open_room(tmp_path) as room, receiving_events() as receiver:
        room.values(9)
        id = (await room.subscribe_event(receiver.url(), below=2)).subscription.id
        with pytest.raises(SubscriptionConflict, match="MCP Events"):
            await room.hooks.subscriptions.rotate_secret(RICH, id)
        with pytest.raises(SubscriptionConflict, match="MCP Events"):
            await room.hooks.subscriptions.test(RICH, id, None, None)
        [listed] = await room.hooks.subscriptions.list_kept(RICH)
        assert listed.given_condition is None
        assert "number.crossed" in listed.description


WEAK = ["", "whsec_", EVENT_SECRET[6:], "whsec_" + "AAAA" * 7, EVENT_SECRET + "=", "whsec_é" * 9]


@pytest.mark.parametrize("secret", WEAK)
async def test_a_weak_secret_is_refused_and_not_repeated(tmp_path, secret):
    async with open_room(tmp_path) as room:
        with pytest.raises(InvalidArguments) as refused:
            await room.subscribe_event("https://hooks.example/a", below=2, secret=secret)
        assert len(secret) < 8 or secret not in str(refused.value.extra)


@proves("events.ended")
async def test_a_subscription_ends_with_its_time_and_frees_its_place(tmp_path):
    async with open_room(tmp_path) as room, receiving_events() as receiver:
        room.values(9)
        stored = await room.subscribe_event(receiver.url(), below=2, ttl_ms=1)
        for bound in range(3, 7):
            await room.subscribe_event(receiver.url(), below=bound)
        room.clock.advance(LEAST_TTL_MS / 1000)
        await room.subscribe_event(receiver.url(), below=7)
        room.values(1)
        await room.pass_slots()
        assert (await room.subscription(stored.subscription.id)).state == "cancelled"
        assert len(events_of(receiver)) == 5


@pytest.mark.parametrize(
    ("asked", "granted"),
    [(None, DEFAULT_TTL_MS), (1, LEAST_TTL_MS), (3_600_000, 3_600_000), (float("inf"), MOST_TTL_MS)],
)
async def test_a_time_is_clamped_and_never_refused(tmp_path, asked, granted):
    async with open_room(tmp_path) as room, receiving_events() as receiver:
        room.values(9)
        stored = await room.subscribe_event(receiver.url(), below=2, ttl_ms=asked)
        assert stored.subscription.expires_at - room.clock.time() * 1000 == granted


@proves("events.ended")
async def test_upkeep_ends_what_nothing_claims(tmp_path):
    async with open_room(tmp_path) as room, receiving_events() as receiver:
        room.values(9)
        stored = await room.subscribe_event(receiver.url(), below=2)
        room.clock.advance(DEFAULT_TTL_MS / 1000)
        await room.hooks.queue.keep_house()
        assert (await room.subscription(stored.subscription.id)).state == "cancelled"


@proves("events.ended")
async def test_a_client_ends_it_by_what_it_subscribed_to(tmp_path):
    async with open_room(tmp_path) as room, receiving_events() as receiver:
        room.values(9)
        stored = await room.subscribe_event(receiver.url(), below=2)
        other = EventRequest("number.crossed", {"below": 3}, receiver.url())
        with pytest.raises(NotFound):
            await room.hooks.events.unsubscribe(RICH, other)
        with pytest.raises(NotFound):
            await room.hooks.events.unsubscribe(POOR, EventRequest("number.crossed", {"below": 2}, receiver.url()))
        await room.hooks.events.unsubscribe(RICH, EventRequest("number.crossed", {"below": 2}, receiver.url()))
        assert (await room.subscription(stored.subscription.id)).state == "cancelled"


async def test_without_credits_nothing_is_subscribed_and_a_renewal_resumes_what_was_paused(tmp_path):
    async with open_room(tmp_path) as room, receiving_events() as receiver:
        room.values(9)
        await room.shop.ledger.reserve(f"call_{200:032x}", POOR, 1, endpoint="/x", ttl_s=9000)
        with pytest.raises(InsufficientCredits):
            await room.subscribe_event(receiver.url(), below=2, token=POOR)
        assert receiver.requests == []
        stored = await room.subscribe_event(receiver.url(), below=2)
        await room.shop.ledger.reserve(f"call_{1:032x}", RICH, 100, endpoint="/x", ttl_s=9000)
        await room.pass_slots()
        paused = await room.subscription(stored.subscription.id)
        assert (paused.state, paused.pause_reason) == ("paused", "insufficient_credits")
        await room.shop.ledger.settle(f"call_{1:032x}", no_charge="5xx")
        renewed = await room.subscribe_event(receiver.url(), below=2)
        assert renewed.subscription.state == "active"
        assert renewed.subscription.id == paused.id


async def test_a_report_comes_once_in_its_period_and_a_large_one_as_a_call_to_make(tmp_path, monkeypatch):
    async with open_room(tmp_path) as room, receiving_events() as receiver:
        room.values(7)
        await room.subscribe_event(receiver.url(), "report.ready", endpoint="report", every_hours=1)
        await room.pass_time(0)
        await room.pass_slots(12)
        [event] = events_of(receiver)
        [item] = event["data"]["items"]
        assert item["endpoint"] == "report"
        assert item["untrusted"]["report"]["one"] == 7.0
        monkeypatch.setattr(events, "MOST_BODY", events.ENVELOPE + 300)
        await room.pass_slots(12)
        _, large = events_of(receiver)
        assert (large["data"]["items"], large["data"]["more"]) == ([], 1)
        assert large["data"]["fetch"] == {"tool": "premium_report", "arguments": {}}
        assert MOST_BODY == 262_144


async def test_an_unknown_event_and_wrong_arguments_are_refused_without_their_values(tmp_path):
    async with open_room(tmp_path) as room:
        with pytest.raises(UnknownEvent, match=r"number\.crossed"):
            await room.subscribe_event("https://hooks.example/a", "price.crosed")
        with pytest.raises(InvalidArguments) as refused:
            await room.subscribe_event("https://hooks.example/a", below="my secret", other=1)
        assert [error["loc"] for error in refused.value.extra["errors"]] == ["arguments.below", "arguments.other"]
        assert "my secret" not in str(refused.value.extra)


@pytest.mark.parametrize("query", ["k=%7E&b=1%2B2", "mcp=a%20b+c&x", "a=%c3%a9"])
async def test_a_query_is_delivered_byte_for_byte(tmp_path, query):
    async with open_room(tmp_path) as room, receiving_events() as receiver:
        room.values(1)
        await room.subscribe_event(f"{receiver.url()}?{query}", below=2)
        await room.pass_time(0)
        assert [request.path for request in receiver.requests] == [f"/hook?{query}"] * 2


async def test_a_free_endpoint_cannot_be_had_as_a_webhook_of_our_own(tmp_path):
    async with open_room(tmp_path) as room:
        for endpoint in ("/api/number", "number"):
            with pytest.raises(InvalidArguments):
                await room.hooks.subscriptions.subscribe(RICH, SubscriptionRequest(endpoint, "https://hooks.example/a"))


def test_an_id_does_not_depend_on_the_order_of_arguments():
    ids = {events.derive_id("o", "u", "n", arguments) for arguments in ({"a": 1, "b": 2}, {"b": 2, "a": 1})}
    assert len(ids) == 1
    assert events.derive_id("o", "u", "n", {"a": 2}) not in ids
