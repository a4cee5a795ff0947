"""What is offered, and which payments are for it."""

import pytest

from tests.money.x402.parts import BASE_URL, NOW, REGISTRY, REPORT, TERMS, signed
from toolserver.money.x402 import wire
from toolserver.money.x402.offers import LEFT_S, document, misfit, offer_call
from toolserver.money.x402.wire import TOPUP_PATH

OFFER = offer_call(TERMS, REGISTRY["premium_report"])


def test_a_call_is_offered_for_the_price_of_its_credits():
    assert OFFER.requirement["amount"] == str(REPORT) == "40000"
    assert OFFER.resource["url"] == f"{BASE_URL}/api/pro/report"
    required = OFFER.required("payment_required")
    assert (required["x402Version"], required["error"], required["accepts"]) == (
        2,
        "payment_required",
        [OFFER.requirement],
    )


def test_a_payment_of_exactly_what_is_offered_fits():
    assert misfit(wire.read_payment(signed(REPORT)), OFFER.requirement, NOW) is None


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"scheme": "upto"}, "invalid_scheme"),
        ({"network": "eip155:1"}, "invalid_network"),
        ({"asset": "0x" + "00" * 20}, "invalid_payment_requirements"),
        ({"value": str(REPORT - 1)}, "invalid_exact_evm_payload_authorization_value_mismatch"),
        ({"to": "0x" + "11" * 20}, "invalid_exact_evm_payload_recipient_mismatch"),
        ({"payTo": "0x" + "11" * 20}, "invalid_exact_evm_payload_recipient_mismatch"),
        ({"validAfter": str(NOW + 1)}, "invalid_exact_evm_payload_authorization_valid_after"),
        ({"validBefore": str(NOW + LEFT_S - 1)}, "invalid_exact_evm_payload_authorization_valid_before"),
    ],
)
def test_any_other_payment_has_a_reason_not_to_fit(changed, reason):
    assert misfit(wire.read_payment(signed(REPORT, **changed)), OFFER.requirement, NOW) == reason


def test_the_document_lists_what_is_sold_and_the_top_up():
    listed = document(TERMS, list(REGISTRY))["resources"]
    assert [one["method"] for one in listed].count("POST") >= 1
    assert listed[-1]["resource"] == BASE_URL + TOPUP_PATH
    assert len(listed) == sum(1 for operation in REGISTRY if operation.credits) + 1
