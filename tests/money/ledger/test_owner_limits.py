"""Limits that the owner of a token sets on it, on every ledger: a cap per day and a freeze, which are never crossed."""

import random

import anyio
import pytest

from tests.calls.parts import START
from tests.money.ledger.ledgers import KINDS, faults, opened, token
from tests.requirements import proves
from toolserver.clock import ManualClock
from toolserver.core.caller import token_hash
from toolserver.errors import AllowanceConflict, InsufficientCredits, InvalidToken, RevokedToken
from toolserver.money.ledger.allowance import AllowanceTerms
from toolserver.money.ledger.owner_limits import LimitChange
from toolserver.money.ledger.protocol import fingerprint_of

OWNER, OTHER, CHILD = token(1), token(2), token(1000)
DAY_S = 86_400
NAMES = ("credits_per_day", "frozen", "alert_below", "alert_percent")


@pytest.fixture
def clock():
    return ManualClock(START)


@pytest.fixture(params=KINDS)
async def ledger(request, tmp_path, clock):
    async with opened(request.param, tmp_path, clock) as ledger:
        await ledger.mint(OWNER, 100, cause="owner")
        await ledger.mint(OTHER, 100, cause="other")
        yield ledger
        assert await faults(ledger) == []


async def limit(ledger, who=OWNER, **given):
    return await ledger.change_limits(who, LimitChange(frozenset(given), **given))


async def reserve(ledger, call, credits=2, who=OWNER):
    return await ledger.reserve(call, who, credits, endpoint="/api/pro/x", ttl_s=60)


async def charge(ledger, call, credits=2, who=OWNER):
    return await ledger.charge(call, who, credits, endpoint="/api/pro/x")


async def refused(ledger, call, credits=2, who=OWNER):
    with pytest.raises(InsufficientCredits) as caught:
        await reserve(ledger, call, credits, who)
    with pytest.raises(InsufficientCredits):
        await charge(ledger, call, credits, who)
    return caught.value


async def child_of(ledger, child=CHILD, **terms):
    asked = AllowanceTerms(**{"name": "robot", "credits": 50, **terms})
    return await ledger.create_allowance(OWNER, token_hash(child).hex(), asked)


@proves("tokens.cap")
async def test_a_cap_per_day_holds_until_the_next_day_and_names_itself(ledger, clock):
    assert (await limit(ledger, credits_per_day=5)).credits_per_day == 5
    await charge(ledger, "c1")
    await reserve(ledger, "c2")
    refusal = await refused(ledger, "c3")
    assert refusal.extra == {"required": 2, "credits_remaining": 1, "cap": "credits_per_day"}
    assert (await charge(ledger, "c4", 1)).remaining == 95  # the credits of the account, which the cap does not change
    clock.advance(DAY_S)
    assert (await charge(ledger, "c5", 5)).charged == 5
    await refused(ledger, "c6", 1)


async def test_what_was_spent_today_before_the_cap_counts_and_yesterdays_does_not(ledger, clock):
    await charge(ledger, "yesterday", 9)
    clock.advance(DAY_S)
    await charge(ledger, "c1", 3)
    await reserve(ledger, "c2", 3)
    await ledger.settle("c2", no_charge="5xx")
    assert (await limit(ledger, credits_per_day=4)).spent_today == 3
    await refused(ledger, "c3")
    await charge(ledger, "c4", 1)
    await refused(ledger, "c5", 1)


async def test_what_is_given_back_can_be_spent_again_on_the_day_it_was_reserved(ledger, clock):
    await limit(ledger, credits_per_day=4)
    await charge(ledger, "c1", 4)
    await ledger.settle("c1", no_charge="delivery_failed")
    await ledger.settle("c1", no_charge="delivery_failed")
    await charge(ledger, "c2", 4)
    clock.advance(DAY_S)
    await reserve(ledger, "c3", 3)
    await ledger.settle("c2", no_charge="delivery_failed")  # of yesterday
    assert (await limit(ledger)).spent_today == 3
    await refused(ledger, "c4")
    clock.advance(61)
    await ledger.sweep()  # c3 was never settled
    assert (await limit(ledger)).spent_today == 0


