import hashlib
import re

import msgspec
import pytest

from tests.calls.parts import POOR, RICH
from tests.calls.shop import DOWN
from tests.calls.toy import FIRST, SECOND
from tests.requirements import proves
from tests.webhooks import receivers
from tests.webhooks.receivers import receiving, status
from tests.webhooks.room import SLOT_S, open_room, opened
from toolserver.errors import BillingUnavailable, InvalidArguments, SubscriptionConflict
from toolserver.money.ledger.protocol import UnknownCall
from toolserver.webhooks.conditions import ConditionInput
from toolserver.webhooks.delivery import DeliveryNetwork
from toolserver.webhooks.fire_operations import ClaimSubscriptions
from toolserver.webhooks.records import SubscriptionRequest
from toolserver.webhooks.subscription_operations import AddSubscription, PauseSubscription


@pytest.fixture
async def room(tmp_path):
    async with open_room(tmp_path) as opened_room:
        yield opened_room


@proves("webhook.headers", "webhook.body")
async def test_a_delivery_has_the_headers_and_the_body_of_the_specification(room):
    async with receiving() as receiver:
        created = await room.hooks.subscriptions.subscribe(RICH, SubscriptionRequest("report", receiver.url()))
        assert await room.pass_slots() == 1
    (request,) = receiver.requests
    body = opened(request, created.secret, room.clock.time())
    assert list(body) == ["subscription_id", "endpoint", "delivered_at", "data"]
    assert (body["subscription_id"], body["endpoint"]) == (created.subscription.id, "report")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", body["delivered_at"])
    answer = await room.shop.buy()
    assert body["data"] == answer.json()
    headers = request.headers
    assert headers["x-service-subscription"] == created.subscription.id
    assert headers["content-type"] == "application/json"
    assert headers["user-agent"] == "toolserver-webhook/1.0"
    assert headers["x-service-timestamp"] == headers["webhook-timestamp"] == str(int(room.clock.time()))
    assert re.fullmatch("msg_[0-9a-f]{32}", headers["webhook-id"])


@proves("webhook.charge")
async def test_a_delivered_fire_costs_one_credit_and_its_receipt_is_about_the_body_that_was_sent(room):
    async with receiving() as receiver:
        subscription = await room.subscribe(receiver.url())
        await room.pass_slots()
    (fire,) = await room.fires(subscription.id)
    assert (fire.state, fire.attempts, fire.status, fire.reason) == ("charged", 1, 204, None)
    assert (await room.spent(), await room.held()) == (1, 0)
    (request,) = receiver.requests
    core = (await room.shop.evidence.receipt(request.headers["x-service-receipt-id"], RICH))["receipt"]
    assert (core["kind"], core["credits_charged"], core["call_id"]) == ("webhook", 1, fire.id)
    assert core["response_sha256"] == hashlib.sha256(request.body).hexdigest()
    assert core["captured_at"] == msgspec.json.decode(request.body)["data"]["captured_at"] is not None
    after = await room.subscription(subscription.id)
    assert (after.delivered_count, after.last_status, after.last_error) == (1, 204, None)


@proves("webhook.slot")
async def test_every_slot_has_one_fire_and_a_long_silence_has_one(room):
    async with receiving() as receiver:
        await room.subscribe(receiver.url())
        await room.pass_slots(3)
        await room.hooks.queue.work_due()
        assert len(receiver.requests) == 3
        await room.pass_time(86_400)
        assert len(receiver.requests) == 4
        await room.pass_time(SLOT_S - 1)
        await room.pass_time(1)
        assert len(receiver.requests) == 5
    assert await room.spent() == 5


