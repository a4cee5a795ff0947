"""Both faces of a service that takes x402 payments."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx

from rest_bridge.face import Face
from rest_bridge.x402 import pages
from tests.engine.toy import number, premium_report
from tests.x402.parts import BASE_URL, TERMS, Chain, Desk, Script, desk, premium_broken, premium_void
from tools.payment.balance import payment_balance
from tools.payment.topup import payment_topup
from toolserver.access import Addresses
from toolserver.documents import Facts
from toolserver.host import Host
from toolserver.idempotency import MemoryIdempotency
from toolserver.payments.cashier import Closed
from toolserver.pipeline import Pipeline
from toolserver.protocol.endpoint import McpEndpoint
from toolserver.registry import Registry, operation_of

FACTS = Facts(BASE_URL, "data.example")
TOOLS = (number, premium_report, premium_broken, premium_void, payment_topup, payment_balance)
SERVED = Registry([operation_of(function) for function in TOOLS])


@dataclass
class Doors:
    """Both faces, and what is behind them."""

    rest: httpx.AsyncClient
    mcp: httpx.AsyncClient
    face: Face
    desk: Desk

    async def buy(self, payment: str | None, path: str = "/api/pro/report", **headers: str) -> httpx.Response:
        """A call over REST, with a payment or without."""
        return await self.rest.get(path, headers=headers | ({"payment-signature": payment} if payment else {}))

    async def topup(self, payment: str | None, usd: Any = 2, **headers: str) -> httpx.Response:
        given = headers | ({"payment-signature": payment} if payment else {})
        return await self.rest.post("/api/payment/topup", json={"amount_usd": usd}, headers=given)

    async def tell(self, name: str, arguments: Any = None, *, token: str | None = None, **meta: Any) -> Any:
        """The result of a call over MCP."""
        params = {"name": name, "arguments": arguments or {}} | ({"_meta": meta} if meta else {})
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {"authorization": f"Bearer {token}"} if token else {}
        answer = await self.mcp.post("/api/mcp?toolset=all", json=message, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()["result"]


@dataclass(slots=True)
class Paid(Host):
    """A host where top-ups are sold."""

    x402: Any = None


@asynccontextmanager
async def doors(
    folder: Path,
    *,
    script: Script | None = None,
    chain: Chain | None = None,
    limited: bool = False,
    on: bool = True,
    **parts: Any,
) -> AsyncIterator[Doors]:
    addresses = Addresses([])
    async with (
        desk(folder, script=script, chain=chain, limits=limited, **parts) as d,
        anyio.create_task_group() as tasks,
    ):
        e = d.engine
        e.answers._host = Paid(d.clock, folder, payments=Closed(d.ledger), x402=d.topups if on else None)
        pipeline = Pipeline(
            e.answers,
            ledger=d.ledger,
            limits=e.limits,
            idempotency=MemoryIdempotency(d.clock),
            metrics=e.pipeline.metrics,
            receipts=d.evidence,
            x402=d.exact if on else None,
        )
        found = pages(d.settling.terms, SERVED) if on else {}
        facts = Facts(d.settling.terms.base_url, "data.example")
        face = Face(SERVED, pipeline, facts=facts, clock=d.clock, addresses=addresses, pages=found)
        mcp = McpEndpoint(
            SERVED, pipeline, tasks=tasks, addresses=addresses, base_url=facts.base_url, source_name="data.example"
        )
        async with (
            httpx.AsyncClient(transport=httpx.ASGITransport(app=face), base_url=facts.base_url) as rest,
            httpx.AsyncClient(transport=httpx.ASGITransport(app=mcp), base_url=facts.base_url) as over_mcp,
        ):
            yield Doors(rest, over_mcp, face, d)
        tasks.cancel_scope.cancel()


__all__ = ["FACTS", "SERVED", "TERMS", "Doors", "doors"]
