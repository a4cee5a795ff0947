"""A whole service that sells one report: real ledger file, real keys, real receipts, REST and MCP before it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx
from pydantic import Field

from rest_bridge.face import Face
from rest_bridge.receipts import pages
from tests.engine.parts import POOR, RICH, START
from tests.engine.toy import FIRST, SECOND, broken, liar, number, premium_report
from tests.internet import Internet
from tools.payment.no_charge_stats import payment_no_charge_stats
from tools.payment.receipt_verify import receipt_verify
from toolserver.access import Addresses
from toolserver.answers import Answers
from toolserver.billing.counter import Counter
from toolserver.billing.evidence import Evidence
from toolserver.billing.idempotency import DurableIdempotency
from toolserver.billing.ledger import LedgerOwner
from toolserver.billing.sqlite import SqliteLedger
from toolserver.clock import ManualClock
from toolserver.context import ToolContext
from toolserver.documents import Facts
from toolserver.host import Host
from toolserver.limits import FreeLimits
from toolserver.metrics import Metrics
from toolserver.payloads import TopLevel
from toolserver.pipeline import Pipeline
from toolserver.protocol.endpoint import McpEndpoint
from toolserver.registry import Registry, Tier, operation_of, tool
from toolserver.storage.durable import durable
from toolserver.upstream.cache import SourceCache
from toolserver.upstream.reader import Reader

BASE_URL = "https://data.example"
DOWN = httpx.Response(500)
BEARER = {"authorization": f"Bearer {RICH}"}


class Nothing(TopLevel):
    found: int = Field(ge=0)
    notes: dict[str, str]


@tool(path="/api/pro/broken", title="Broken", tier=Tier.PREMIUM, credits=3, ttl_s=60)
async def premium_broken(ctx: ToolContext) -> Nothing:
    """Fails in a way its author did not think of, after the credits were set aside; for tests only."""
    raise RuntimeError("inside")


@tool(path="/api/pro/liar", title="Liar", tier=Tier.PREMIUM, credits=3, ttl_s=60)
async def premium_liar(ctx: ToolContext) -> Nothing:
    """Returns what its own schema forbids, after the credits were set aside; for tests only."""
    return Nothing.model_construct(found=-1, notes={})


@tool(path="/api/pro/void", title="Void", tier=Tier.PREMIUM, credits=3, ttl_s=60)
async def premium_void(ctx: ToolContext) -> Nothing:
    """Finds nothing worth paying for, which it says, so that the call is free of charge; for tests only."""
    ctx.mark_empty()
    return Nothing(found=0, notes={})


TOOLS = (
    *(number, premium_report, broken, liar, premium_broken, premium_liar, premium_void),
    *(payment_no_charge_stats, receipt_verify),
)


@dataclass
class Shop:
    """The parts a test touches."""

    evidence: Evidence
    ledger: LedgerOwner
    pipeline: Pipeline
    registry: Registry
    internet: Internet
    clock: ManualClock
    rest: httpx.AsyncClient
    mcp: httpx.AsyncClient
    folder: Path

    async def buy(self, path: str = "/api/pro/report", **headers: str) -> httpx.Response:
        """A paid call over REST."""
        return await self.rest.get(path, headers=BEARER | {k.replace("_", "-"): v for k, v in headers.items()})

    async def tell(self, name: str, arguments: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
        """The result of a call over MCP."""
        params = {"name": name, "arguments": arguments or {}} | ({"_meta": meta} if meta else {})
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer = await self.mcp.post("/api/mcp?toolset=all", json=message, headers=BEARER)
        return answer.json()["result"]

    async def verify(self, receipt: Any, **more: Any) -> dict[str, Any]:
        """The service's own verdict."""
        answer = await self.rest.post("/api/receipt/verify", json={"receipt": receipt, **more})
        assert answer.status_code == 200, answer.text
        return answer.json()


@asynccontextmanager
async def shop(
    folder: Path, *, clock: ManualClock | None = None, base_url: str = BASE_URL, limited: bool = False
) -> AsyncIterator[Shop]:
    """An open shop; opened again in the same folder, it has kept its books."""
    clock = clock or ManualClock(START)
    internet = Internet()
    internet.serves(FIRST, {"value": 1})
    internet.serves(SECOND, {"value": 2})
    registry = Registry([operation_of(function) for function in TOOLS])
    facts = Facts(base_url=base_url, source="data.example")
    reader = Reader(clock=clock, keys={}, user_agent="test", transport=internet.transport)
    async with durable(folder / "ledger.sqlite3") as file, anyio.create_task_group() as tasks:
        ledger = SqliteLedger(file, clock)
        await ledger.mint(RICH, 100, cause="test")
        await ledger.mint(POOR, 1, cause="poor")
        evidence = Evidence(file, folder, clock=clock, base_url=base_url, service=facts.source)
        answers = Answers(
            SourceCache(reader, clock=clock, tasks=tasks),
            clock=clock,
            tasks=tasks,
            source=facts.source,
            host=Host(clock, folder, evidence=evidence),
        )
        pipeline = Pipeline(
            answers,
            ledger=ledger,
            limits=FreeLimits(daily=100_000, spacing_s=30, monotonic=clock.monotonic, enabled=limited),
            idempotency=DurableIdempotency(file, clock),
            metrics=Metrics(),
            receipts=evidence,
            counter=Counter(ledger, evidence, clock),
        )
        addresses = Addresses([])
        written = pages(evidence, limits=pipeline.personal, addresses=addresses)
        face = Face(registry, pipeline, facts=facts, clock=clock, addresses=addresses, pages=written)
        mcp = McpEndpoint(
            registry, pipeline, tasks=tasks, addresses=addresses, base_url=base_url, source_name=facts.source
        )
        async with (
            httpx.AsyncClient(transport=httpx.ASGITransport(app=face), base_url=base_url) as rest_client,
            httpx.AsyncClient(transport=httpx.ASGITransport(app=mcp), base_url=base_url) as mcp_client,
        ):
            yield Shop(evidence, ledger, pipeline, registry, internet, clock, rest_client, mcp_client, folder)
        tasks.cancel_scope.cancel()
    await reader.aclose()