@proves("webhook.retry")
async def test_a_failed_attempt_is_repeated_with_the_same_id_and_bytes_and_a_new_timestamp(room):
    async with receiving(status(500)) as receiver:
        subscription = await room.subscribe(receiver.url())
        await room.pass_slots()
        receiver.answer = status(200)
        assert await room.pass_time(3.9) == 0
        await room.pass_time(2.2)
    first, second = receiver.requests
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body
    assert int(second.headers["x-service-timestamp"]) - int(first.headers["x-service-timestamp"]) in (6, 7)
    assert await room.spent() == 1
    (fire,) = await room.fires(subscription.id)
    assert (fire.state, fire.attempts) == ("charged", 2)


@proves("no-charge.delivery-failed")
async def test_four_attempts_in_a_slot_and_then_the_credits_come_back(room):
    async with receiving(status(500)) as receiver:
        subscription = await room.subscribe(receiver.url())
        await room.pass_slots()
        for delay in (6.1, 36.1, 144.1):
            assert await room.held() == 1
            await room.pass_time(delay)
        assert len(receiver.requests) == 4
        assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1
    (fire,) = await room.fires(subscription.id)
    assert (fire.state, fire.reason, fire.attempts, fire.error) == ("released", "delivery_failed", 4, "http_500")
    assert (await room.spent(), await room.held()) == (0, 0)
    after = await room.subscription(subscription.id)
    assert (after.failed_count, after.consecutive_failures, after.last_error) == (1, 1, "http_500")
    stats = await room.shop.evidence.no_charge(room.clock.now().date())
    assert stats["by_reason"] == {"delivery_failed": 1}


@pytest.mark.parametrize(
    "answer", [receivers.hang, receivers.drip_head, receivers.close, receivers.close_in_head, status(302), status(503)]
)
async def test_no_fault_of_a_receiver_costs_anything(tmp_path, answer):
    async with open_room(tmp_path, network=DeliveryNetwork(total_s=0.2)) as room, receiving(answer) as receiver:
        subscription = await room.subscribe(receiver.url())
        await room.pass_slots()
        for delay in (6.1, 36.1, 144.1):
            await room.pass_time(delay)
        assert len(receiver.requests) == 4
        (fire,) = await room.fires(subscription.id)
        assert (fire.state, fire.reason) == ("released", "delivery_failed")
        assert (await room.spent(), await room.held()) == (0, 0)


@pytest.mark.parametrize("answer", [receivers.close_in_body, receivers.drip_body])
async def test_a_2xx_is_a_delivery_whatever_the_body_does(tmp_path, answer):
    async with open_room(tmp_path, network=DeliveryNetwork(rest_s=0.05)) as room, receiving(answer) as receiver:
        await room.subscribe(receiver.url())
        await room.pass_slots()
        assert (len(receiver.requests), await room.spent()) == (1, 1)


async def test_a_retry_after_is_waited_for(room):
    async with receiving(status(429, "Retry-After: 60")) as receiver:
        await room.subscribe(receiver.url())
        await room.pass_slots()
        assert await room.pass_time(59) == 0
        receiver.answer = status(200)
        await room.pass_time(1.1)
        assert (len(receiver.requests), await room.spent()) == (2, 1)


@proves("webhook.pause-reasons")
async def test_410_stops_the_subscription(room):
    async with receiving(status(410)) as receiver:
        subscription = await room.subscribe(receiver.url())
        await room.pass_slots(3)
        assert len(receiver.requests) == 1
    after = await room.subscription(subscription.id)
    assert (after.state, after.pause_reason) == ("paused", "endpoint_gone")
    assert (await room.spent(), await room.held()) == (0, 0)


