"""What every ledger promises: credits are set aside before a call and charged once, or given back."""

import anyio
import pytest

from tests.calls.parts import START
from tests.money.ledger.ledgers import KINDS, faults, opened, token
from tests.requirements import proves
from toolserver.clock import ManualClock
from toolserver.errors import PaymentRequired
from toolserver.money.ledger.memory import MemoryLedger
from toolserver.money.ledger.protocol import (
    FINGERPRINT,
    AccountRef,
    CallReused,
    CauseReused,
    UnknownCall,
    fingerprint_of,
)
from toolserver.money.ledger.state import new_ref
from toolserver.serving.background_tasks import repeat

RICH, POOR, STRANGER = token(1), token(2), token(3)


@pytest.fixture
def clock():
    return ManualClock(START)


@pytest.fixture(params=KINDS)
async def ledger(request, tmp_path, clock):
    async with opened(request.param, tmp_path, clock) as ledger:
        await ledger.mint(RICH, 10, cause="rich")
        await ledger.mint(POOR, 1, cause="poor")
        yield ledger
        assert await faults(ledger) == []


async def reserve(ledger, call_id="c1", who=RICH, credits=2):
    return await ledger.reserve(call_id, who, credits, endpoint="/api/pro/x", ttl_s=60)


async def refused(awaitable):
    with pytest.raises(PaymentRequired) as caught:
        await awaitable
    return caught.value.code


async def test_reserved_credits_cannot_be_spent_twice(ledger, clock):
    held = await reserve(ledger)
    assert (held.credits, held.remaining, held.state, held.replayed) == (2, 8, "open", False)
    assert held.expires_at == clock.time() + 60
    assert await ledger.balance(RICH) == 8
    assert await refused(reserve(ledger, "c2", credits=9)) == "insufficient_credits"
    assert await ledger.balance(RICH) == 8


async def test_a_refusal_says_what_is_left_and_what_was_needed(ledger):
    with pytest.raises(PaymentRequired) as caught:
        await reserve(ledger, who=POOR)
    assert caught.value.extra == {"required": 2, "credits_remaining": 1}


async def test_a_charge_takes_what_was_set_aside_and_says_what_is_left(ledger):
    await reserve(ledger)
    settled = await ledger.settle("c1", no_charge=None)
    assert (settled.charged, settled.remaining, settled.reason, settled.state) == (2, 8, None, "posted")
    assert await ledger.balance(RICH) == 8


async def test_a_release_gives_it_back_with_its_reason(ledger):
    await reserve(ledger)
    settled = await ledger.settle("c1", no_charge="stale_data")
    assert (settled.charged, settled.remaining, settled.reason, settled.state) == (0, 10, "stale_data", "voided")


@pytest.mark.parametrize("reason", ["out_of_cheese", "", "x" * 500])
async def test_a_reason_nobody_knows_releases_too(ledger, reason):
    await reserve(ledger)
    settled = await ledger.settle("c1", no_charge=reason)
    assert (settled.charged, settled.remaining, settled.reason) == (0, 10, reason[:64])


@proves("ledger.contract")
@pytest.mark.parametrize(
    ("steps", "charged", "state"),
    [
        ([None, None], 2, "posted"),
        (["5xx", "5xx"], 0, "voided"),
        ([None, "5xx"], 0, "reversed"),
        (["5xx", None], 0, "voided"),
        ([None, "5xx", None], 0, "reversed"),
        ([None, "5xx", "cancelled"], 0, "reversed"),
    ],
)
async def test_steps_may_be_repeated_in_any_order_and_a_release_dominates(ledger, steps, charged, state):
    await reserve(ledger)
    settled = [await ledger.settle("c1", no_charge=step) for step in steps][-1]
    assert (settled.charged, settled.remaining, settled.state) == (charged, 10 - charged, state)
    assert settled.reason == next((step for step in steps if step), None)


async def test_a_reservation_asked_for_again_is_the_same_whatever_became_of_it(ledger):
    first = await reserve(ledger)
    again = await reserve(ledger)
    assert again == first._replace(replayed=True)
    await ledger.settle("c1", no_charge="5xx")
    later = await reserve(ledger)
    assert (later.state, later.remaining, later.replayed) == ("voided", 10, True)


@pytest.mark.parametrize(("who", "credits"), [(RICH, 3), (POOR, 2)])
async def test_a_call_id_names_one_call(ledger, who, credits):
    await reserve(ledger)
    with pytest.raises(CallReused):
        await reserve(ledger, who=who, credits=credits)
    with pytest.raises(CallReused):
        await ledger.charge("c1", who, credits, endpoint="/api/pro/x")
    assert (await ledger.settle("c1", no_charge=None)).charged == 2, "the refused ones change nothing of the first"


