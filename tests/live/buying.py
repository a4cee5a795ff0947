"""Buying credits from a running program on the simulated chain, and reading what its receipts say."""

import base64
import json
from typing import Any

import httpx

from tests.live.processes import Program, control


def bought(at: Program, world: str, usd: int = 2, *, speed: float = 30) -> str:
    """A token with 50 credits for each dollar. The world's clock runs so fast for as long as that takes."""
    with httpx.Client(base_url=at.url, timeout=30, trust_env=False) as client, control(world) as sim:
        quote = client.post("/api/payment/buy-credits", json={"amount_usd": usd}).json()
        sim.put("clock", {"speed": speed})
        tx_hash = sim.paid(quote["wallet"], usd)
        answer = client.post("/api/payment/confirm", json={"tx_hash": tx_hash, "nonce": quote["memo"]})
        sim.put("clock", {"speed": 1})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["token"])


def read_core(jws: str) -> dict[str, Any]:
    """What a receipt says, without a check of its signature."""
    part = jws.split(".")[1]
    core: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return core
