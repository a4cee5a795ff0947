"""The caps of an allowance, decided without a ledger."""

import pytest

from toolserver.errors import InsufficientCredits, RevokedToken
from toolserver.money.ledger.allowance import (
    DAY_MS,
    MOST_LIVE,
    SHOWN_ENDED,
    Allowance,
    AllowanceTerms,
    draft_allowance,
    write_tools,
)

NOON = 20_000 * DAY_MS + DAY_MS // 2
TERMS = AllowanceTerms("robot", 10, 4, NOON + 3 * DAY_MS, {"premium_macro": "/api/pro/macro"})


def made(terms=TERMS):
    return draft_allowance(terms, "a" * 64, NOON)


@pytest.mark.parametrize(
    ("spent", "today", "price", "endpoint", "cap"),
    [
        (0, 0, 4, "/api/pro/macro", None),
        (0, 0, 5, "/api/pro/macro", "credits_per_day"),
        (8, 0, 2, "/api/pro/macro", None),
        (8, 0, 3, "/api/pro/macro", "credits"),
        (3, 3, 1, "/api/pro/macro", None),
        (3, 3, 2, "/api/pro/macro", "credits_per_day"),
        (0, 0, 1, "/api/pro/briefing", "tools"),
    ],
)
def test_a_cap_may_be_reached_and_not_crossed(spent, today, price, endpoint, cap):
    allowance = made()
    allowance.spent, allowance.spent_today = spent, today
    if cap is None:
        allowance.check_caps(price, endpoint, NOON)
        return
    with pytest.raises(InsufficientCredits) as caught:
        allowance.check_caps(price, endpoint, NOON)
    assert caught.value.extra == {"required": price, "credits_remaining": min(10 - spent, 4 - today), "cap": cap}


def test_a_new_day_has_its_cap_anew_and_what_is_given_back_goes_to_its_own_day():
    allowance = made()
    first = allowance.take(4, NOON)
    assert allowance.find_room(NOON) == 0
    assert allowance.find_room(NOON + DAY_MS) == 4

    second = allowance.take(3, NOON + DAY_MS)
    allowance.give_back(4, first)
    assert (allowance.spent, allowance.spent_on(second), allowance.find_room(NOON + DAY_MS)) == (3, 3, 1)
    allowance.give_back(3, second)
    assert (allowance.spent, allowance.spent_on(second), allowance.find_room(NOON + DAY_MS)) == (0, 0, 4)


def test_states_and_ends():
    allowance = made()
    assert allowance.find_state(NOON) == "active"
    assert allowance.find_state(NOON + 3 * DAY_MS) == "expired"
    with pytest.raises(RevokedToken, match="expired"):
        allowance.check(NOON + 3 * DAY_MS)
    allowance.spent = 10
    assert allowance.find_state(NOON) == "exhausted"
    allowance.revoked_at = NOON
    assert allowance.find_state(NOON) == "revoked"
    with pytest.raises(RevokedToken, match="revoked"):
        allowance.check(NOON)


TOOLS = {f"tool_{number}": f"/api/{number}" for number in range(101)}


@pytest.mark.parametrize(
    "wrong",
    [
        {"credits": 0},
        {"credits": 10**9 + 1},
        {"credits_per_day": 0},
        {"credits_per_day": 10**9 + 1},
        {"name": ""},
        {"name": "x" * 101},
        {"tools": TOOLS},
    ],
)
def test_a_cap_that_is_none_is_refused(wrong):
    with pytest.raises(ValueError, match="1 to"):
        AllowanceTerms(**{"name": "x", "credits": 1, **wrong})


def test_terms_may_reach_their_bounds():
    for name in ("x", "x" * 100):
        AllowanceTerms(name, 1, 1, None, {})
        AllowanceTerms(name, 10**9, 10**9, None, dict(list(TOOLS.items())[:100]))
    assert (MOST_LIVE, SHOWN_ENDED) == (100, 100)


def test_a_new_allowance_has_its_terms_and_has_spent_nothing():
    allowance = made()
    assert (allowance.id[:4], len(allowance.id), allowance.ref[:5], len(allowance.ref)) == ("alw_", 20, "acct_", 37)
    tools, ends = '{"premium_macro": "/api/pro/macro"}', NOON + 3 * DAY_MS
    caps = ("robot", 10, 4, ends, tools)
    assert allowance == Allowance(allowance.id, "a" * 64, allowance.ref, "", *caps, 0, 20_000, 0, NOON, None, None)
    assert made(AllowanceTerms("any", 1)).tools is None
    assert write_tools({"b": "/b", "a": "/a"}) == '{"a": "/a", "b": "/b"}'
    assert made().id != allowance.id


def test_an_allowance_lives_until_its_end_and_one_without_an_end_for_ever():
    assert [made().is_live(NOON + 3 * DAY_MS + late) for late in (-1, 0)] == [True, False]
    endless = made(AllowanceTerms("robot", 10))
    assert endless.is_live(2**62)
    endless.check(2**62)


def test_room_is_what_the_tighter_cap_leaves_and_never_less_than_nothing():
    allowance = made()
    assert allowance.find_room(NOON) == 4
    allowance.spent = 8
    assert allowance.find_room(NOON) == 2
    allowance.spent = 12  # its cap was lowered meanwhile
    assert allowance.find_room(NOON) == 0
    assert made(AllowanceTerms("robot", 10)).find_room(NOON) == 10


def test_spending_adds_up_within_a_day_and_notes_when():
    allowance = made()
    assert [allowance.take(1, NOON), allowance.take(2, NOON + 5)] == [20_000, 20_000]
    assert (allowance.spent, allowance.spent_today, allowance.last_used_at) == (3, 3, NOON + 5)
    assert (allowance.spent_on(20_000), allowance.spent_on(20_001), allowance.spent_on(19_999)) == (3, 0, 0)
    allowance.give_back(1, None)
    assert (allowance.spent, allowance.spent_today) == (2, 3)


def test_a_crossed_cap_says_what_was_spent_of_how_much():
    allowance = made()
    allowance.take(3, NOON)
    for price, told in ((2, "3 of 4 were spent today"), (8, "has spent 3 of 10")):
        with pytest.raises(InsufficientCredits, match=f"costs {price} credits.*{told}"):
            allowance.check_caps(price, "/api/pro/macro", NOON)