@pytest.mark.parametrize("when", [None, ConditionInput(path="one", changed=True)])
async def test_a_tool_that_is_no_longer_sold_pauses_its_subscriptions_and_says_so(room, when, caplog):
    async with receiving() as receiver:
        sold = await room.subscribe(receiver.url(), when=when)
        await room.hooks.subscriptions.cancel(RICH, sold.id)
        subscription = sold._replace(id="wh_0000000000000000", endpoint="sold-before")
        await room.hooks.store.apply(AddSubscription(subscription))
        await room.pass_slots(3)
        assert receiver.requests == []
    after = await room.subscription(subscription.id)
    assert (after.state, after.pause_reason) == ("paused", "tool_removed")
    assert [line.message for line in caplog.records].count("a subscription is paused: its tool is no longer sold") == 1
    assert (await room.spent(), await room.held()) == (0, 0)
    with pytest.raises(SubscriptionConflict, match="no longer sells"):
        await room.hooks.subscriptions.resume(RICH, subscription.id)


async def test_a_note_with_characters_that_cannot_be_seen_is_refused(room):
    request = SubscriptionRequest("report", "https://hooks.example/x", description="mine\u2066")
    with pytest.raises(InvalidArguments, match=r"description: contains U\+2066"):
        await room.hooks.subscriptions.subscribe(RICH, request)


async def test_another_refusal_is_tried_once_more(room):
    async with receiving(status(404)) as receiver:
        await room.subscribe(receiver.url())
        await room.pass_slots()
        for delay in (6.1, 36.1, 144.1):
            await room.pass_time(delay)
        assert len(receiver.requests) == 2


@proves("webhook.autopause", "webhook.pause-reasons")
async def test_without_credits_the_subscription_pauses_and_nothing_is_sent(room):
    async with receiving() as receiver:
        subscription = await room.subscribe(receiver.url(), token=POOR)
        await room.pass_slots(3)
        assert len(receiver.requests) == 1
    after = await room.subscription(subscription.id)
    assert (after.state, after.pause_reason) == ("paused", "insufficient_credits")


@proves("webhook.pause-reasons")
async def test_a_revoked_token_pauses_with_that_reason(room):
    async with receiving() as receiver:
        subscription = await room.subscribe(receiver.url())
        await room.shop.ledger.revoke(hashlib.sha256(RICH.encode()).hexdigest()[:16], "test")
        await room.pass_slots()
        assert receiver.requests == []
    assert (await room.subscription(subscription.id)).pause_reason == "expired"


@proves("webhook.ledger-away")
async def test_while_the_ledger_is_away_the_slot_is_left_out_and_nobody_is_paused(room, monkeypatch):
    async def away(*_, **__):
        raise BillingUnavailable("away")

    async with receiving() as receiver:
        subscription = await room.subscribe(receiver.url())
        with monkeypatch.context() as outage:
            outage.setattr(room.shop.ledger, "reserve", away)
            await room.pass_slots()
        assert receiver.requests == []
        (fire,) = await room.fires(subscription.id)
        assert (fire.state, fire.reason) == ("skipped", "billing_unavailable")
        await room.pass_slots()
        assert len(receiver.requests) == 1
    assert (await room.subscription(subscription.id)).state == "active"


async def test_what_was_delivered_while_the_ledger_went_away_is_charged_later(room, monkeypatch):
    async def away(*_, **__):
        raise BillingUnavailable("away")

    async with receiving() as receiver:
        subscription = await room.subscribe(receiver.url())
        with monkeypatch.context() as outage:
            outage.setattr(room.shop.ledger, "settle", away)
            await room.pass_slots()
        (fire,) = await room.fires(subscription.id)
        assert (fire.state, await room.spent()) == ("accepted", 0)
        await room.pass_time(61)
        assert len(receiver.requests) == 1
    (fire,) = await room.fires(subscription.id)
    assert (fire.state, await room.spent()) == ("charged", 1)


async def test_a_fire_that_was_attempted_waits_for_a_ledger_that_went_away(room, monkeypatch):
    async def away(*_, **__):
        raise BillingUnavailable("away")

    async with receiving(status(500)) as receiver:
        subscription = await room.subscribe(receiver.url())
        await room.pass_slots()
        receiver.answer = status(200)
        with monkeypatch.context() as outage:
            outage.setattr(room.shop.ledger, "reserve", away)
            await room.pass_time(6.1)
            assert (len(receiver.requests), await room.held()) == (1, 1)
        await room.pass_time(61)
        assert len(receiver.requests) == 2
    (fire,) = await room.fires(subscription.id)
    assert (fire.state, await room.spent(), await room.held()) == ("charged", 1, 0)


