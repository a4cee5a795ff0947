"""How operators see a purchase."""

import pytest

from toolserver.money.purchases.listing import ListedPurchase, ReviewCase, show_case, show_purchase, show_time, show_usd

ADDRESS = bytes.fromhex("833589fcd6edb6e08f4c7c32d4f71b54bda02913")
FOUND = ListedPurchase(3, "credited", 7_500_001, 375, ADDRESS, 1_800_000_000_999, 1_800_001_800_000, bytes([1]) * 32)


def test_a_purchase_is_shown_in_dollars_dates_and_checksums():
    assert show_purchase(FOUND) == {
        "id": 3,
        "state": "credited",
        "amount_usd": "7.500001",
        "credits": 375,
        "address": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
        "created": "2027-01-15T08:00:00Z",
        "expires": "2027-01-15T08:30:00Z",
        "tx": "0x" + "01" * 32,
    }


def test_a_purchase_that_nobody_paid_has_no_transaction():
    assert show_purchase(FOUND._replace(tx=None))["tx"] is None


@pytest.mark.parametrize(
    ("amount", "usd"), [(0, "0.000000"), (1, "0.000001"), (999_999, "0.999999"), (10**15, "1000000000.000000")]
)
def test_amounts_are_exact(amount, usd):
    assert show_usd(amount) == usd


def test_times_are_whole_seconds():
    assert show_time(1_800_000_000_999) == show_time(1_800_000_000_000) == "2027-01-15T08:00:00Z"


UNAPPLIED = ReviewCase("unapplied", bytes([2]) * 32, ADDRESS, 500_000, "below_minimum", None, 1_800_000_000_000)


def test_money_that_bought_nothing_says_why():
    assert show_case(UNAPPLIED) == {
        "kind": "unapplied",
        "tx": "0x" + "02" * 32,
        "wallet": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
        "amount_usd": "0.500000",
        "reason": "below_minimum",
        "lost": None,
        "at": "2027-01-15T08:00:00Z",
    }


def test_an_undone_payment_says_how_many_credits_were_lost():
    shown = show_case(UNAPPLIED._replace(kind="undone", reason=None, lost=10))
    assert (shown["kind"], shown["reason"], shown["lost"]) == ("undone", None, 10)
