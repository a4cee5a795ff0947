"""The names under which x402 travels, and objects as values of headers. Imports nothing: the faces load it at once."""

import base64
from typing import Any

import msgspec

REQUIRED, SIGNATURE, RESPONSE = "PAYMENT-REQUIRED", "PAYMENT-SIGNATURE", "PAYMENT-RESPONSE"
META_PAYMENT, META_RESPONSE = "x402/payment", "x402/payment-response"  # the same on MCP, as objects in `_meta`


def header(value: dict[str, Any]) -> str:
    """An object as the value of a header."""
    return base64.b64encode(msgspec.json.encode(value)).decode()


def unheader(text: str) -> dict[str, Any]:
    """The object of a header that we wrote."""
    found: dict[str, Any] = msgspec.json.decode(base64.b64decode(text))
    return found