async def test_a_repeated_call_is_answered_whatever_the_limits_are_now(ledger):
    await reserve(ledger, "c1")
    await charge(ledger, "c2")
    await limit(ledger, credits_per_day=1, frozen=True)
    assert (await reserve(ledger, "c1")).replayed
    assert (await charge(ledger, "c2")).replayed
    assert (await ledger.settle("c1", no_charge=None)).charged == 2


@proves("tokens.freeze")
async def test_a_frozen_token_pays_for_nothing_until_it_is_thawed(ledger, clock):
    first = await limit(ledger, frozen=True)
    clock.advance(5)
    assert (await limit(ledger, frozen=True)).frozen_at == first.frozen_at == int(START.timestamp() * 1000)
    refusal = await refused(ledger, "c1", 1)
    assert refusal.extra["cap"] == "frozen"
    assert "PATCH /api/payment/token" in refusal.detail
    assert await ledger.balance(OWNER) == 100
    assert await ledger.knows(OWNER)
    assert (await ledger.mint(OWNER, 5, cause="top-up")).remaining == 105
    assert (await limit(ledger, frozen=False)).frozen_at is None
    assert (await charge(ledger, "c1", 1)).charged == 1
    assert (await charge(ledger, "c2", 1, OTHER)).charged == 1


@proves("tokens.limits-children")
async def test_the_limits_of_a_token_bind_its_allowances(ledger):
    await child_of(ledger)
    await limit(ledger, credits_per_day=5)
    await charge(ledger, "c1", 3, CHILD)
    await charge(ledger, "c2", 2)
    assert (await refused(ledger, "c3", 1, CHILD)).extra["cap"] == "credits_per_day"
    await limit(ledger, credits_per_day=None, frozen=True)
    assert (await refused(ledger, "c3", 1, CHILD)).extra["cap"] == "frozen"
    for change in ({"frozen": False}, {}):
        with pytest.raises(AllowanceConflict):
            await limit(ledger, CHILD, **change)
    await limit(ledger, frozen=False)
    await charge(ledger, "c3", 40, CHILD)


async def test_only_a_valid_token_is_limited_and_what_is_not_named_stays(ledger):
    await limit(ledger, credits_per_day=9, alert_below=50, alert_percent=80)
    kept = await limit(ledger, frozen=True)
    assert (kept.credits_per_day, kept.alert_below, kept.alert_percent) == (9, 50, 80)
    assert (await limit(ledger, credits_per_day=None)).credits_per_day is None
    with pytest.raises(InvalidToken):
        await limit(ledger, token(77), frozen=True)
    await ledger.revoke(fingerprint_of(token_hash(OTHER).hex()), "leaked")
    with pytest.raises(RevokedToken):
        await limit(ledger, OTHER, frozen=True)


@pytest.mark.parametrize(
    "wrong", [{"credits_per_day": 0}, {"alert_below": -1}, {"alert_percent": 101}, {"credits_per_day": 10**9 + 1}]
)
def test_a_limit_out_of_range_is_refused(wrong):
    with pytest.raises(ValueError, match="must be from 1"):
        LimitChange(frozenset(wrong), **wrong)


