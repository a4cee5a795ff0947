"""Makes the offers of payment by x402, and checks whether a payment fits an offer. Pure.

An offer describes what it sells as the extension `bazaar`, for facilitators that list what
they can pay. The description travels in a header, and clients send it back with their payment.
So it has no words: only the names, types and bounds of arguments, and the shape of the answer
as `tools/list` shows it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.credit_price import ATOMIC, ATOMIC_PER_CREDIT, CREDIT_PRICE
from toolserver.money.purchases.units import NETWORK, USDC_TEXT
from toolserver.money.x402 import wire
from toolserver.money.x402.wire import BAZAAR, TOPUP_PATH, Payment
from toolserver.registry.listed_schema import listed_schema
from toolserver.registry.registry import Operation

DOMAIN = {"name": "USD Coin", "version": "2"}  # of the EIP-712 signature; on test networks the name is another one
LEFT_S = 10  # seconds that an authorisation must still be valid on arrival, so that the settlement is in time
_WORDS = frozenset({"title", "description", "examples"})
DESCRIPTION = f"Credits for premium data: {CREDIT_PRICE}"
Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class X402Terms:
    """The terms of payment. `host` is part of the text that payers sign, `base_url` precedes
    every path, `most` is the largest top-up in 0.000001 USDC, and `most_alone` the largest
    while `count_servers` is below 2.
    """

    pay_to: bytes
    max_timeout_s: int
    most: int
    base_url: str
    host: str
    most_alone: int | None = None
    count_servers: Callable[[], int] = lambda: 1

    def find_most(self) -> int:
        """Return the largest top-up that can be checked now as its amount requires, in 0.000001 USDC."""
        is_bound = self.most_alone is not None and self.count_servers() < 2
        return min(self.most, self.most_alone) if is_bound and self.most_alone is not None else self.most

    def requirement(self, amount: int) -> Object:
        """Return one entry of `accepts`: `amount` (0.000001 USDC) on Base, by EIP-3009."""
        return {
            "scheme": wire.SCHEME,
            "network": NETWORK,
            "amount": str(amount),
            "asset": USDC_TEXT,
            "payTo": checksum_address(self.pay_to),
            "maxTimeoutSeconds": self.max_timeout_s,
            "extra": DOMAIN,
        }

    def resource(self, path: str, description: str) -> dict[str, str]:
        """Return the description of what is paid for."""
        url = self.base_url.rstrip("/") + path
        return {"url": url, "description": description, "mimeType": "application/json"}


class Offer(NamedTuple):
    """The price of one request, and what it pays for. `extensions` say how that is requested, for those who list it."""

    requirement: Object
    resource: dict[str, str]
    extensions: Object

    def required(self, error: str) -> Object:
        """Return the object of PAYMENT-REQUIRED."""
        return {
            "x402Version": wire.VERSION,
            "error": error,
            "resource": self.resource,
            "accepts": [self.requirement],
            "extensions": self.extensions,
        }


def offer_call(terms: X402Terms, operation: Operation) -> Offer:
    """Return the offer for one call of an operation."""
    amount = operation.credits * ATOMIC_PER_CREDIT
    return Offer(
        terms.requirement(amount), terms.resource(operation.path, operation.title), describe_discovery(operation)
    )


def offer_topup(terms: X402Terms, amount: int, operation: Operation | None) -> Offer:
    """Return the offer for a top-up of `amount` (0.000001 USDC), which is requested by this
    operation, if it is listed.
    """
    resource = terms.resource(TOPUP_PATH, DESCRIPTION)
    return Offer(terms.requirement(amount), resource, {} if operation is None else describe_discovery(operation))


def misfit(payment: Payment, requirement: Object, now: float) -> str | None:
    """Return x402's error code if a payment does not fit an offer, or None if it does as far as can be seen here."""
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
    """Return the content of /.well-known/x402.json: everything that can be paid for, and how."""
    sold = [operation for operation in operations if operation.credits]
    listed = [_listed(operation.method, offer_call(terms, operation)) for operation in sold]
    topup = offer_topup(terms, ATOMIC, next((one for one in operations if one.path == TOPUP_PATH), None))
    return {"x402Version": wire.VERSION, "resources": [*listed, _listed("POST", topup)]}


def _listed(method: str, offer: Offer) -> dict[str, Any]:
    listed = {"resource": offer.resource["url"], "type": "http", "method": method, "x402Version": wire.VERSION}
    about = {"description": offer.resource["description"], "accepts": [offer.requirement]}
    return {**listed, **about, "extensions": offer.extensions}


@lru_cache(maxsize=256)
def describe_discovery(operation: Operation) -> Object:
    """Return `extensions` of an offer: how the operation is called over HTTP, and the shape of its answer.

    `schema` describes `info`, as the extension requires. It is made once; do not modify it.
    """
    output = dict(listed_schema(operation))
    definitions = {"$defs": output.pop("$defs")} if "$defs" in output else {}  # references start at the root
    about_input = {"type": {"type": "string", "const": "http"}, "method": {"type": "string", "const": operation.method}}
    info: Object = {"type": "http", "method": operation.method}
    arguments = _without_words(operation.input_schema)
    if operation.takes_body:
        info |= {"bodyType": "json", "body": _example_body(operation)}
        about_input |= {"bodyType": {"type": "string", "const": "json"}, "body": arguments}
    else:
        about_input |= {"queryParams": arguments}
    required = [name for name in about_input if name != "queryParams"]
    properties = {
        "input": {"type": "object", "properties": about_input, "required": required, "additionalProperties": False},
        "output": {"type": "object", "properties": {"type": {"const": "json"}, "example": output}},
    }
    schema = {"type": "object", "properties": properties, "required": ["input"], **definitions}
    return {BAZAAR: {"info": {"input": info, "output": {"type": "json"}}, "schema": schema}}


def _example_body(operation: Operation) -> Object:
    """Return a body with the first example of every argument that has one."""
    properties: Object = operation.input_schema["properties"]
    return {name: argument["examples"][0] for name, argument in properties.items() if "examples" in argument}


def _without_words(node: Any) -> Any:
    """Return a schema of arguments without the texts that are for readers. Names of arguments stay."""
    if isinstance(node, list):
        return [_without_words(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {
        name: {key: _without_words(each) for key, each in value.items()}
        if name == "properties"
        else _without_words(value)
        for name, value in node.items()
        if name not in _WORDS
    }
