"""Simulate Etherscan's gas oracle on the wire: fractional strings, and errors with status 200."""

from collections.abc import Mapping
from typing import Any

from tools.simulated.ethereum_chain import GWEI, base_fee, head, tip
from toolserver.world.model import Ask, Reply, World, expects, serves


def _not_ok(text: str) -> Reply:
    return Reply.json({"status": "0", "message": "NOTOK", "result": text})


FORMS = {
    "auth": _not_ok("Invalid API Key (#err2)|sim"),
    "limited": _not_ok("Max calls per sec rate limit reached (3/sec)"),
    "error200": _not_ok("You are using a deprecated V1 endpoint, switch to Etherscan API V2"),
}


@serves("Etherscan.gas_oracle", "api.etherscan.io", "/v2/api", forms=FORMS)
def oracle(world: World, ask: Ask) -> Reply:
    if not ask.key_ok(ask.params.get("apikey")):
        return _not_ok("Missing/Invalid API Key")
    if (ask.params.get("module"), ask.params.get("action")) != ("gastracker", "gasoracle"):
        return _not_ok("Error! Missing Or invalid Action name")
    newest = head(world)
    base = base_fee(world, newest + 1)
    safe, proposed, fast = ((base + tip(world, newest, q)) / GWEI for q in (10, 50, 90))
    result = {
        "LastBlock": str(newest),
        "SafeGasPrice": f"{safe:.9f}",
        "ProposeGasPrice": f"{proposed:.9f}",
        "FastGasPrice": f"{fast:.9f}",
        "suggestBaseFee": f"{base / GWEI:.9f}",
        "gasUsedRatio": ",".join(f"{world.u('etherscan.used', newest - i):.6f}" for i in range(5)),
    }
    return Reply.json({"status": "1", "message": "OK", "result": result})


@oracle.form("drift")
def whole_numbers(world: World, ask: Ask) -> Reply:
    """Return the form of earlier years: whole gwei, without the base fee."""
    newest = head(world)
    base = base_fee(world, newest + 1)
    prices = [str(max(1, round((base + tip(world, newest, q)) / GWEI))) for q in (10, 50, 90)]
    names = ("SafeGasPrice", "ProposeGasPrice", "FastGasPrice")
    result = {"LastBlock": str(newest), **dict(zip(names, prices, strict=True))}
    return Reply.json({"status": "1", "message": "OK", "result": result})


@expects("gas")
def expected(world: World, params: Mapping[str, str]) -> dict[str, Any]:
    """Return the values that `/api/gas` must have at this instant when a node answers."""
    newest = head(world)
    base = base_fee(world, newest + 1)
    said = {"block": newest, "base_fee": round(base / GWEI, 4), "method": "fee_history", "unit": "gwei"}
    numbers = [n for n in range(newest - 19, newest + 1) if n % 17]  # every seventeenth block is empty
    for name, percentile in (("low", 10), ("standard", 50), ("fast", 90)):
        tips = sorted(tip(world, n, percentile) for n in numbers)
        middle = (tips[(len(tips) - 1) // 2] + tips[len(tips) // 2]) / 2
        said[name] = round((base + middle) / GWEI, 4)
    return said
