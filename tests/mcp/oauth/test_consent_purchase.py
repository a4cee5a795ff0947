"""A purchase between the steps of the page."""

from datetime import UTC, datetime

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
    assert (shown.confirmations, shown.required, len(shown.tx_hash)) == (1, 3, MOST_HASH)
    assert "svc_buy_" not in repr(shown)


def test_the_claim_is_what_payment_confirm_takes():
    bought = ConsentPurchase.of_quote(QUOTE | {"amount_atomic": 1_000_000, "review": "large"}).paid_by("0xab")
    assert bought.claim == {"tx_hash": "0xab", "nonce": "svc_buy_1"}
    assert (bought.amount_usd, bought.review) == ("1", "large")
