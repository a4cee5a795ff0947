"""The simulated chain with signed payments on it, and a facilitator that makes them, both on one port.

Each request that comes in and each answer that goes out is a stage, of which a test is told. A payment is made when the
facilitator is asked, some seconds later, or never, as it was arranged for it.
"""

import hashlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.money.x402.parts import PAY_TO
from tools.simulated.base_chain import answer, block_at, block_time, head
from toolserver.money.purchases.matching import AUTHORIZATION_USED
from toolserver.money.purchases.units import NETWORK, USDC
from toolserver.money.x402.chain_lookup import STATE_SELECTOR
from toolserver.world.model import Edits, World

Stage = Callable[[str], Awaitable[None]]
USED = f"0x{AUTHORIZATION_USED.hex()}"
NEVER = None


def word(address: str) -> str:
    """An address as a topic."""
    return f"0x{address[2:].lower():0>64}"


@dataclass
class PayableChain:
    """Blocks by the clock, which is this machine's, set back; `delays` says when payments are made, by nonce."""

    offset_s: float = 0.0
    still: float | None = None  # if set, the clock that is set back stands still there
    url: str = ""
    events: list[dict[str, Any]] = field(default_factory=list)
    delays: dict[str, float | None] = field(default_factory=dict)
    stage: Stage | None = None
    submitted: list[str] = field(default_factory=list)

    @property
    def now(self) -> float:
        return (time.time() if self.still is None else self.still) + self.offset_s

    @property
    def world(self) -> World:
        return World(1, self.now, Edits(events=self.events))

    def made(self) -> dict[str, dict[str, Any]]:
        """The payments that are in a block by now, by nonce."""
        return {e["nonce"]: e for e in self.events if block_at(e["at"]) <= head(self.world)}

    def undo(self, blocks: int) -> list[str]:
        """Take everything out of the last blocks, as a reorganisation does; the nonces of what is gone."""
        first = head(self.world) - blocks + 1
        gone = [e for e in self.events if block_at(e["at"]) >= first]
        self.events = [e for e in self.events if e not in gone]
        return [str(e["nonce"]) for e in gone]

    # --- the facilitator

    def verify(self, said: dict[str, Any]) -> dict[str, Any]:
        given = said["paymentPayload"]["payload"]["authorization"]
        if given["nonce"] in self.made():
            return {"isValid": False, "invalidReason": "invalid_exact_evm_nonce_already_used"}
        if int(given["validBefore"]) < self.now:
            return {"isValid": False, "invalidReason": "invalid_exact_evm_payload_authorization_valid_before"}
        return {"isValid": True, "payer": given["from"]}

    def settle(self, said: dict[str, Any]) -> dict[str, Any]:
        given = said["paymentPayload"]["payload"]["authorization"]
        nonce, failed = given["nonce"], {"success": False, "network": NETWORK, "transaction": ""}
        self.submitted.append(nonce)
        known = next((e for e in self.events if e["nonce"] == nonce), None)
        if known is None and self.delays.get(nonce, 0.0) is not NEVER:
            known = self.make(given)
        if known is None:
            return failed | {"errorReason": "settlement_pending"}
        if block_at(known["at"]) > head(self.world):
            return failed | {"errorReason": "settlement_pending", "transaction": known["hash"]}
        if self.submitted.count(nonce) > 1:
            return failed | {"errorReason": "invalid_exact_evm_nonce_already_used"}
        return {"success": True, "transaction": known["hash"], "network": NETWORK, "payer": given["from"]}

    def make(self, given: dict[str, Any]) -> dict[str, Any]:
        """Put a payment into a block: the newest one, or a later one."""
        delay = self.delays.get(given["nonce"], 0.0) or 0.0
        event = {
            "kind": "base_transfer",
            "at": block_time(head(self.world)) + delay,
            "hash": f"0x{hashlib.sha256(given['nonce'].encode()).hexdigest()}",
            "from": given["from"].lower(),
            "to": f"0x{PAY_TO.hex()}",
            "amount": int(given["value"]),
            "nonce": given["nonce"],
        }
        self.events.append(event)
        return event

    # --- the JSON-RPC server

    def call(self, call: dict[str, Any]) -> dict[str, Any]:
        """The answer to one call. What the simulated chain knows nothing of is added: authorisations."""
        name, given = call["method"], call.get("params") or []
        if name == "eth_getLogs":
            return {"jsonrpc": "2.0", "id": call["id"], "result": self._logs(given[0])}
        if name == "eth_call" and str(given[0].get("data", "")).startswith(f"0x{STATE_SELECTOR.hex()}"):
            used = f"0x{given[0]['data'][-64:]}" in self.made()
            return {"jsonrpc": "2.0", "id": call["id"], "result": f"0x{int(used):064x}"}
        said = answer(self.world, call)
        if name == "eth_getTransactionReceipt" and said.get("result"):
            paid = next(e for e in self.events if e["hash"] == said["result"]["transactionHash"])
            said["result"]["logs"].append(self._used(paid, said["result"]))
        return said

    def _logs(self, wanted: dict[str, Any]) -> list[dict[str, Any]]:
        first, last = int(wanted["fromBlock"], 16), int(wanted["toBlock"], 16)
        _, payer, nonce = wanted["topics"]
        found = [e for e in self.made().values() if (e["nonce"], word(e["from"])) == (nonce, payer)]
        found = [e for e in found if first <= block_at(e["at"]) <= last]
        receipts = [self.call({"method": "eth_getTransactionReceipt", "params": [e["hash"]], "id": 1}) for e in found]
        return [receipt["result"]["logs"][-1] for receipt in receipts]

    def _used(self, paid: dict[str, Any], receipt: dict[str, Any]) -> dict[str, Any]:
        entry = receipt["logs"][0] | {"address": f"0x{USDC.hex()}", "data": "0x", "logIndex": "0x7f"}
        return entry | {"topics": [USED, word(paid["from"]), paid["nonce"]]}

    # --- the port

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else {}
        name = str(body.get("method") or request.path.rpartition("/")[2])
        await self._pass(f"{name} asked")
        said: Any
        if name == "supported":
            said = {"kinds": [{"x402Version": 2, "scheme": "exact", "network": NETWORK}], "extensions": []}
        elif name in ("verify", "settle"):
            said = self.verify(body) if name == "verify" else self.settle(body)
        else:
            said = self.call(body)
        await self._pass(f"{name} answered")
        return web.json_response(said)

    async def _pass(self, name: str) -> None:
        if self.stage is not None:
            await self.stage(name)


@asynccontextmanager
async def payable_chain(**given: Any) -> AsyncIterator[PayableChain]:
    """A running chain."""
    chain = PayableChain(**given)
    app = web.Application(client_max_size=2**17)
    app.router.add_route("*", "/{tail:.*}", chain.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        chain.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield chain
    finally:
        await runner.cleanup()