async def test_what_was_never_reserved_cannot_be_settled(ledger):
    for reason in (None, "5xx"):
        with pytest.raises(UnknownCall):
            await ledger.settle("nobody", no_charge=reason)


async def test_an_answer_at_hand_is_charged_in_one_step(ledger):
    settled = await ledger.charge("c1", RICH, 2, endpoint="/api/pro/x")
    assert (settled.charged, settled.remaining, settled.state, settled.replayed) == (2, 8, "posted", False)
    again = await ledger.charge("c1", RICH, 2, endpoint="/api/pro/x")
    assert again == settled._replace(replayed=True)
    released = await ledger.settle("c1", no_charge="cancelled")
    assert (released.charged, released.remaining, released.state) == (0, 10, "reversed")
    assert (await ledger.charge("c1", RICH, 2, endpoint="/api/pro/x")).charged == 0
    assert await refused(ledger.charge("c2", RICH, 11, endpoint="/api/pro/x")) == "insufficient_credits"


async def test_a_charge_in_one_step_completes_a_reservation(ledger):
    await reserve(ledger)
    settled = await ledger.charge("c1", RICH, 2, endpoint="/api/pro/x")
    assert (settled.charged, settled.remaining, settled.state) == (2, 8, "posted")


@pytest.mark.parametrize("who", [STRANGER, "nonsense", "", RICH + "0", AccountRef("acct_nobody")])
async def test_a_stranger_gets_nothing(ledger, who):
    assert await refused(reserve(ledger, who=who)) == "invalid_token"
    assert await refused(ledger.charge("c1", who, 1, endpoint="/x")) == "invalid_token"
    assert await refused(ledger.balance(who)) == "invalid_token"
    assert await refused(ledger.standing(who)) == "invalid_token"
    if isinstance(who, str):
        assert await ledger.knows(who) is False


async def test_a_reference_is_no_bearer_credential_but_charges_the_same_account(ledger):
    ref = (await ledger.standing(RICH)).ref
    assert await ledger.knows(ref.ref) is False
    assert await refused(ledger.balance(ref.ref)) == "invalid_token"
    await ledger.charge("c1", ref, 1, endpoint="/hook")
    assert await ledger.balance(ref) == await ledger.balance(RICH) == 9
    assert await refused(ledger.mint(AccountRef("acct_nobody"), 5, cause="x")) == "invalid_token"
    assert (await ledger.mint(ref, 5, cause="top-up")).remaining == 14


async def test_credits_are_minted_once_for_each_cause(ledger):
    first = await ledger.mint(STRANGER, 50, cause="tx 1")
    assert (first.credits, first.remaining, first.replayed) == (50, 50, False)
    await ledger.charge("c1", STRANGER, 2, endpoint="/x")
    again = await ledger.mint(STRANGER, 50, cause="tx 1")
    assert (again.remaining, again.replayed) == (48, True)
    for who, credits in ((STRANGER, 51), (RICH, 50), (token(9), 50)):
        with pytest.raises(CauseReused):
            await ledger.mint(who, credits, cause="tx 1")
    assert (await ledger.mint(STRANGER, 50, cause="tx 2")).remaining == 98
    assert await ledger.knows(token(9)) is False


@pytest.mark.parametrize("credits", [0, -1, 10**15 + 1, 1.5, True, "2"])
async def test_credits_are_whole_and_positive(ledger, credits):
    with pytest.raises(ValueError, match="not a valid number of credits"):
        await reserve(ledger, credits=credits)
    with pytest.raises(ValueError, match="not a valid number of credits"):
        await ledger.charge("c1", RICH, credits, endpoint="/x")
    with pytest.raises(ValueError, match="not a valid number of credits"):
        await ledger.mint(RICH, credits, cause="x")


@proves("credits.no-expiry")
async def test_credits_can_be_spent_years_later(ledger, clock):
    clock.advance(10 * 365 * 86_400)
    assert await ledger.knows(RICH)
    assert (await ledger.charge("c1", RICH, 2, endpoint="/x")).remaining == 8
    assert (await ledger.standing(RICH)).credits == await ledger.balance(RICH) == 8


