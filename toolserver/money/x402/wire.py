"""Reads and writes the objects of x402 version 2: JSON, in HTTP as base64 in three headers. Pure.

A payment from outside is read into our own `Payment` and written anew before it is passed on,
so that nothing that we did not understand reaches the facilitator.
"""

import base64
import hashlib
import re
from typing import Any, Literal, NamedTuple

import msgspec

from toolserver.errors import ToolserverError
from toolserver.money.purchases.chain.ethereum import checksum_address
from toolserver.money.purchases.units import USDC_TEXT

VERSION = 2
SCHEME = "exact"
MOST_BYTES = 8192
LARGEST = 2**256
_ADDRESS, _HASH = re.compile(r"0x[0-9a-fA-F]{40}"), re.compile(r"0x[0-9a-fA-F]{64}")
_NUMBER, _SIGNED = re.compile(r"[0-9]{1,78}"), re.compile(r"0x(?:[0-9a-fA-F]{2}){65,2048}")


class Malformed(ToolserverError):
    """Not an x402 payment of version 1 or 2. The text says what is wrong and repeats no part of it."""


class FacilitatorDown(ToolserverError):
    """The facilitator gave no usable response and did nothing: it was not reached, or it
    refused. The text never names its address.
    """


class SettleAnswer(NamedTuple):
    """The response to /settle: the payment was made, certainly not made, or it is not known.
    `reason` is the error code, `tx` the hash of the transaction.
    """

    state: Literal["settled", "failed", "pending"]
    tx: bytes | None = None
    reason: str = "settlement_pending"


class _Authorization(msgspec.Struct, frozen=True, rename="camel"):
    from_: str = msgspec.field(name="from")
    to: str
    value: str
    valid_after: str
    valid_before: str
    nonce: str


class _Signed(msgspec.Struct, frozen=True):
    signature: str
    authorization: _Authorization


class Accepted(msgspec.Struct, frozen=True, rename="camel"):
    """The offer that the payer claims to accept."""

    scheme: str
    network: str
    asset: str
    amount: str
    pay_to: str


class _Payload(msgspec.Struct, frozen=True):
    """A payment of version 2; or of version 1, which names scheme and network itself and has no `accepted`."""

    x402Version: int
    payload: _Signed
    accepted: Accepted | None = None
    scheme: str = ""
    network: str = ""


class Payment(NamedTuple):
    """A signed authorisation to move USDC, well formed and not verified. `id` is the same for
    every spelling of it. `amount` is in 0.000001 USDC, `valid_after` and `valid_before` are in
    epoch seconds.
    """

    id: bytes
    payer: bytes
    payee: bytes
    amount: int
    valid_after: int
    valid_before: int
    nonce: bytes
    signature: bytes
    accepted: Accepted

    @property
    def shown_payer(self) -> str:
        return checksum_address(self.payer)

    def authorization(self) -> dict[str, str]:
        """Return the authorisation in the form of x402."""
        return {
            "from": self.shown_payer,
            "to": checksum_address(self.payee),
            "value": str(self.amount),
            "validAfter": str(self.valid_after),
            "validBefore": str(self.valid_before),
            "nonce": f"0x{self.nonce.hex()}",
        }


def read_payment(text: str) -> Payment:
    """Return the payment in a header (base64) or in MCP's `_meta` (JSON). Raises Malformed."""
    if len(text) > MOST_BYTES:
        raise Malformed(f"longer than {MOST_BYTES} characters")
    try:
        raw = text.encode() if text.startswith("{") else base64.b64decode(text.strip(), validate=True)
        message = msgspec.json.decode(raw, type=_Payload)
    except msgspec.ValidationError as error:
        raise Malformed(str(error)[:200]) from None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise Malformed("not base64 of a JSON object") from None
    if message.x402Version == 1 and message.scheme and message.network:
        return _payment(message.payload, _accept_version_1(message))
    if message.x402Version != VERSION:
        raise Malformed(f"x402Version must be {VERSION}, or 1 with scheme and network")
    if message.accepted is None:
        raise Malformed("Object missing required field `accepted`")
    return _payment(message.payload, message.accepted)


def _accept_version_1(message: _Payload) -> Accepted:
    """Return the offer that a payment of version 1 accepts: its amount in USDC, on the network that it names."""
    networks = {name: network for network, name in NETWORKS_1.items()}
    authorization = message.payload.authorization
    network = networks.get(message.network, message.network)
    return Accepted(message.scheme, network, USDC_TEXT, authorization.value, authorization.to)


def _payment(signed: _Signed, accepted: Accepted) -> Payment:
    authorization, signature = signed.authorization, _bytes("signature", signed.signature, _SIGNED)
    payment = Payment(
        b"",
        _bytes("from", authorization.from_, _ADDRESS),
        _bytes("to", authorization.to, _ADDRESS),
        _number("value", authorization.value),
        _number("validAfter", authorization.valid_after),
        _number("validBefore", authorization.valid_before),
        _bytes("nonce", authorization.nonce, _HASH),
        signature,
        accepted,
    )
    said = msgspec.json.encode([*payment.authorization().values(), signature.hex()])
    return payment._replace(id=hashlib.sha256(said).digest())


