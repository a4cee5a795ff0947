"""The ledger in memory is under the contract of `test_protocol`; here is what only tests and simulations use."""

import pytest

from tests.calls.parts import START
from tests.money.ledger.ledgers import faults, token
from toolserver.clock import ManualClock
from toolserver.core.caller import token_hash
from toolserver.errors import PaymentRequired
from toolserver.money.ledger.allowance import AllowanceTerms
from toolserver.money.ledger.memory import MemoryLedger
from toolserver.money.ledger.state import key_of

RICH, OTHER = token(1), token(2)


@pytest.fixture
def clock():
    return ManualClock(START)


@pytest.fixture
def ledger(clock):
    return MemoryLedger(clock)


async def allow(ledger, number, owner=RICH, **terms):
    asked = AllowanceTerms(**{"name": f"robot {number}", "credits": 5, **terms})
    return await ledger.create_allowance(owner, token_hash(token(number)).hex(), asked)


async def test_a_token_is_funded_as_often_as_wanted(ledger):
    ledger.fund(RICH, 0)
    assert await ledger.knows(RICH)
    assert await ledger.balance(RICH) == 0
    for _ in range(2):
        ledger.fund(RICH, 5)
    assert await ledger.balance(RICH) == 10
    assert await faults(ledger) == []


async def test_every_reservation_stays_to_be_looked_at(ledger):
    ledger.fund(RICH, 5)
    await ledger.reserve("c1", RICH, 2, endpoint="/x", ttl_s=60)
    await ledger.settle("c1", no_charge="5xx")
    await ledger.charge("c2", RICH, 2, endpoint="/x")
    assert {call_id: hold.state for call_id, hold in ledger.held.items()} == {"c1": "voided", "c2": "posted"}
    assert await ledger.holds() == []


async def test_a_fingerprint_of_no_token_or_of_two_revokes_nothing(ledger):
    ledger.fund(RICH, 5)
    with pytest.raises(PaymentRequired):
        await ledger.revoke("0" * 16, "leaked")
    assert await ledger.balance(RICH) == 5


async def test_a_fingerprint_of_two_tokens_revokes_neither(ledger):
    key = key_of(RICH)
    ledger.fund(RICH, 5)
    ledger.books.issue(key[:16] + "0" * 48, "acct_2")
    with pytest.raises(PaymentRequired):
        await ledger.revoke(key[:16], "leaked")
    assert await ledger.revoke(key[:32], "leaked")
    assert (await ledger.knows(RICH), (await ledger.standing(RICH)).revoked) == (False, "leaked")


async def test_an_allowance_is_revoked_by_its_fingerprint_too(ledger):
    ledger.fund(RICH, 5)
    made = await allow(ledger, 9)
    assert await ledger.find_payer(token(9)) == key_of(RICH)
    assert [await ledger.revoke(made.hash[:16], "leaked") for _ in range(2)] == [True, False]
    assert await ledger.find_payer(token(9)) is None
    assert await ledger.find_payer(RICH) == key_of(RICH)


async def test_a_token_lists_its_own_allowances_live_ones_oldest_first_and_ended_ones_newest_first(ledger, clock):
    for owner in (RICH, OTHER):
        ledger.fund(owner, 5)
    await allow(ledger, 99, OTHER)
    made = []
    for number in range(10, 14):
        made.append(await allow(ledger, number))
        clock.advance(1)
    for each in made[:2]:
        await ledger.revoke_allowance(RICH, each.id)
    assert [each.name for each in await ledger.list_allowances(RICH)] == [f"robot {n}" for n in (12, 13, 11, 10)]
    assert [each.name for each in await ledger.list_allowances(OTHER)] == ["robot 99"]


async def test_the_last_hundred_ended_allowances_are_listed_as_copies(ledger, clock):
    ledger.fund(RICH, 5)
    for number in range(101):
        made = await allow(ledger, 1000 + number)
        await ledger.revoke_allowance(RICH, made.id)
        clock.advance(1)
    listed = await ledger.list_allowances(RICH)
    assert [each.name for each in listed] == [f"robot {1000 + n}" for n in range(100, 0, -1)]
    listed[0].spent = 5
    assert (await ledger.list_allowances(RICH))[0].spent == 0


async def test_open_reservations_are_listed_by_their_ends_and_voided_after_them(ledger, clock):
    ledger.fund(RICH, 9)
    for call, ttl_s in (("late", 60), ("early", 0.5), ("middle", 30)):
        await ledger.reserve(call, RICH, 2, endpoint="/x", ttl_s=ttl_s, service="b")
    assert [hold.call_id for hold in await ledger.holds()] == ["early", "middle", "late"]
    (first,) = await ledger.holds(1)
    assert first == ("early", key_of(RICH)[:16], 2, "/x", "b", START.timestamp() + 0.5)
    assert await ledger.sweep() == 0
    clock.advance(30)
    assert await ledger.sweep() == 2
    assert [hold.call_id for hold in await ledger.holds()] == ["late"]
    assert await ledger.balance(RICH) == 7