@proves("payment-error.expired")
async def test_a_revoked_token_is_expired_and_what_it_had_begun_is_settled(ledger):
    assert await ledger.knows(RICH)
    await reserve(ledger)
    fingerprint = (await ledger.standing(RICH)).fingerprint
    assert await ledger.revoke(fingerprint, "leaked")
    assert not await ledger.revoke(fingerprint.upper() + " ", "again")
    assert await ledger.knows(RICH) is False
    for asked in (ledger.balance(RICH), reserve(ledger, "c2"), ledger.mint(RICH, 1, cause="late")):
        assert await refused(asked) == "expired"
    assert (await ledger.settle("c1", no_charge=None)).charged == 2
    standing = await ledger.standing(RICH)
    assert (standing.credits, standing.held, standing.revoked) == (8, 0, "leaked")


@pytest.mark.parametrize("fingerprint", ["", "0123", "0" * 16, "z" * 16, "0" * 65])
async def test_only_a_known_fingerprint_is_revoked(ledger, fingerprint):
    assert await refused(ledger.revoke(fingerprint, "x")) == "invalid_token"


async def test_a_standing_tells_everything_but_the_token(ledger, clock):
    await reserve(ledger)
    standing = await ledger.standing(RICH)
    assert (standing.credits, standing.held, standing.revoked) == (8, 2, None)
    assert (len(standing.fingerprint), standing.issued_at) == (16, clock.time())
    assert RICH not in repr(standing)


@proves("charge.hold-ends")
async def test_what_nobody_settles_in_time_is_given_back(ledger, clock):
    await reserve(ledger)
    await ledger.reserve("c2", RICH, 3, endpoint="/api/pro/y", ttl_s=120, service="sister")
    assert [h.call_id for h in await ledger.holds()] == ["c1", "c2"]
    clock.advance(59)
    assert await ledger.sweep() == 0
    clock.advance(1)
    assert await ledger.sweep() == 1
    assert await ledger.balance(RICH) == 7
    late = await ledger.settle("c1", no_charge=None)
    assert (late.charged, late.reason, late.state) == (0, "expired", "voided")
    (left,) = await ledger.holds()
    fingerprint = (await ledger.standing(RICH)).fingerprint
    assert left == ("c2", fingerprint, 3, "/api/pro/y", "sister", START.timestamp() + 120)
    assert await ledger.holds(limit=0) == []


async def test_more_than_one_sweep_can_hold_is_swept(ledger, clock):
    await ledger.mint(RICH, 1000, cause="more")
    for number in range(300):
        await reserve(ledger, f"c{number}")
    clock.advance(61)
    assert await ledger.sweep() == 300
    assert await ledger.balance(RICH) == 1010


async def test_sweeping_goes_on_until_cancelled(ledger, clock):
    await reserve(ledger)
    clock.advance(61)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: repeat("sweep", ledger.sweep, 0))
        with anyio.fail_after(5):
            while await ledger.holds():
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()


@proves("ledger.contract")
async def test_a_crowd_on_one_token_spends_exactly_what_there_is(ledger):
    served, turned_away = [], []

    async def one(number):
        try:
            served.append((await ledger.charge(f"c{number}", RICH, 2, endpoint="/x")).remaining)
        except PaymentRequired as refusal:
            turned_away.append(refusal.code)

    async with anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(one, number)
    assert sorted(served) == [0, 2, 4, 6, 8]
    assert turned_away == ["insufficient_credits"] * 45


async def test_the_ledger_in_memory_can_be_funded_for_a_test():
    ledger = MemoryLedger()
    ledger.fund(RICH, 0)
    assert await ledger.balance(RICH) == 0
    ledger.fund(RICH, 5)
    ledger.fund(RICH, 5)
    assert await ledger.balance(RICH) == 10
    assert await faults(ledger) == []


@pytest.mark.parametrize("text", ["", "0" * 15, "0" * 65, "g" + "0" * 15, "0" * 8 + " " + "0" * 8, "0x" + "0" * 14])
def test_what_a_person_typed_is_refused_unless_it_can_be_a_fingerprint(text):
    with pytest.raises(PaymentRequired) as caught:
        fingerprint_of(text)
    assert caught.value.code == "invalid_token"


def test_a_fingerprint_has_16_digits_or_more_up_to_the_whole_hash_in_any_case():
    assert FINGERPRINT == 16
    assert fingerprint_of(" 0123456789ABCDEF\n") == "0123456789abcdef"
    assert fingerprint_of("F" * 64) == "f" * 64


def test_a_ledger_names_accounts_at_random():
    ref = new_ref()
    assert (ref[:5], len(ref), int(ref[5:], 16) >= 0, new_ref() != ref) == ("acct_", 37, True, True)
