"""The rules of refunds: what may be refunded, when one may be booked or cancelled, and what pays it."""

import pytest

from toolserver.money.purchases.refunds import (
    PROVE_MS,
    RefundDraft,
    RefundRefused,
    RefundRoom,
    StoredRefund,
    nonce_of,
    require_bookable,
    require_cancellable,
    show_refund,
)

TO, FROM = bytes([0xD0]) * 20, bytes([0xE0]) * 20
ASKED = StoredRefund(
    *("rf_1", "a" * 64, TO, 5, 100_000, "moved", "asked", 1000, 1000 + PROVE_MS),
    *(None, None, None, None, None, None, "a" * 16),
)
BOOKED = ASKED._replace(state="booked", proof="payer", payer=FROM, booked_at=2000)


def test_a_credit_is_paid_back_at_its_price():
    draft = RefundDraft("rf_1", "a" * 64, TO, 5, "moved", 1000)
    assert (draft.amount, draft.expires_at) == (100_000, 1000 + 7 * 86_400_000)


@pytest.mark.parametrize(("credits", "why"), [(6, "holds only 5"), (5, "4 credits were paid for")])
def test_neither_more_than_is_held_nor_more_than_was_paid_for(credits, why):
    with pytest.raises(RefundRefused, match=why):
        RefundRoom(5, 4).require(credits)
    RefundRoom(5, 4).require(4)


def test_what_was_asked_for_is_booked_once_and_in_time():
    require_bookable(ASKED, ASKED.expires_at)
    with pytest.raises(RefundRefused, match="ask again"):
        require_bookable(ASKED, ASKED.expires_at + 1)
    for state in ("booked", "sent", "paid", "cancelled"):
        with pytest.raises(RefundRefused, match=state):
            require_bookable(ASKED._replace(state=state), 1000)


def test_what_may_be_signed_is_not_cancelled():
    for one in (ASKED, BOOKED):
        require_cancellable(one)
    for one in (BOOKED._replace(planned_at=1), *(BOOKED._replace(state=state) for state in ("sent", "paid"))):
        with pytest.raises(RefundRefused, match="cannot be cancelled"):
            require_cancellable(one)


def test_a_refund_has_one_nonce_whenever_it_is_authorised():
    first, later = BOOKED.authorize(10), BOOKED.authorize(20)
    assert (first.payer, first.payee, first.amount, first.nonce) == (FROM, TO, 100_000, nonce_of("rf_1"))
    assert (first.nonce, later.valid_before) == (later.nonce, 20)
    assert nonce_of("rf_2") != nonce_of("rf_1")
    for state in ("asked", "paid", "cancelled"):
        with pytest.raises(RefundRefused, match="nothing to pay"):
            BOOKED._replace(state=state).authorize(10)


def test_a_refund_is_shown_with_its_money_and_times():
    shown = show_refund(BOOKED)
    assert (shown["amount_usd"], shown["booked"], shown["tx"]) == ("0.100000", "1970-01-01T00:00:02Z", None)
