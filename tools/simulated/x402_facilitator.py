"""Simulate a facilitator of x402 (version 2): it verifies payments, and settles them on the simulated chain."""

import hashlib
import json
from dataclasses import replace
from typing import Any

from tools.simulated.base_chain import CHAIN_ID, USDC, BaseRpcError, authorize, balance, submitted
from toolserver.world.model import PAID, Ask, Reply, World, serves

HOST = "x402.example"
NETWORK = f"eip155:{CHAIN_ID}"
SIGNER = "0xfac1117a70000000000000000000000000000402"  # the account that submits the payments
_REASONS = {
    "not yet valid": "invalid_exact_evm_payload_authorization_valid_after",
    "expired": "invalid_exact_evm_payload_authorization_valid_before",
    "used or canceled": "invalid_exact_evm_nonce_already_used",
    "invalid signature": "invalid_exact_evm_signature",
}


class Refused(Exception):
    """The payment is not valid. The text is an error code of x402."""


@serves("X402Facilitator.supported", HOST, "/supported")
def supported(world: World, ask: Ask) -> Reply:
    kinds = [{"x402Version": 2, "scheme": "exact", "network": NETWORK}]
    return Reply.json({"kinds": kinds, "extensions": [], "signers": {"eip155:*": [SIGNER]}})


@serves("X402Facilitator.verify", HOST, "/verify", "POST")
def verify(world: World, ask: Ask) -> Reply:
    try:
        return Reply.json({"isValid": True, "payer": _check(world, ask.json)["from"]})
    except Refused as refused:
        return Reply.json({"isValid": False, "invalidReason": str(refused)})
    except (LookupError, TypeError, ValueError, AttributeError):
        return Reply.json({"error": "not a payment of version 2 with its requirements"}, 400)


@serves("X402Facilitator.settle", HOST, "/settle", "POST")
def settle(world: World, ask: Ask) -> Reply:
    """Put a payment into the next block, once it was verified again."""
    try:
        event = _check(world, ask.json)
    except Refused as refused:
        return Reply.json({"success": False, "errorReason": str(refused), "transaction": "", "network": NETWORK})
    except (LookupError, TypeError, ValueError, AttributeError):
        return Reply.json({"error": "not a payment of version 2 with its requirements"}, 400)
    said = {"success": True, "transaction": event["hash"], "network": NETWORK, "payer": event["from"]}
    return Reply.json(said, records=(event,))


@settle.form("drift:invented")
def settle_nothing(world: World, ask: Ask) -> Reply:
    """Report a settlement that never was: the payment is verified, and not made."""
    return replace(settle.handler(world, ask), records=())


def _check(world: World, said: dict[str, Any]) -> dict[str, Any]:
    """Return the event that a payment becomes. Raises Refused, and other errors if the body has another form."""
    payload, wanted = said["paymentPayload"]["payload"], said["paymentRequirements"]
    signed = payload["authorization"]
    payer, to, amount = signed["from"].lower(), signed["to"].lower(), int(signed["value"])
    if (wanted["scheme"], wanted["network"], wanted["asset"].lower()) != ("exact", NETWORK, USDC):
        raise Refused("invalid_network")
    if to != wanted["payTo"].lower():
        raise Refused("invalid_exact_evm_recipient_mismatch")
    if amount != int(wanted["amount"]):
        raise Refused("invalid_exact_evm_authorization_value")
    after, before, nonce = int(signed["validAfter"]), int(signed["validBefore"]), signed["nonce"].lower()
    try:
        authorize(world, payer, to, amount, after, before, nonce, payload["signature"].removeprefix("0x"))
    except BaseRpcError as error:
        reason = next(code for words, code in _REASONS.items() if str(error).endswith(words))
        raise Refused(reason) from None
    if balance(submitted(world), payer) < amount:
        raise Refused("insufficient_funds")
    hash = f"0x{hashlib.sha256(json.dumps([payer, nonce]).encode()).hexdigest()}"
    moved = {"kind": PAID, "at": world.now, "hash": hash, "from": payer, "to": to, "amount": amount}
    return moved | {"nonce": nonce, "signer": SIGNER}