async def test_a_reservation_that_is_gone_ends_the_fire(room, monkeypatch):
    async def gone(*_, **__):
        raise UnknownCall("swept")

    async with receiving() as receiver:
        subscription = await room.subscribe(receiver.url())
        monkeypatch.setattr(room.shop.ledger, "settle", gone)
        await room.pass_slots()
    (fire,) = await room.fires(subscription.id)
    assert (fire.state, fire.reason) == ("released", "delivery_failed")


@proves("webhook.stale")
async def test_stale_data_are_not_delivered_and_not_charged(room):
    async with receiving() as receiver:
        subscription = await room.subscribe(receiver.url())
        await room.pass_slots()
        for url in (FIRST, SECOND):
            room.shop.internet.serves(url, DOWN)
        await room.pass_slots(2)
        assert len(receiver.requests) == 2, "after exactly five minutes the data are not stale yet"
    fire = (await room.fires(subscription.id))[-1]
    assert (fire.state, fire.reason) == ("released", "stale_data")
    assert (await room.spent(), await room.held()) == (2, 0)
    after = await room.subscription(subscription.id)
    assert (after.failed_count, after.state) == (0, "active")


async def test_one_answer_is_composed_for_all_subscribers_of_a_question(room, monkeypatch):
    composed = []
    original = room.shop.pipeline.answers.compose

    async def counted(operation, *more, **how):
        composed.append(operation.name)
        return await original(operation, *more, **how)

    monkeypatch.setattr(room.shop.pipeline.answers, "compose", counted)
    async with receiving() as receiver:
        for _ in range(5):
            await room.subscribe(receiver.url())
        await room.pass_slots()
        assert len(receiver.requests) == 5
    assert composed == ["premium_report"]


@proves("webhook.cancel")
async def test_a_cancelled_subscription_never_fires_again_not_even_to_repeat_an_attempt(room):
    async with receiving(status(500)) as receiver:
        subscription = await room.subscribe(receiver.url())
        await room.pass_slots()
        await room.hooks.subscriptions.cancel(RICH, subscription.id)
        for delay in (6.1, 36.1, 144.1, 300):
            await room.pass_time(delay)
        assert len(receiver.requests) == 1
    assert (await room.spent(), await room.held()) == (0, 0)


async def test_one_that_is_cancelled_while_it_waits_for_its_turn_is_not_sent(room):
    async with receiving() as receiver:
        first, second = [await room.subscribe(receiver.url()) for _ in range(2)]

        async def cancel_both(writer):
            for subscription in (first, second):
                await room.hooks.subscriptions.cancel(RICH, subscription.id)
            await status(204)(writer)

        receiver.answer = cancel_both
        await room.pass_slots()
        assert len(receiver.requests) == 1
    assert (await room.spent(), await room.held()) == (1, 0)


@proves("webhook.pause-reasons")
async def test_a_day_of_failures_pauses_the_subscription_and_says_why(room):
    async with receiving(status(404)) as receiver:
        subscription = await room.subscribe(receiver.url())
        for _ in range(2 * 24 * 12):
            await room.pass_time(SLOT_S / 2)
        assert (await room.subscription(subscription.id)).state == "active"
        for _ in range(2 * 14):
            await room.pass_time(SLOT_S / 2)
    after = await room.subscription(subscription.id)
    assert (after.state, after.pause_reason) == ("paused", "endpoint_failing")
    assert after.consecutive_failures >= 12
    assert await room.spent() == 0


