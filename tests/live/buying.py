"""Buying credits from a running program on the simulated chain."""

import httpx

from tests.live.processes import Program, control


def bought(at: Program, world: str, usd: int = 2) -> str:
    """A token with 50 credits for each dollar. The world's clock runs fast for as long as that takes."""
    with httpx.Client(base_url=at.url, timeout=30, trust_env=False) as client, control(world) as sim:
        quote = client.post("/api/payment/buy-credits", json={"amount_usd": usd}).json()
        sim.put("clock", {"speed": 30})
        tx_hash = sim.paid(quote["wallet"], usd)
        answer = client.post("/api/payment/confirm", json={"tx_hash": tx_hash, "nonce": quote["memo"]})
        sim.put("clock", {"speed": 1})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["token"])
