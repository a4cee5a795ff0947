"""What is said of a payment that was not made, that may be made yet, or that was made for nothing we know."""

import logging

from toolserver.errors import ChainUnavailable, PaymentRequired, PaymentUsed, SettlementPending, UnpaidCall
from toolserver.purchases.units import NETWORK
from toolserver.x402 import wire
from toolserver.x402.facilitator import FacilitatorDown
from toolserver.x402.offers import Offer
from toolserver.x402.wire import Payment

log = logging.getLogger(__name__)

AGAIN_S = 5


def refuse_payment(payment: Payment, offer: Offer, reason: str) -> PaymentRequired:
    """402: this payment was not made; the offer stands."""
    response = wire.settlement(payment.shown_payer, NETWORK, tx=None, reason=reason)
    headers = {wire.REQUIRED: wire.header(offer.required(reason)), wire.RESPONSE: wire.header(response)}
    return UnpaidCall(f"The payment was not made: {reason}.", headers=headers)


def leave_pending(payment: Payment, tx: bytes | None) -> SettlementPending:
    """503: never an offer, for who accepts it pays twice."""
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
    """409: the chain has its nonce already, and nothing is stored about it, as after a restore from a backup.

    Never an offer: who accepts it may pay twice.
    """
    return PaymentUsed(
        "The authorisation of this payment was used or cancelled before, and nothing that it bought is recorded here."
        " If its money was taken, ask the operator of this service to look for it on the chain."
    )
