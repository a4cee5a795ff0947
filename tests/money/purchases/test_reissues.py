"""The rules of reissues: one payer, a signature in time, and a time in which the holder may object."""

import pytest

from toolserver.money.purchases.reissues import (
    PROVE_MS,
    WAIT_MS,
    ReissueDraft,
    ReissueRefused,
    StoredReissue,
    find_only_payer,
    require_due,
    require_open,
    require_provable,
    show_reissue,
)

ONE, TWO = bytes([1]) * 20, bytes([2]) * 20
ASKED = StoredReissue("ri_1", "a" * 64, ONE, "asked", 0, PROVE_MS, None, None, None, "a" * 16)
WAITING = ASKED._replace(state="waiting", proved_at=5, due_at=5 + WAIT_MS)


def test_times_are_a_day_to_sign_and_two_to_object():
    assert ReissueDraft("ri_1", "a" * 64, ONE, 7).expires_at == 7 + 24 * 3_600_000
    assert WAIT_MS == 48 * 3_600_000


def test_all_was_paid_by_one_account():
    assert find_only_payer([frozenset([ONE]), frozenset([ONE])]) == ONE
    for payers in ([], [frozenset([ONE, TWO])], [frozenset([ONE]), frozenset([TWO])]):
        with pytest.raises(ReissueRefused, match="paid for this token"):
            find_only_payer(payers)


def test_a_signature_comes_in_time_and_once():
    require_provable(ASKED, PROVE_MS)
    for found, now in ((ASKED, PROVE_MS + 1), (WAITING, 0), (ASKED._replace(state="cancelled"), 0)):
        with pytest.raises(ReissueRefused):
            require_provable(found, now)


def test_a_token_is_replaced_when_the_time_to_object_is_over():
    require_due(WAITING, 5 + WAIT_MS)
    for found, now in ((WAITING, 4 + WAIT_MS), (ASKED, WAIT_MS), (WAITING._replace(state="done"), 2 * WAIT_MS)):
        with pytest.raises(ReissueRefused):
            require_due(found, now)


@pytest.mark.parametrize("state", ["done", "cancelled"])
def test_what_has_ended_is_not_cancelled(state):
    require_open(WAITING)
    with pytest.raises(ReissueRefused, match=state):
        require_open(WAITING._replace(state=state))


def test_a_reissue_is_shown_with_its_times():
    assert show_reissue(ASKED)["due"] is None
    assert show_reissue(WAITING)["due"] == "1970-01-03T00:00:00Z"
