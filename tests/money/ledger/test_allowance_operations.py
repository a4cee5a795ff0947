"""Allowances on every ledger: no cap is crossed, the parent's balance is exact, and only its owner manages them."""

import random
import sqlite3
from contextlib import closing
from dataclasses import replace

import anyio
import pytest

from tests.calls.parts import START
from tests.money.ledger.ledgers import KINDS, faults, opened, token
from tests.requirements import proves
from toolserver.clock import ManualClock
from toolserver.core.caller import token_hash
from toolserver.errors import AllowanceConflict, InsufficientCredits, InvalidToken, NotFound, RevokedToken
from toolserver.money.ledger.allowance import AllowanceChange, AllowanceTerms, draft_allowance
from toolserver.money.ledger.memory import MemoryLedger
from toolserver.money.ledger.protocol import AccountRef, CallReused, StatementQuery
from toolserver.money.ledger.store import FILE

OWNER, OTHER = token(1), token(2)
CHILD = token(1000)
DAY_S = 86_400


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


async def create(ledger, child=CHILD, owner=OWNER, **terms):
    asked = AllowanceTerms(**{"name": "robot", "credits": 10, **terms})
    return await ledger.create_allowance(owner, token_hash(child).hex(), asked)


async def reserve(ledger, call, credits=2, who=CHILD, endpoint="/api/pro/x"):
    return await ledger.reserve(call, who, credits, endpoint=endpoint, ttl_s=60)


async def find(ledger, id, owner=OWNER):
    return next(a for a in await ledger.list_allowances(owner) if a.id == id)


async def test_an_allowance_spends_its_owners_credits_up_to_its_cap(ledger):
    made = await create(ledger, credits=5)
    assert await ledger.balance(CHILD) == 5
    assert (await reserve(ledger, "c1")).remaining == 3
    assert (await ledger.settle("c1", no_charge=None)).remaining == 3
    assert (await ledger.charge("c2", CHILD, 2, endpoint="/api/pro/x")).remaining == 1
    with pytest.raises(InsufficientCredits) as caught:
        await reserve(ledger, "c3")
    assert caught.value.extra == {"required": 2, "credits_remaining": 1, "cap": "credits"}
    assert await ledger.balance(OWNER) == 96
    found = await find(ledger, made.id)
    assert (found.spent, found.spent_today, found.last_used_at) == (4, 4, int(START.timestamp() * 1000))


async def test_the_owners_balance_bounds_it_too(ledger):
    await create(ledger, credits=1000)
    assert await ledger.balance(CHILD) == 100
    with pytest.raises(InsufficientCredits) as caught:
        await reserve(ledger, "c1", credits=101)
    assert "cap" not in caught.value.extra


@proves("charge.given-back-counts")
async def test_what_is_given_back_can_be_spent_again_on_the_day_it_was_reserved(ledger, clock):
    made = await create(ledger, credits=10, credits_per_day=4)
    await reserve(ledger, "c1", credits=4)
    await ledger.settle("c1", no_charge=None)
    clock.advance(DAY_S)
    await reserve(ledger, "c2", credits=3)
    await ledger.settle("c1", no_charge="delivery_failed")

    assert ((found := await find(ledger, made.id)).spent, found.spent_today) == (3, 3)
    with pytest.raises(InsufficientCredits) as caught:
        await reserve(ledger, "c3")
    assert caught.value.extra["cap"] == "credits_per_day"
    await ledger.settle("c2", no_charge="5xx")
    await ledger.settle("c2", no_charge="5xx")
    assert ((found := await find(ledger, made.id)).spent, found.spent_today) == (0, 0)
    assert await ledger.balance(OWNER) == 100


async def test_an_expired_reservation_is_given_back_too(ledger, clock):
    made = await create(ledger)
    await reserve(ledger, "c1")
    clock.advance(61)
    await ledger.sweep()
    assert (await find(ledger, made.id)).spent == 0


async def test_a_call_repeated_counts_once_and_belongs_to_its_allowance(ledger):
    made = await create(ledger)
    await reserve(ledger, "c1")
    assert (await reserve(ledger, "c1")).replayed
    assert (await find(ledger, made.id)).spent == 2
    for who in (OWNER, OTHER):
        with pytest.raises(CallReused):
            await reserve(ledger, "c1", who=who)


@proves("allowance.refusal")
async def test_only_the_tools_of_a_list_can_be_called(ledger):
    await create(ledger, tools={"premium_x": "/api/pro/x"})
    await reserve(ledger, "c1")
    with pytest.raises(InsufficientCredits) as caught:
        await reserve(ledger, "c2", endpoint="/api/pro/y")
    assert caught.value.extra["cap"] == "tools"