@proves("tokens.cap")
async def test_a_hundred_calls_at_once_of_a_token_and_its_allowances_cross_no_cap(ledger, clock):
    """Random prices and ends, the cap lowered and raised and the token frozen meanwhile: no day exceeds its cap."""
    chance = random.Random(7)
    children = [token(3000 + number) for number in range(4)]
    for child in children:
        await child_of(ledger, child)
    await limit(ledger, credits_per_day=30)
    charged, caps = {}, set()

    async def call(number):
        who, price = chance.choice([OWNER, *children]), chance.randint(1, 3)
        try:
            await reserve(ledger, f"p{number}", price, who)
            for end in chance.choice([[None], [None], ["5xx"], [None, "delivery_failed"]]):
                settled = await ledger.settle(f"p{number}", no_charge=end)
            charged[f"p{number}"] = settled.charged
        except InsufficientCredits as refusal:
            caps.add(refusal.extra["cap"])

    async with anyio.create_task_group() as tasks:
        for number in range(100):
            tasks.start_soon(call, number)
            if number == 40:
                tasks.start_soon(lambda: limit(ledger, frozen=True))
            if number == 50:
                tasks.start_soon(lambda: limit(ledger, frozen=False))
    now = await limit(ledger)
    assert now.spent_today == sum(charged.values()) <= 30
    assert caps <= {"credits_per_day", "frozen"}
    assert await ledger.balance(OWNER) == 100 - sum(charged.values())


async def test_random_histories_spend_what_a_plain_count_allows(ledger, clock):
    """One operation after the other, against a count by hand of what each day reserved and got back."""
    chance = random.Random(11)
    await child_of(ledger, credits=90)
    cap, frozen, spent, today, open_calls = None, False, {}, 0, {}
    first = (await limit(ledger, frozen=False)).day
    for number in range(120):
        action = chance.choice(["charge", "charge", "reserve", "settle", "release", "cap", "freeze", "day"])
        who, price, name = chance.choice([OWNER, CHILD]), chance.randint(1, 4), f"r{number}"
        if action in ("charge", "reserve"):
            left = await ledger.balance(who)
            is_allowed = not frozen and price <= left and (cap is None or spent.get(today, 0) + price <= cap)
            do = charge if action == "charge" else reserve
            if is_allowed:
                await do(ledger, name, price, who)
                spent[today] = spent.get(today, 0) + price
                open_calls[name] = (today, price)
            else:
                await refused(ledger, name, price, who)
        elif action in ("settle", "release") and open_calls:
            name = chance.choice(list(open_calls))
            await ledger.settle(name, no_charge=None if action == "settle" else "5xx")
            if action == "release":
                day, price = open_calls.pop(name)
                spent[day] -= price
        elif action == "cap":
            cap = chance.choice([None, chance.randint(1, 9)])
            await limit(ledger, credits_per_day=cap)
        elif action == "freeze":
            frozen = chance.random() < 0.4
            await limit(ledger, frozen=frozen)
        elif action == "day":
            for name in list(open_calls):
                await ledger.settle(name, no_charge=None)  # before its time is over
            clock.advance(DAY_S)
            today += 1
        assert (await limit(ledger)).spent_on(first + today) == spent.get(today, 0)
    assert sum(spent.values()) > 20


async def test_alerts_say_which_threshold_a_charge_has_crossed(ledger):
    if not hasattr(ledger, "follower"):  # a follower learns of alerts from its owner only by the balance
        await limit(ledger, credits_per_day=10, alert_below=95, alert_percent=80)
        assert (await charge(ledger, "c1", 5)).alerts == ()
        assert (await charge(ledger, "c2", 1)).alerts == ("balance",)
        assert (await charge(ledger, "c3", 2)).alerts == ("balance", "day")


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_limits_outlive_the_process(kind, tmp_path, clock):
    async with opened(kind, tmp_path, clock) as ledger:
        await ledger.mint(OWNER, 100, cause="owner")
        await limit(ledger, credits_per_day=5, alert_below=7)
        await charge(ledger, "c1", 4)
    async with opened(kind, tmp_path, clock) as ledger:
        await refused(ledger, "c2")
        found = await limit(ledger)
        assert (found.spent_today, found.alert_below) == (4, 7)
        await limit(ledger, frozen=True)
    async with opened(kind, tmp_path, clock) as ledger:
        assert (await refused(ledger, "c3", 1)).extra["cap"] == "frozen"
        assert await faults(ledger) == []
