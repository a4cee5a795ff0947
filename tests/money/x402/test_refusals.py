"""What is said of payments that were not made, may be made yet, or were made for nothing we know."""

from tests.money.x402.parts import REGISTRY, TERMS, response_of, signed
from toolserver.money.x402 import wire
from toolserver.money.x402.offers import offer_call
from toolserver.money.x402.settlement import leave_pending, refuse_payment, refuse_unknown_use, say_unavailable
from toolserver.money.x402.wire import FacilitatorDown

OFFER, PAYMENT = offer_call(TERMS, REGISTRY["premium_report"]), wire.read_payment(signed())


def test_a_payment_that_was_not_made_gets_the_reason_and_the_offer_again():
    refused = refuse_payment(PAYMENT, OFFER, "invalid_payload")

    assert (refused.status, refused.code) == (402, "payment_required")
    assert response_of(refused)["errorReason"] == "invalid_payload"
    assert wire.REQUIRED in refused.headers


def test_nobody_is_offered_anything_whose_payment_may_have_been_made():
    for said in (leave_pending(PAYMENT, bytes(32)), refuse_unknown_use(), say_unavailable(FacilitatorDown("away"))):
        assert wire.REQUIRED not in said.headers
        assert said.status in (409, 503)


def test_a_pending_payment_names_its_transaction_and_when_to_ask_again():
    said = leave_pending(PAYMENT, bytes([1]) * 32)

    assert response_of(said)["transaction"] == f"0x{'01' * 32}"
    assert said.headers["Retry-After"] == str(said.extra["retry_after_seconds"])
