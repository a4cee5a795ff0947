import math

import msgspec
import pytest

from tests.calls.parts import POOR, RICH
from tests.calls.shop import DOWN
from tests.calls.toy import FIRST, SECOND
from tests.requirements import proves
from tests.webhooks.receivers import receiving, status
from tests.webhooks.room import open_room
from toolserver.errors import BillingUnavailable
from toolserver.webhooks.conditions import ConditionInput

ABOVE = ConditionInput(path="one", above=100, clear_below=99, name="hot")


def reports_of(receiver):
    bodies = [msgspec.json.decode(request.body) for request in receiver.requests]
    return [(body["condition"]["state"], body["condition"]["old"], body["condition"]["new"]) for body in bodies]


@proves("webhook.condition-cost")
async def test_a_condition_is_delivered_when_it_fires_and_when_it_clears_and_each_costs_a_credit(tmp_path):
    async with open_room(tmp_path) as room, receiving() as receiver:
        await room.subscribe(receiver.url(), when=ABOVE)
        await room.pass_time(0)
        for value in (98, 101, 105, 99.5, 98.5, 98):
            room.values(value)
            await room.pass_slots()
        assert reports_of(receiver) == [("fired", None, 101.0), ("cleared", 101.0, 98.5)]
        assert await room.spent() == 2
        body = msgspec.json.decode(receiver.requests[0].body)
        assert body["condition"]["name"] == "hot"
        assert body["data"]["one"] == 101.0


@pytest.mark.slow("a day of looks")
@proves("webhook.condition")
async def test_a_value_that_swings_for_a_day_is_one_fire_and_one_clear_even_over_restarts(tmp_path):
    async with receiving() as receiver:
        async with open_room(tmp_path) as room:
            clock = room.clock
            await room.subscribe(receiver.url(), when=ABOVE)
        day = [90, *(100 + 0.9 * math.sin(i) for i in range(286)), 90]
        for part in range(0, len(day), 96):
            async with open_room(tmp_path, clock=clock) as room:
                for value in day[part : part + 96]:
                    room.values(value)
                    await room.pass_slots()
        assert [state for state, _, _ in reports_of(receiver)] == ["fired", "cleared"]
        async with open_room(tmp_path, clock=clock) as room:
            assert await room.spent() == 2


@proves("webhook.condition")
async def test_a_stale_source_fires_nothing_and_says_so_once_and_free(tmp_path):
    async with open_room(tmp_path) as room, receiving() as receiver:
        await room.subscribe(receiver.url(), when=ABOVE)
        room.values(50)
        await room.pass_slots()
        for url in (FIRST, SECOND):
            room.shop.internet.serves(url, DOWN)
        await room.pass_slots(6)
        assert reports_of(receiver) == [("no_data", None, None)]
        assert (await room.spent(), await room.held()) == (0, 0)
        room.values(150)
        room.clock.advance(600)  # the circuit of the source closes again
        await room.pass_slots(2)
        assert reports_of(receiver)[1:] == [("fired", None, 150.0)]


async def test_a_condition_is_not_judged_without_the_credits_for_a_fire(tmp_path):
    async with open_room(tmp_path) as room, receiving() as receiver:
        subscription = await room.subscribe(receiver.url(), token=POOR, when=ABOVE)
        room.values(150)
        await room.pass_slots()
        assert reports_of(receiver) == [("fired", None, 150.0)]
        requests_before = len(room.shop.internet.asked)
        room.values(50)
        await room.pass_slots()
        assert len(room.shop.internet.asked) == requests_before
        assert (await room.subscription(subscription.id)).pause_reason == "insufficient_credits"


async def test_what_did_not_arrive_is_told_again_with_the_next_slot_that_is_tried(tmp_path):
    async with open_room(tmp_path) as room, receiving(status(404)) as receiver:
        subscription = await room.subscribe(receiver.url(), when=ABOVE)
        room.values(150)
        await room.pass_time(0)
        await room.pass_time(6.1)
        assert len(receiver.requests) == 2
        receiver.answer = status(200)
        receiver.requests.clear()
        await room.pass_slots(3)
        assert reports_of(receiver) == [("fired", None, 150.0)]
        assert await room.spent() == 1
        assert (await room.subscription(subscription.id)).consecutive_failures == 0


async def test_conditions_on_one_question_are_judged_on_one_answer(tmp_path, monkeypatch):
    async with open_room(tmp_path) as room, receiving() as receiver:
        composed = []
        original = room.shop.pipeline.answers.compose

        async def counted(operation, *more, **how):
            composed.append(operation.name)
            return await original(operation, *more, **how)

        monkeypatch.setattr(room.shop.pipeline.answers, "compose", counted)
        for threshold in range(5):
            await room.subscribe(receiver.url(), when=ConditionInput(path="one", above=threshold))
        await room.pass_time(0)
        assert composed == ["premium_report"]
        assert len(receiver.requests) == 1, "only 1 is above 0"


async def test_every_account_is_asked_once_and_one_that_cannot_pay_stops_no_other(tmp_path, monkeypatch):
    async with open_room(tmp_path) as room, receiving() as receiver:
        accounts, original = [], room.shop.ledger.balance

        async def balance(who):
            accounts.append(who)
            return await original(who)

        mine = [await room.subscribe(receiver.url(), when=ABOVE) for _ in range(5)]
        poor = [await room.subscribe(receiver.url(), token=POOR, when=ABOVE) for _ in range(2)]
        await room.shop.ledger.reserve("call_" + "0" * 32, POOR, 1, endpoint="/", ttl_s=60)
        monkeypatch.setattr(room.shop.ledger, "balance", balance)
        room.values(150)
        await room.pass_time(0)
        assert len(accounts) == 2
        assert len(receiver.requests) == 5
        states = {(await room.subscription(each.id)).state for each in mine}
        reasons = {(await room.subscription(each.id)).pause_reason for each in poor}
        assert (states, reasons) == ({"active"}, {"insufficient_credits"})


async def test_while_the_ledger_is_away_nothing_is_judged_and_nobody_paused(tmp_path, monkeypatch):

    async def away(*_):
        raise BillingUnavailable("away")

    async with open_room(tmp_path) as room, receiving() as receiver:
        subscription = await room.subscribe(receiver.url(), when=ABOVE)
        room.values(150)
        with monkeypatch.context() as outage:
            outage.setattr(room.shop.ledger, "balance", away)
            await room.pass_slots()
        assert receiver.requests == []
        await room.pass_slots()
        assert reports_of(receiver) == [("fired", None, 150.0)]
        assert (await room.subscription(subscription.id)).state == "active"


async def test_a_test_of_a_condition_uses_the_value_of_its_own_data(tmp_path):
    async with open_room(tmp_path) as room, receiving() as receiver:
        subscription = await room.subscribe(receiver.url(), when=ABOVE)
        room.values(150)
        await room.hooks.subscriptions.test(RICH, subscription.id, {"one": 7}, "fired")
        assert reports_of(receiver) == [("fired", None, 7)]
        assert await room.spent() == 0