async def test_changed_caps_hold_from_the_next_call_on(ledger):
    made = await create(ledger, credits=2, credits_per_day=2)
    await reserve(ledger, "c1")
    terms = AllowanceTerms("agent", 6, None)
    changed = await ledger.change_allowance(OWNER, made.id, AllowanceChange(frozenset({"credits", "name"}), terms))
    assert (changed.name, changed.credits, changed.credits_per_day, changed.spent) == ("agent", 6, 2, 2)
    with pytest.raises(InsufficientCredits):
        await reserve(ledger, "c2")
    await ledger.change_allowance(OWNER, made.id, AllowanceChange(frozenset({"credits_per_day"}), terms))
    await reserve(ledger, "c2")
    lower = AllowanceChange(frozenset({"credits"}), AllowanceTerms("x", 1))
    await ledger.change_allowance(OWNER, made.id, lower)
    assert await ledger.balance(CHILD) == 0


async def test_the_tools_of_an_allowance_can_be_changed_and_opened_again(ledger):
    made = await create(ledger)
    given, only = frozenset({"tools"}), AllowanceTerms("x", 1, tools={"premium_y": "/api/pro/y"})
    changed = await ledger.change_allowance(OWNER, made.id, AllowanceChange(given, only))
    assert (changed.tools, changed.name, changed.credits) == ('{"premium_y": "/api/pro/y"}', "robot", 10)
    with pytest.raises(InsufficientCredits) as caught:
        await reserve(ledger, "c1")
    assert caught.value.extra["cap"] == "tools"
    assert (await ledger.change_allowance(OWNER, made.id, AllowanceChange(given, AllowanceTerms("x", 1)))).tools is None
    await reserve(ledger, "c1")


async def test_a_revoked_allowance_ends_at_once_and_what_runs_can_be_settled(ledger):
    made = await create(ledger)
    await reserve(ledger, "c1")
    for _ in range(2):
        assert (await ledger.revoke_allowance(OWNER, made.id)).revoked_at is not None
    for asked in (reserve(ledger, "c2"), ledger.balance(CHILD), ledger.charge("c3", CHILD, 1, endpoint="/x")):
        with pytest.raises(RevokedToken):
            await asked
    assert (await ledger.settle("c1", no_charge=None)).charged == 2
    with pytest.raises(AllowanceConflict):
        await ledger.change_allowance(OWNER, made.id, AllowanceChange(frozenset({"credits"}), AllowanceTerms("x", 50)))


@proves("allowance.ends")
async def test_an_allowance_ends_at_its_time_and_with_its_owner(ledger, clock):
    await create(ledger, expires_at=int((START.timestamp() + 60) * 1000))
    other = token(1001)
    await create(ledger, other)
    clock.advance(60)
    with pytest.raises(RevokedToken):
        await reserve(ledger, "c1")
    await reserve(ledger, "c2", who=other)
    await ledger.revoke((await ledger.standing(OWNER)).fingerprint, "payment undone")
    with pytest.raises(RevokedToken):
        await reserve(ledger, "c3", who=other)


async def test_nobody_but_its_owner_reaches_an_allowance(ledger):
    made = await create(ledger)
    change = AllowanceChange(frozenset({"credits"}), AllowanceTerms("x", 50))
    for asked in (
        ledger.change_allowance(OTHER, made.id, change),
        ledger.revoke_allowance(OTHER, made.id),
        ledger.revoke_allowance(OWNER, "alw_0000000000000000"),
    ):
        with pytest.raises(NotFound):
            await asked
    for asked in (
        create(ledger, token(1001), owner=CHILD),
        ledger.list_allowances(CHILD),
        ledger.change_allowance(CHILD, made.id, change),
        ledger.revoke_allowance(CHILD, made.id),
    ):
        with pytest.raises(AllowanceConflict):
            await asked
    assert await ledger.list_allowances(OTHER) == []
    with pytest.raises(InvalidToken):
        await ledger.list_allowances(token(9))
    with pytest.raises(InvalidToken):
        await ledger.mint(CHILD, 5, cause="topup")


@proves("allowance.live")
async def test_a_token_has_a_hundred_live_ones_or_fifty_of_a_sister_service_and_creating_twice_makes_one(ledger):
    most = 100 if (await create(ledger, token(2000))).service is None else 50
    made = [await create(ledger, token(2000 + number)) for number in range(most)]
    with pytest.raises(AllowanceConflict, match=f"{most} live"):
        await create(ledger, token(3000))
    assert (await create(ledger, token(2000))).id == made[0].id
    await ledger.revoke_allowance(OWNER, made[5].id)
    last = await create(ledger, token(3000))
    listed = await ledger.list_allowances(OWNER)
    assert {a.id for a in listed} == {a.id for a in (*made, last)}
    assert listed[-1].id == made[5].id


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def owned(request, tmp_path, clock):
    """A ledger of our own, which sister services use."""
    async with opened(request.param, tmp_path, clock) as ledger:
        await ledger.mint(OWNER, 100, cause="owner")
        yield ledger
        assert await faults(ledger) == []


