"""Makes the errors for payments that were not made, may still be made, or were made for something unknown."""

import logging

from toolserver.errors import ChainUnavailable, PaymentRequired, PaymentUsed, SettlementPending, UnpaidCall
from toolserver.money.purchases.units import NETWORK
from toolserver.money.x402 import wire
from toolserver.money.x402.facilitator import FacilitatorDown
from toolserver.money.x402.offers import Offer
from toolserver.money.x402.wire import Payment

log = logging.getLogger(__name__)

AGAIN_S = 5


def refuse_payment(payment: Payment, offer: Offer, reason: str) -> PaymentRequired:
    """Return a 402 that says the payment was not made and repeats the offer."""
    response = wire.settlement(payment.shown_payer, NETWORK, tx=None, reason=reason)
    headers = {wire.REQUIRED: wire.header(offer.required(reason)), wire.RESPONSE: wire.header(response)}
    return UnpaidCall(f"The payment was not made: {reason}.", headers=headers)


def leave_pending(payment: Payment, tx: bytes | None) -> SettlementPending:
    """Return a 503 without an offer, because a client that accepts an offer pays twice."""
    response = wire.settlement(payment.shown_payer, NETWORK, tx=tx, reason="settlement_pending")
    return SettlementPending(
        "It is not known yet whether the payment was made. Send the same payment again; do not sign another one.",
        headers={wire.RESPONSE: wire.header(response), "Retry-After": str(AGAIN_S)},
        retry_after_seconds=AGAIN_S,
    )


def say_unavailable(down: FacilitatorDown) -> ChainUnavailable:
    log.warning("the facilitator gives no usable answer", extra={"reason": str(down)})
    return ChainUnavailable(
        "Payments cannot be checked at the moment. This one was not made.",
        headers={"Retry-After": "10"},
        retry_after_seconds=10,
    )


def refuse_unknown_use() -> PaymentUsed:
    """Return a 409 for a payment whose nonce the chain has already and that is not stored, as after a restored backup.

    It carries no offer, because a client that accepts an offer may pay twice.
    """
    return PaymentUsed(
        "The authorisation of this payment was already used or cancelled, and this service has no record of a purchase"
        " with it. If the money was taken, ask the operator of this service to look for it on the chain."
    )