@proves("webhook.thinned")
async def test_a_success_ends_the_thinning(room):
    async with receiving(status(404)) as receiver:
        subscription = await room.subscribe(receiver.url())
        await room.pass_slots()
        await room.pass_time(6.1)
        thinned = await room.subscription(subscription.id)
        assert thinned.consecutive_failures == 1
        assert thinned.due_at - int(room.clock.time() * 1000) > SLOT_S * 1000
        receiver.answer = status(200)
        await room.pass_slots(2)
    after = await room.subscription(subscription.id)
    assert (after.consecutive_failures, after.failing_since, after.delivered_count) == (0, None, 1)


async def test_what_waits_too_long_is_left_out(room):
    async with receiving() as receiver:
        subscription = await room.subscribe(receiver.url())
        room.clock.advance(SLOT_S)
        await room.hooks.store.apply(ClaimSubscriptions(int(room.clock.time() * 1000), 10))
        await room.pass_slots()
        assert len(receiver.requests) == 1
    late, delivered = await room.fires(subscription.id)
    assert (late.state, late.reason, delivered.state) == ("skipped", "late", "charged")


@proves("webhook.test")
async def test_a_free_test_is_signed_says_so_and_uses_recorded_values(room):
    async with receiving() as receiver:
        created = await room.hooks.subscriptions.subscribe(RICH, SubscriptionRequest("report", receiver.url()))
        fire = await room.hooks.subscriptions.test(RICH, created.subscription.id, None, None)
        with_data = await room.hooks.subscriptions.test(RICH, created.subscription.id, {"a": 1}, None)
    recorded, own = (opened(request, created.secret, room.clock.time()) for request in receiver.requests)
    assert (recorded["test"], recorded["data"]) == (True, {"one": 0.0, "two": 0.0, "notes": {}})
    assert own["data"] == {"a": 1}
    assert (fire.state, fire.status, with_data.state) == ("free", 204, "free")
    assert "x-service-receipt-id" not in receiver.requests[0].headers
    assert await room.spent() == 0
    assert (await room.subscription(created.subscription.id)).delivered_count == 0


async def test_a_failed_test_is_attempted_once_and_changes_nothing(room):
    async with receiving(status(500)) as receiver:
        subscription = await room.subscribe(receiver.url())
        fire = await room.hooks.subscriptions.test(RICH, subscription.id, None, None)
        assert (fire.state, fire.error, len(receiver.requests)) == ("released", "http_500", 1)
    assert (await room.subscription(subscription.id)).failed_count == 0


@proves("webhook.released-logged")
async def test_every_released_fire_is_in_the_public_log_also_of_subscriptions_that_are_paused_or_cancelled(room):
    now = lambda: int(room.clock.time() * 1000)  # noqa: E731
    async with receiving(status(500)) as receiver:
        ids = [(await room.subscribe(receiver.url(path=f"/{number}"))).id for number in range(5)]
        await room.pass_slots()
        await room.hooks.store.apply(PauseSubscription(ids[0], None, "operator", now()))
        await room.hooks.subscriptions.cancel(RICH, ids[1])
        for delay in (6.1, 36.1, 144.1):
            await room.pass_time(delay)
    fires = [fire for id in ids for fire in await room.fires(id)]
    assert [(fire.state, fire.reason) for fire in fires[:2]] == [("released", "paused"), ("released", "cancelled")]
    assert {fire.state for fire in fires} == {"released"}
    stats = await room.shop.evidence.no_charge(room.clock.now().date())
    assert stats["by_reason"] == {"delivery_failed": 4, "cancelled": 1}


async def test_without_limits_no_body_is_counted(tmp_path):
    async with open_room(tmp_path, limited=False) as room, receiving(status(410)) as receiver:
        for number in range(12):
            subscription = await room.subscribe(receiver.url(path=f"/{number}"))
            await room.pass_slots()
            await room.hooks.subscriptions.cancel(RICH, subscription.id)
        assert len(receiver.requests) == 12
