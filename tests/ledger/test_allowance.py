"""The caps of an allowance, decided without a ledger."""

import pytest

from toolserver.errors import InsufficientCredits, RevokedToken
from toolserver.ledger.allowance import DAY_MS, AllowanceTerms, draft_allowance

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


@pytest.mark.parametrize("wrong", [{"credits": 0}, {"credits": 10**9 + 1}, {"credits_per_day": 0}, {"name": ""}])
def test_a_cap_that_is_none_is_refused(wrong):
    with pytest.raises(ValueError, match="1 to"):
        AllowanceTerms(**{"name": "x", "credits": 1, **wrong})
