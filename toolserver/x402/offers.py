"""What is offered for payment by x402, and whether a payment is for that. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from toolserver.core.credit_price import ATOMIC, ATOMIC_PER_CREDIT, CREDIT_PRICE
from toolserver.purchases.deposit import checksum_address
from toolserver.purchases.units import NETWORK, USDC
from toolserver.registry.registry import Operation
from toolserver.x402 import wire
from toolserver.x402.headers import TOPUP_PATH
from toolserver.x402.wire import Payment

DOMAIN = {"name": "USD Coin", "version": "2"}  # of the EIP-712 signature; on test networks the name is another one
LEFT_S = 10  # how long an authorisation has to be good for when it comes: nothing is run that could not be settled
DESCRIPTION = f"Credits for premium data: {CREDIT_PRICE}"
Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class X402Terms:
    """How this service is paid. `host` stands in what payers sign, `base_url` before every path."""

    pay_to: bytes
    max_timeout_s: int
    most: int
    base_url: str
    host: str

    def requirement(self, amount: int) -> Object:
        """One entry of `accepts`: USDC on Base, by EIP-3009."""
        return {
            "scheme": wire.SCHEME,
            "network": NETWORK,
            "amount": str(amount),
            "asset": checksum_address(USDC),
            "payTo": checksum_address(self.pay_to),
            "maxTimeoutSeconds": self.max_timeout_s,
            "extra": DOMAIN,
        }

    def resource(self, path: str, description: str) -> dict[str, str]:
        """What is paid for."""
        url = self.base_url.rstrip("/") + path
        return {"url": url, "description": description, "mimeType": "application/json"}


class Offer(NamedTuple):
    """What one request costs, and what it is."""

    requirement: Object
    resource: dict[str, str]

    def required(self, error: str) -> Object:
        """The object of PAYMENT-REQUIRED."""
        return {
            "x402Version": wire.VERSION,
            "error": error,
            "resource": self.resource,
            "accepts": [self.requirement],
            "extensions": {},
        }


def offer_call(terms: X402Terms, operation: Operation) -> Offer:
    """What one call of an operation costs."""
    amount = operation.credits * ATOMIC_PER_CREDIT
    return Offer(terms.requirement(amount), terms.resource(operation.path, operation.title))


def misfit(payment: Payment, requirement: Object, now: float) -> str | None:
    """Why a payment is not for this offer, in x402's own words; None when it is, as far as can be seen from here."""
    accepted, amount = payment.accepted, int(requirement["amount"])
    if accepted.scheme != requirement["scheme"]:
        return "invalid_scheme"
    if accepted.network != requirement["network"]:
        return "invalid_network"
    if accepted.asset.lower() != requirement["asset"].lower():
        return "invalid_payment_requirements"
    if accepted.amount != requirement["amount"] or payment.amount != amount:
        return "invalid_exact_evm_payload_authorization_value_mismatch"
    payees = {accepted.pay_to.lower(), f"0x{payment.payee.hex()}"}
    if payees != {requirement["payTo"].lower()}:
        return "invalid_exact_evm_payload_recipient_mismatch"
    if payment.valid_after > now:
        return "invalid_exact_evm_payload_authorization_valid_after"
    if payment.valid_before < now + LEFT_S:
        return "invalid_exact_evm_payload_authorization_valid_before"
    return None


def document(terms: X402Terms, operations: Sequence[Operation]) -> Mapping[str, Any]:
    """What stands at /.well-known/x402.json: everything that can be paid for, and how."""
    sold = [operation for operation in operations if operation.credits]
    listed = [_listed(operation.method, offer_call(terms, operation)) for operation in sold]
    topup = Offer(terms.requirement(ATOMIC), terms.resource(TOPUP_PATH, DESCRIPTION))
    return {"x402Version": wire.VERSION, "resources": [*listed, _listed("POST", topup)]}


def _listed(method: str, offer: Offer) -> dict[str, Any]:
    listed = {"resource": offer.resource["url"], "type": "http", "method": method, "x402Version": wire.VERSION}
    return {**listed, "description": offer.resource["description"], "accepts": [offer.requirement]}
