"""A purchase between the steps of the page."""

from dataclasses import FrozenInstanceError
from datetime import UTC, datetime

import pytest

from toolserver.mcp.oauth.consent_purchase import MOST_HASH, ConsentPurchase

QUOTE = {
    "wallet": "0x1",
    "memo": "svc_buy_1",
    "amount_atomic": 5_250_000,
    "quote": {"credits": 262},
    "payment_uri": "ethereum:0x1",
    "expires_at": "2027-01-15T08:30:00Z",
}


def test_a_quote_is_kept_and_shown_without_its_secret():
    bought = ConsentPurchase.of_quote(QUOTE)
    assert ConsentPurchase.read(bought.write()) == bought
    shown = bought.paid_by("0x" + "1" * 500).show(1, 3)
    assert (shown.wallet, shown.amount_usd, shown.credits, shown.review) == ("0x1", "5.25", 262, None)
    assert shown.expires_at == datetime(2027, 1, 15, 8, 30, tzinfo=UTC)
    assert (shown.confirmations, shown.required, shown.tx_hash) == (1, 3, "0x" + "1" * 98)
    assert (shown.uri, MOST_HASH) == ("ethereum:0x1", 100)
    assert "svc_buy_" not in repr(shown)


def test_the_claim_is_what_payment_confirm_takes():
    bought = ConsentPurchase.of_quote(QUOTE | {"amount_atomic": 1_000_000, "review": "large"}).paid_by("0xab")
    assert bought.claim == {"tx_hash": "0xab", "nonce": "svc_buy_1"}
    assert (bought.amount_usd, bought.review) == ("1", "large")
    assert ConsentPurchase.read(bought.write()) == bought
    assert bought.show().review == "large"
    assert bought.paid_by("").tx_hash == ""
    assert bought.tx_hash == "0xab", "a purchase does not change by itself"


@pytest.mark.parametrize(
    ("atomic", "shown"), [(10_000_000, "10"), (100_000, "0.1"), (1, "0.000001"), (1_234_567, "1.234567")]
)
def test_an_amount_is_shown_with_the_digits_that_it_has(atomic, shown):
    assert ConsentPurchase.of_quote(QUOTE | {"amount_atomic": atomic}).amount_usd == shown


def test_a_time_of_another_zone_is_shown_in_utc():
    bought = ConsentPurchase.of_quote(QUOTE | {"expires_at": "2027-01-15T10:30:00+02:00"})
    assert bought.show().expires_at == datetime(2027, 1, 15, 8, 30, tzinfo=UTC)
    assert (bought.show().confirmations, bought.show().required) == (None, None)


def test_a_purchase_cannot_be_changed_in_place():
    with pytest.raises(FrozenInstanceError):
        ConsentPurchase.of_quote(QUOTE).tx_hash = "0x1"
