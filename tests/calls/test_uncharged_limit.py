"""What a payer gets for nothing is bounded, and who pays is never refused for it."""

from contextlib import suppress

import anyio
import pytest

from tests.calls.parts import RICH, START
from tests.calls.shop import DOWN, shop
from tests.calls.toy import FIRST, SECOND
from tests.requirements import proves
from toolserver.calls.rate_limit import AT_ONCE, HOUR_S, UnchargedLimit
from toolserver.clock import ManualClock
from toolserver.core.caller import token_hash
from toolserver.errors import InsufficientCredits, RateLimited
from toolserver.money.ledger.allowance import AllowanceTerms


def limit_of(per_hour=3):
    clock = ManualClock(START)
    return clock, UnchargedLimit(per_hour=per_hour, monotonic=clock.monotonic)


async def call(limit, *, charged, token="a", tool="report"):
    async with limit.admit(token, tool) as call:
        call.charged = charged


async def test_calls_without_a_charge_are_counted_by_token_and_tool():
    clock, limit = limit_of()
    for _ in range(3):
        await call(limit, charged=False)
    with pytest.raises(RateLimited, match=r"3 calls of report an hour may end without a charge.*in 1200 s"):
        await call(limit, charged=False)
    await call(limit, charged=False, token="b")
    await call(limit, charged=False, tool="other")
    clock.advance(HOUR_S / 3)
    await call(limit, charged=False)


@proves("charge.uncharged-bound")
async def test_charged_calls_and_those_that_cannot_be_paid_cost_nothing_of_it():
    _, limit = limit_of(1)
    for _ in range(5):
        await call(limit, charged=True)
        with pytest.raises(InsufficientCredits):
            async with limit.admit("a", "report"):
                raise InsufficientCredits("too few")
    await call(limit, charged=False)


async def test_a_call_that_fails_or_is_given_up_counts():
    _, limit = limit_of(2)
    with suppress(ValueError):
        async with limit.admit("a", "report"):
            raise ValueError
    with anyio.CancelScope() as scope:
        async with limit.admit("a", "report"):
            scope.cancel()
            await anyio.lowlevel.checkpoint()
    with pytest.raises(RateLimited):
        await call(limit, charged=False)


async def test_calls_at_the_same_time_pass_the_limit_by_a_few_at_most():
    _, limit = limit_of(3)
    made, held, refused = 0, anyio.Event(), 0

    async def one():
        nonlocal made, refused
        try:
            async with limit.admit("a", "report"):
                made += 1
                await held.wait()
        except RateLimited:
            refused += 1

    async with anyio.create_task_group() as tasks:
        for _ in range(100):
            tasks.start_soon(one)
        await anyio.wait_all_tasks_blocked()
        assert made == AT_ONCE
        held.set()
    assert (made, refused) == (AT_ONCE, 100 - AT_ONCE)
    assert not limit._open, "nothing is kept of calls that have ended"


async def test_what_is_counted_without_a_place_is_refused_at_the_limit_too():
    clock, limit = limit_of(2)
    for _ in range(2):
        await limit.count("a", "report")
    with pytest.raises(RateLimited, match="2 calls of report an hour may end without a charge"):
        await limit.count("a", "report")
    with pytest.raises(RateLimited):
        await call(limit, charged=True)
    await limit.count("b", "report")
    await UnchargedLimit(per_hour=1, monotonic=clock.monotonic, enabled=False).count("a", "report")
    clock.advance(HOUR_S / 2)
    await limit.count("a", "report")


@proves("charge.uncharged-bound")
async def test_a_token_and_its_allowances_share_what_is_had_for_nothing(tmp_path):
    async with shop(tmp_path, limited=True) as s:
        children = [f"svc_live_{number:064x}" for number in range(3)]
        for child in children:
            await s.ledger.create_allowance(RICH, token_hash(child).hex(), AllowanceTerms("robot", 50))
        s.internet.serves(FIRST, {"value": 1})
        await s.buy()
        s.internet.serves(FIRST, DOWN)
        s.internet.serves(SECOND, DOWN)
        s.clock.advance(3600)
        told = [await s.buy(authorization=f"Bearer {child}") for child in children * 5]

    assert [answer.status_code == 429 for answer in told] == [False] * 10 + [True] * 5


@proves("charge.uncharged-bound")
async def test_stale_data_is_had_for_nothing_ten_times_an_hour_and_never_charged(tmp_path):
    async with shop(tmp_path, limited=True) as s:
        paid = await s.buy()
        s.internet.serves(FIRST, DOWN)
        s.internet.serves(SECOND, DOWN)
        s.clock.advance(3600)
        told = [await s.buy() for _ in range(12)]
        balance = await s.ledger.balance(RICH)

    assert paid.headers["x-credits-remaining"] == "98"
    assert [answer.status_code for answer in told[9:]] == [told[0].status_code, 429, 429]
    assert int(told[-1].headers["retry-after"]) > 60
    assert balance == 98


async def test_a_call_that_ends_gives_its_place_to_the_next_and_to_no_more():
    _, limit = limit_of(100)
    made, held = [], [anyio.Event() for _ in range(3 * AT_ONCE)]

    async def one(number):
        async with limit.admit("a", "report"):
            made.append(number)
            await held[number].wait()

    async with anyio.create_task_group() as tasks:
        for number in range(AT_ONCE):
            tasks.start_soon(one, number)
        await anyio.wait_all_tasks_blocked()
        held[0].set()
        await anyio.wait_all_tasks_blocked()
        for number in range(AT_ONCE, 2 * AT_ONCE):
            tasks.start_soon(one, number)
        await anyio.wait_all_tasks_blocked()
        assert made == list(range(AT_ONCE + 1))
        tasks.cancel_scope.cancel()
    await call(limit, charged=True)
    assert not limit._open, "nothing is kept of calls that have ended"


async def test_where_limits_are_off_every_call_is_admitted():
    clock = ManualClock(START)
    limit = UnchargedLimit(per_hour=1, monotonic=clock.monotonic, enabled=False)
    for _ in range(5):
        await call(limit, charged=False)


async def test_eight_calls_of_a_payer_may_be_open_and_twelve_an_hour_end_without_a_charge():
    clock = ManualClock(START)
    limit = UnchargedLimit(monotonic=clock.monotonic)
    for _ in range(12):
        await limit.count("a", "report")
    with pytest.raises(RateLimited, match="12 calls of report an hour may end without a charge"):
        await limit.count("a", "report")
    clock.advance(3600)
    for _ in range(12):
        await limit.count("a", "report")
    assert (AT_ONCE, HOUR_S) == (8, 3600)