def create_at(ledger, service, child=CHILD, credits=10):
    return ledger.create_allowance(OWNER, token_hash(child).hex(), AllowanceTerms("robot", credits), service=service)


async def test_an_allowance_made_through_a_sister_service_pays_for_the_calls_of_that_service_only(owned):
    made = await create_at(owned, "b")
    assert made.service == "b"
    assert (await reserve(owned, "b:c1")).remaining == 8
    for call in ("c2", "c:c2", "b:c:c2"):
        for spend in (reserve(owned, call), owned.charge(call, CHILD, 2, endpoint="/api/pro/x")):
            with pytest.raises(InsufficientCredits, match="only at the service where it was made") as caught:
                await spend
            assert caught.value.extra["cap"] == "service"
    assert (await owned.settle("b:c1", no_charge=None)).charged == 2
    assert (await find(owned, made.id)).spent == 2
    anywhere = await create_at(owned, None, token(1001))
    for call in ("c3", "c:c3"):
        await owned.charge(call, token(1001), 2, endpoint="/api/pro/x")
    assert (await find(owned, anywhere.id)).spent == 4


async def test_a_sister_service_changes_only_what_was_made_through_it(owned):
    made = {service: await create_at(owned, service, token(1000 + n)) for n, service in enumerate((None, "b", "c"))}
    more = AllowanceChange(frozenset({"credits"}), AllowanceTerms("x", 50))
    for service in (None, "c"):
        with pytest.raises(AllowanceConflict, match="made at another service"):
            await owned.change_allowance(OWNER, made[service].id, more, service="b")
    assert (await owned.change_allowance(OWNER, made["b"].id, more, service="b")).credits == 50
    assert (await owned.change_allowance(OWNER, made["c"].id, more)).credits == 50  # at the owner of the ledger
    assert (await find(owned, made[None].id)).credits == 10


async def test_sister_services_leave_places_for_allowances_to_each_other_and_to_the_owner_of_the_ledger(owned):
    numbers = iter(range(2000, 3000))
    for service, places in (("b", 50), ("c", 25)):
        for _ in range(places):
            last = await create_at(owned, service, token(next(numbers)))
    for service, most in (("b", "50 live"), ("c", "75 live"), ("d", "75 live")):
        with pytest.raises(AllowanceConflict, match=most):
            await create_at(owned, service, token(next(numbers)))
    for _ in range(25):
        await create_at(owned, None, token(next(numbers)))
    with pytest.raises(AllowanceConflict, match="100 live"):
        await create_at(owned, None, token(next(numbers)))
    await owned.revoke_allowance(OWNER, last.id)
    assert (await create_at(owned, "d", token(next(numbers)))).service == "d"


@pytest.mark.parametrize(("of", "by"), [(OWNER, OWNER), (OTHER, OWNER), (CHILD, OTHER)])
async def test_the_hash_of_a_token_that_exists_is_refused_and_its_bearer_is_not_cut_off(ledger, of, by):
    made = await create(ledger)
    if of != CHILD:
        await create(ledger, token(1001), OTHER)
    with pytest.raises(AllowanceConflict, match="that of another token"):
        await create(ledger, of, by, name="stolen")
    assert [each.name for each in await ledger.list_allowances(OWNER)] == ["robot"]
    await create(ledger, token(1002), OTHER)
    await create(ledger, token(1003), OWNER)
    assert (await ledger.charge("c1", OTHER, 2, endpoint="/x")).remaining == 98
    assert (await ledger.charge("c2", CHILD, 2, endpoint="/x")).remaining == 8
    assert (await find(ledger, made.id)).spent == 2


@pytest.mark.parametrize("parent", [OWNER, OTHER])
async def test_a_token_whose_hash_an_allowance_has_already_opens_its_own_account_and_manages_its_own(clock, parent):
    """As a ledger may hold it since before such a hash was refused."""
    ledger = MemoryLedger(clock)
    for who in (OWNER, OTHER):
        await ledger.mint(who, 100, cause=who)
    hash, now = token_hash(OWNER).hex(), int(clock.time() * 1000)
    stored = draft_allowance(AllowanceTerms("stolen", 1), hash, now)
    ledger.books.keep_allowance(replace(stored, parent=token_hash(parent).hex()))
    assert await ledger.find_payer(OWNER) == hash
    assert (await ledger.charge("c1", OWNER, 30, endpoint="/x")).remaining == 70
    assert (await ledger.standing(OWNER)).allowance is None
    assert [line.allowance for line in (await ledger.statement(OWNER, StatementQuery())).entries] == [None, None]
    await create(ledger)
    assert (await ledger.mint(OWNER, 1, cause="more")).remaining == 71
    assert await ledger.balance(OTHER) == 100


