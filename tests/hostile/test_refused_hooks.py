"""What is refused after it was read is bounded by account and hour, and a flaky receiver loses nothing by that."""

import json

from tests.calls.parts import RICH
from tests.hostile.refused_hooks import Thief
from tests.requirements import proves
from tests.webhooks.receivers import receiving, status
from tests.webhooks.room import LOCAL, open_room
from toolserver.webhooks.conditions import ConditionInput

SLOTS = 11  # within an hour of the first body
PER_HOUR = 10


@proves("webhook.unpaid-bodies")
async def test_refusing_every_body_gives_no_more_of_them_than_the_setting_says(tmp_path):
    async with open_room(tmp_path, network=LOCAL) as room, receiving() as receiver:
        thief = Thief(room, receiver)
        receiver.answer = thief.answer
        await thief.steal(SLOTS)
        await room.pass_slots()
        assert (await room.spent(), await room.held()) == (0, 0)
        stats = await room.shop.evidence.no_charge(room.clock.now().date())
    print(f"{len(thief.bodies)} bodies, {thief.challenges} challenges, {thief.subscribed} subscriptions")
    assert thief.subscribed == 5 * SLOTS
    assert len(thief.bodies) == PER_HOUR
    assert 0 < thief.challenges <= PER_HOUR - 3
    assert sum(stats["by_reason"].values()) == 5 * SLOTS, "every released fire stands in the log"


@proves("webhook.unpaid-bodies")
async def test_a_hundred_names_and_tokens_bought_again_give_three_unpaid_bodies_for_a_credit_and_no_more_ever(tmp_path):
    """Thirty hours: an owner with a hundred host names, allowances and three tokens, of which each is bought anew."""
    names, got, bought = [f"n{number}.localhost" for number in range(100)], 0, 0
    async with open_room(tmp_path, network=LOCAL) as room, receiving() as receiver:
        for number in range(3):
            token, credits = f"svc_live_{'e' * 63}{number}", 50
            await room.shop.ledger.mint(token, credits, cause=f"eip155:8453:0x{number:064x}:0")
            thief = Thief(room, receiver, token, names)
            receiver.answer, bought = thief.answer, bought + credits
            tokens = [token, *[await thief.allow(each) for each in range(4)]]
            thief.allow = lambda each, tokens=tokens: _same(tokens[1 + each])
            for _ in range(10):
                await thief.steal(1)
                await room.pass_time(3300)
            got += len(thief.bodies)
            assert len(thief.bodies) == PER_HOUR, "those of the first hour, and none after it"
        assert await room.spent() == 0
    assert got <= 3 * bought


@proves("webhook.unpaid-bodies")
async def test_a_restart_does_not_begin_a_new_hour(tmp_path):
    bodies, clock = set(), None
    for _ in range(4):
        async with open_room(tmp_path, clock=clock, network=LOCAL) as room, receiving() as receiver:
            thief, clock = Thief(room, receiver), room.clock
            receiver.answer = thief.answer
            thief.allow = lambda number: _same(RICH)
            await thief.steal(2)
            bodies |= set(thief.bodies)
    assert len(bodies) == PER_HOUR


async def _same(token):
    return token


async def test_missing_data_are_reported_for_nothing_only_so_often(tmp_path):
    """A report that a value is missing is free, and carries the answer in which it is missing."""
    async with open_room(tmp_path) as room, receiving() as receiver:
        room.values(None)
        for number in range(2 * PER_HOUR):
            when = ConditionInput(path="one", above=1)
            subscription = await room.subscribe(receiver.url(path=f"/{number}"), when=when)
            await room.pass_time(1)
            await room.hooks.subscriptions.cancel(RICH, subscription.id)
        assert await room.spent() == 0
    assert len([request for request in receiver.requests if json.loads(request.body)["data"]]) == PER_HOUR


async def test_a_receiver_that_fails_now_and_then_gets_every_later_body_and_pays_for_what_it_accepts(tmp_path):
    async with open_room(tmp_path) as room, receiving() as receiver:
        subscription = await room.subscribe(receiver.url())
        for hour in range(6):
            receiver.answer = status(503)
            await room.pass_slots(4)
            receiver.answer = status(204)
            before = (await room.subscription(subscription.id)).delivered_count
            await room.pass_slots(8)
            after = await room.subscription(subscription.id)
            assert after.state == "active"
            assert after.delivered_count >= before + 4, f"hour {hour}: it is delivered again as before"
        fires = await room.fires(subscription.id)
        assert await room.spent() == after.delivered_count
    assert "uncharged_limit" not in {fire.reason for fire in fires}


@proves("webhook.challenge")
async def test_a_challenge_is_signed_has_no_data_and_another_id_and_the_body_follows_it(tmp_path):
    async with open_room(tmp_path) as room, receiving(status(500)) as receiver:
        await room.subscribe(receiver.url())
        others = [await room.subscribe(receiver.url(path=f"/{number}")) for number in range(2)]
        await room.pass_slots()
        for other in others:
            await room.hooks.subscriptions.cancel(RICH, other.id)
        receiver.requests.clear()
        receiver.answer = status(204)
        await room.pass_slots(2)
        challenge, delivery = receiver.requests
        said = json.loads(challenge.body)
        assert (said["data"], said["challenge"], "challenge" in json.loads(delivery.body)) == (None, True, False)
        assert challenge.headers["webhook-id"] == delivery.headers["webhook-id"] + "_challenge"
        assert "x-service-receipt-id" not in challenge.headers
        assert await room.spent() == 1