def _bytes(name: str, text: str, form: re.Pattern[str]) -> bytes:
    if not form.fullmatch(text):
        raise Malformed(f"`{name}` must be 0x and the right number of hexadecimal digits")
    return bytes.fromhex(text[2:])


def _number(name: str, text: str) -> int:
    if not _NUMBER.fullmatch(text) or int(text) >= LARGEST:
        raise Malformed(f"`{name}` is not a whole number in decimal digits")
    return int(text)


def write_payment(
    payment: Payment, requirement: dict[str, Any], resource: dict[str, str], extensions: dict[str, Any]
) -> dict[str, Any]:
    """Return the payment for the facilitator, with our own requirement and extensions in place of the payer's."""
    signed = {"signature": f"0x{payment.signature.hex()}", "authorization": payment.authorization()}
    written = {"x402Version": VERSION, "resource": resource, "accepted": requirement, "payload": signed}
    return written | ({"extensions": extensions} if extensions else {})


def tx_hash(text: object) -> bytes | None:
    """Return the 32 bytes of a transaction's hash, or None if the value is not one."""
    return bytes.fromhex(text[2:]) if isinstance(text, str) and _HASH.fullmatch(text) else None


def settlement(payer: str, network: str, *, tx: bytes | None, reason: str | None = None) -> dict[str, Any]:
    """Return the object of PAYMENT-RESPONSE: the payment was settled, or why it was not."""
    outcome: dict[str, Any] = {"success": reason is None} | ({"errorReason": reason} if reason else {})
    return {**outcome, "transaction": f"0x{tx.hex()}" if tx else "", "network": network, "payer": payer}


REQUIRED, SIGNATURE, RESPONSE = "PAYMENT-REQUIRED", "PAYMENT-SIGNATURE", "PAYMENT-RESPONSE"
SIGNATURE_1, RESPONSE_1 = "X-PAYMENT", "X-PAYMENT-RESPONSE"  # the same in version 1
NETWORKS_1 = {"eip155:8453": "base"}  # how version 1 names the networks
BAZAAR = "bazaar"  # the extension that describes requests and answers to those who list what is sold
TOPUP_PATH = "/api/payment/topup"
META_PAYMENT, META_RESPONSE = "x402/payment", "x402/payment-response"  # the same on MCP, as objects in `_meta`


def header(value: dict[str, Any]) -> str:
    """Return an object as the value of a header."""
    return base64.b64encode(msgspec.json.encode(value)).decode()


def unheader(text: str) -> dict[str, Any]:
    """Return the object in a header that `header` wrote."""
    content: dict[str, Any] = msgspec.json.decode(base64.b64decode(text))
    return content


def offer_version_1(required: dict[str, Any]) -> dict[str, Any]:
    """Return the offer of PAYMENT-REQUIRED as clients of version 1 read it: members of the body of a 402."""
    resource = required["resource"]
    about = {"resource": resource["url"], "description": resource["description"], "mimeType": resource["mimeType"]}
    about |= _describe_discovery_1(required.get("extensions", {}))
    return {"x402Version": 1, "accepts": [_describe_offer_1(offered) | about for offered in required["accepts"]]}


def _describe_offer_1(offered: dict[str, Any]) -> dict[str, Any]:
    same = {name: offered[name] for name in ("scheme", "payTo", "asset", "maxTimeoutSeconds", "extra")}
    network = NETWORKS_1.get(offered["network"], offered["network"])
    return same | {"network": network, "maxAmountRequired": offered["amount"]}


def _describe_discovery_1(extensions: dict[str, Any]) -> dict[str, Any]:
    """Return the same as clients of version 1 read it: the member `outputSchema` of an offer, or nothing."""
    if BAZAAR not in extensions:
        return {}
    shapes = extensions[BAZAAR]["schema"]["properties"]
    sent, about_input = extensions[BAZAAR]["info"]["input"], shapes["input"]["properties"]
    arguments = (
        {"bodyType": "json", "bodyFields": about_input["body"]["properties"]}
        if "body" in about_input
        else {"queryParams": about_input["queryParams"]["properties"]}
    )
    described = {"type": "http", "method": sent["method"], "discoverable": True, **arguments}
    definitions = extensions[BAZAAR]["schema"].get("$defs")
    output = shapes["output"]["properties"]["example"] | ({"$defs": definitions} if definitions else {})
    return {"outputSchema": {"input": described, "output": output}}


def settle_version_1(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return the outcome of a payment as clients of version 1 read it."""
    return outcome | {"network": NETWORKS_1.get(outcome["network"], outcome["network"])}