async def test_its_payer_is_its_owner_and_its_account_opens_no_other(ledger):
    made = await create(ledger)
    assert await ledger.find_payer(CHILD) == await ledger.find_payer(OWNER) == token_hash(OWNER).hex()
    standing = await ledger.standing(CHILD)
    assert (standing.payer, standing.allowance) == (token_hash(OWNER).hex(), made.id)
    assert standing.ref != (await ledger.standing(OWNER)).ref
    await reserve(ledger, "c1", who=AccountRef(standing.ref.ref), credits=9)
    with pytest.raises(InsufficientCredits):
        await reserve(ledger, "c2", who=AccountRef(standing.ref.ref))


async def test_it_sees_its_own_calls_and_its_owner_sees_whose_they_were(ledger):
    made = await create(ledger)
    await ledger.charge("own", OWNER, 5, endpoint="/api/pro/x")
    await reserve(ledger, "c1")
    await ledger.settle("c1", no_charge=None)
    await ledger.settle("c1", no_charge="delivery_failed")
    await ledger.charge("c2", CHILD, 3, endpoint="/api/pro/x")

    child, owner = [(await ledger.statement(who, StatementQuery())) for who in (CHILD, OWNER)]

    assert [(e.kind, e.credits, e.call_id) for e in child.entries] == [
        ("call", -3, "c2"),
        ("reversal", 2, "c1"),
        ("call", -2, "c1"),
    ]
    assert child.credits == 7
    assert [e.allowance for e in owner.entries] == [made.id, made.id, made.id, None, None]
    assert owner.credits == sum(e.credits for e in owner.entries) == 92
    first = await ledger.statement(CHILD, StatementQuery(limit=2))
    rest = await ledger.statement(CHILD, StatementQuery(limit=2, before=first.next_before))
    assert [*first.entries, *rest.entries] == child.entries


@proves("allowance.caps")
async def test_a_hundred_calls_at_once_over_ten_allowances_cross_no_cap(ledger):
    """Random caps, prices and ends, some allowances revoked meanwhile: each cap holds, and no credit is lost."""
    chance = random.Random(5)
    caps = [(chance.randint(3, 15), chance.choice([None, chance.randint(2, 9)])) for _ in range(10)]
    children = {token(4000 + number): each for number, each in enumerate(caps)}
    made = {}
    for child, (credits, per_day) in children.items():
        made[child] = await create(ledger, child, credits=credits, credits_per_day=per_day)
    charged = dict.fromkeys(children, 0)

    async def call(number):
        child, price = chance.choice(list(children)), chance.randint(1, 3)
        try:
            await reserve(ledger, f"p{number}", credits=price, who=child)
            if number % 7 == 0:
                return  # its process died: the sweep gives it back
            ends = chance.choice([[None], [None], ["5xx"], [None, "delivery_failed"]])
            for end in ends:
                settled = await ledger.settle(f"p{number}", no_charge=end)
            charged[child] += settled.charged
        except (InsufficientCredits, RevokedToken):
            pass

    async with anyio.create_task_group() as tasks:
        for number in range(100):
            tasks.start_soon(call, number)
        tasks.start_soon(ledger.revoke_allowance, OWNER, made[token(4000)].id)
    open_now = {child: (await find(ledger, made[child].id)).spent - charged[child] for child in children}
    assert all(held >= 0 for held in open_now.values())
    for child, (credits, per_day) in children.items():
        found = await find(ledger, made[child].id)
        assert found.spent <= credits
        assert found.spent_today <= (per_day or credits)
    assert await ledger.balance(OWNER) == 100 - sum(charged.values()) - sum(open_now.values())


async def test_the_file_itself_refuses_to_change_an_allowances_owner(tmp_path, clock):
    async with opened("sqlite", tmp_path, clock) as ledger:
        await ledger.mint(OWNER, 100, cause="owner")
        made = await create(ledger)
        await reserve(ledger, "c1")
        await ledger.revoke_allowance(OWNER, made.id)
    with closing(sqlite3.connect(tmp_path / FILE)) as db, db:
        for sql in (
            "DELETE FROM allowance",
            f"UPDATE allowance SET hash = '{'f' * 64}'",
            "UPDATE allowance SET service = 'b'",
            "UPDATE allowance SET revoked_at = NULL",
            "UPDATE reservation SET allowance = NULL",
            "UPDATE reservation SET day = 1",
        ):
            with pytest.raises(sqlite3.IntegrityError):
                db.execute(sql)
    db.close()
