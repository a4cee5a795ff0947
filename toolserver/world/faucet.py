"""Make and undo payments on the simulated chain on request: `/_sim/chain/transfer`."""

import re
import secrets
from decimal import Decimal, InvalidOperation
from typing import Any

from toolserver.world import request_checks
from toolserver.world.commands import Command, ControlRequest
from toolserver.world.model import Edits
from toolserver.world.request_checks import ControlRefused
from toolserver.world.state import PAID

FROM = "0x00000000000000000000000000000000000f00d5"
MOST_USD = 10**9
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")


async def transfer(call: ControlRequest) -> Any:
    """Send USDC: `{"to", "amount_usd"}` and optionally `"from"`. The next block contains it."""
    _path(call, "transfer")
    body = request_checks.members(call.body, {"to", "amount_usd", "from"}, "a transfer")
    if call.state.full:
        raise ControlRefused("too many pins and events; reset or play a scenario")
    now = call.state.world().now
    event = {
        "kind": PAID,
        "at": now,
        "hash": f"0x{secrets.token_hex(32)}",
        "from": _address(body.get("from", FROM), "from"),
        "to": _address(body.get("to"), "to"),
        "amount": _amount(body.get("amount_usd")),
    }
    call.state.inject(event)
    return {"tx_hash": event["hash"], **{name: event[name] for name in ("from", "to", "amount")}}


async def undo(call: ControlRequest) -> Any:
    """Remove a transfer from the chain, as a reorganisation does: `DELETE /_sim/chain/0x…`."""
    left = [e for e in call.state.edits.events if e.get("hash") != call.rest.lower()]
    if len(left) == len(call.state.edits.events):
        raise ControlRefused("there is no such transfer", 404)
    call.state.edits = Edits(call.state.edits.pins, left)
    return {"undone": call.rest.lower()}


async def transfers(call: ControlRequest) -> Any:
    """List all transfers."""
    return [e for e in call.state.edits.events if e["kind"] == PAID]


def _path(call: ControlRequest, name: str) -> None:
    if call.rest != name:
        raise ControlRefused(f"POST /_sim/chain/{name}", 404)


def _address(value: Any, name: str) -> str:
    if not isinstance(value, str) or not _ADDRESS.fullmatch(value):
        raise ControlRefused(f"{name} must be an address: 0x and 40 hexadecimal digits")
    return value.lower()


def _amount(value: Any) -> int:
    """Return the amount in units of 0.000001 USDC."""
    try:
        usd = Decimal(str(value)) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
    except InvalidOperation:
        usd = None
    if usd is None or not usd.is_finite() or not 0 < usd <= MOST_USD or usd != round(usd, 6):
        raise ControlRefused(f"amount_usd must be a number above 0, at most {MOST_USD}, with at most 6 decimals")
    return int(usd * 10**6)


FAUCET: dict[tuple[str, str], Command] = {
    ("GET", "chain"): transfers,
    ("POST", "chain"): transfer,
    ("DELETE", "chain"): undo,
}
