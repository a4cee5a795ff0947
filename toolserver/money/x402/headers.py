"""Names the headers and `_meta` keys of x402, and encodes objects as header values. Imports no other part of this
service, because REST and MCP load it at the start.
"""

import base64
from typing import Any

import msgspec

REQUIRED, SIGNATURE, RESPONSE = "PAYMENT-REQUIRED", "PAYMENT-SIGNATURE", "PAYMENT-RESPONSE"
SIGNATURE_1, RESPONSE_1 = "X-PAYMENT", "X-PAYMENT-RESPONSE"  # the same in version 1
NETWORKS_1 = {"eip155:8453": "base"}  # how version 1 names the networks
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
    return {"x402Version": 1, "accepts": [_accept_version_1(offered) | about for offered in required["accepts"]]}


def _accept_version_1(offered: dict[str, Any]) -> dict[str, Any]:
    same = {name: offered[name] for name in ("scheme", "payTo", "asset", "maxTimeoutSeconds", "extra")}
    network = NETWORKS_1.get(offered["network"], offered["network"])
    return same | {"network": network, "maxAmountRequired": offered["amount"]}


def settle_version_1(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return the outcome of a payment as clients of version 1 read it."""
    return outcome | {"network": NETWORKS_1.get(outcome["network"], outcome["network"])}
