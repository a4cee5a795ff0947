"""Notices about thresholds that the owner of a token set: one for each crossing, signed, and free of charge."""

from dataclasses import replace
from functools import partial

import pytest

from tests.calls.parts import RICH
from tests.requirements import proves
from tests.webhooks.receivers import receiving, status
from tests.webhooks.room import open_room, opened
from toolserver.core.caller import token_hash
from toolserver.errors import AllowanceConflict, InvalidArguments, NotSupported
from toolserver.money.ledger.allowance import AllowanceTerms
from toolserver.money.ledger.owner_limits import LimitChange
from toolserver.webhooks.conditions import ConditionInput
from toolserver.webhooks.credit_alerts import CREDIT_ALERTS
from toolserver.webhooks.records import SubscriptionRequest

PATH = "/api/pro/report"


async def subscribe(room, url, token=RICH, **terms):
    return await room.hooks.subscriptions.subscribe(token, SubscriptionRequest(CREDIT_ALERTS, url, **terms))


async def limit(room, **limits):
    await room.shop.ledger.change_limits(RICH, LimitChange(frozenset(limits), **limits))


async def spend(room, call, credits=1):
    return await room.shop.ledger.charge(call, RICH, credits, endpoint=PATH)


@proves("tokens.notices")
async def test_a_crossed_threshold_is_notified_once_signed_and_without_a_charge(tmp_path):
    async with open_room(tmp_path) as room, receiving() as receiver:
        made = await subscribe(room, receiver.url(), headers={"x-mine": "1"})
        assert made.subscription.next_fire_at is None
        await limit(room, alert_below=97, credits_per_day=20, alert_percent=50)
        await spend(room, "c1", 3)
        assert await room.pass_time(1) == 0, "97 credits are not fewer than 97"
        await spend(room, "c2", 1)
        await spend(room, "c3", 1)
        assert await room.pass_time(1) == 1
        (request,) = receiver.requests
        body = opened(request, made.secret, room.clock.time())
        assert (body["endpoint"], body["subscription_id"]) == (CREDIT_ALERTS, made.subscription.id)
        notice = body["data"]
        assert notice["alert"] == "balance"
        assert (notice["credits_left"], notice["alert_below"], notice["spent_today"]) == (96, 97, 4)
        assert notice["detail"] == "96 credits are left, fewer than 97."
        assert request.headers["x-mine"] == "1"
        assert "x-service-receipt-id" not in request.headers
        await spend(room, "c4", 6)
        await room.pass_slots(3)
        assert [opened(r, made.secret, room.clock.time() - 900)["data"]["alert"] for r in receiver.requests[1:]] == [
            "day"
        ]
        assert await room.spent() == 11, "no notice was charged"
        fires = await room.fires(made.subscription.id)
        assert [(fire.kind, fire.state, fire.price) for fire in fires] == [("fired", "free", 0)] * 2


@proves("tokens.notices")
async def test_a_threshold_is_crossed_again_after_new_credits_another_threshold_or_on_another_day(tmp_path):
    async with open_room(tmp_path) as room, receiving() as receiver:
        await subscribe(room, receiver.url())
        await limit(room, alert_below=100, credits_per_day=4, alert_percent=50)
        steps = {
            "both": partial(spend, room, "c1", 2),
            "neither again": partial(spend, room, "c2"),
            "credits below the threshold": partial(room.shop.ledger.mint, RICH, 1, cause="low"),
            "and spent": partial(spend, room, "c3"),
            "credits above it": partial(room.shop.ledger.mint, RICH, 10, cause="top-up"),
            "another threshold": partial(limit, room, alert_below=108),
            "the same again": partial(limit, room, alert_below=108),
        }
        heard = []
        for step in steps.values():
            await step()
            await room.pass_time(1)
            heard.append(len(receiver.requests))
        assert heard == [2, 2, 2, 2, 2, 2, 2]
        room.clock.advance(86_400)
        await spend(room, "c4")  # 106 are left
        await room.pass_time(1)
        assert len(receiver.requests) == 3, "the other threshold"
        await spend(room, "c5")
        await room.pass_time(1)
        assert len(receiver.requests) == 4, "half of the other day's cap"


@proves("tokens.notices")
async def test_what_is_given_back_crosses_nothing_and_a_pause_and_a_refusal_lose_no_later_notice(tmp_path):
    async with open_room(tmp_path) as room, receiving(status(500)) as receiver:
        made = await subscribe(room, receiver.url())
        await limit(room, alert_below=100)
        await room.shop.ledger.reserve("c1", RICH, 5, endpoint=PATH, ttl_s=60)
        await room.shop.ledger.settle("c1", no_charge="5xx")
        assert await room.pass_time(1) == 0
        await spend(room, "c2")
        for _ in range(4):
            await room.pass_time(150)
        assert len(receiver.requests) > 1, "it is tried again"
        assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1
        assert (await room.fires(made.subscription.id))[-1].state == "released"
        receiver.answer, before = status(204), len(receiver.requests)
        await limit(room, alert_below=99)
        await spend(room, "c3")
        await room.pass_time(1)
        assert len(receiver.requests) == before + 1
        assert await room.spent() == 2


@proves("tokens.notices")
async def test_a_notice_survives_a_restart_and_a_crossing_before_the_webhook_is_not_notified(tmp_path):
    async with receiving() as receiver:
        async with open_room(tmp_path) as room:
            await limit(room, alert_below=100)
            await spend(room, "before")
            await room.pass_time(1)
            await subscribe(room, receiver.url())
            await room.pass_time(1)
            await limit(room, alert_below=99)
            await spend(room, "c1")
            clock = room.clock
        assert receiver.requests == []
        async with open_room(tmp_path, clock=clock) as room:
            await room.pass_time(1)
            await room.pass_slots(2)
        assert len(receiver.requests) == 1


async def test_it_takes_no_arguments_no_balance_and_no_allowance(tmp_path):
    child = "svc_live_" + "c" * 64
    async with open_room(tmp_path) as room, receiving() as receiver:
        ledger = room.shop.ledger
        await ledger.create_allowance(RICH, token_hash(child).hex(), AllowanceTerms("mine", 2))
        with pytest.raises(AllowanceConflict):
            await subscribe(room, receiver.url(), token=child)
        for wrong in ({"params": {"a": 1}}, {"when": ConditionInput(path="one", above=1)}):
            with pytest.raises(InvalidArguments, match="token_update"):
                await subscribe(room, receiver.url(), **wrong)
        with pytest.raises(InvalidArguments, match=r"webhook_url"):
            await subscribe(room, "http://10.0.0.1/")
        await limit(room, alert_below=2)
        await spend(room, "all", 100)
        made = await subscribe(room, receiver.url())
        sent = await room.hooks.subscriptions.test(RICH, made.subscription.id, None, None)
        assert sent.state == "free"
        assert opened(receiver.requests[0], made.secret, room.clock.time())["data"]["alert"] == "balance"


async def test_where_another_service_keeps_the_ledger_it_is_refused(tmp_path):
    async with open_room(tmp_path, wrap=lambda money: replace(money, followed=money.own)) as room:
        with pytest.raises(NotSupported, match="subscribe at the one"):
            await subscribe(room, "http://127.0.0.1:1/")
