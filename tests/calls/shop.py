"""A whole service that sells one report: real ledger file, real keys, real receipts, REST and MCP before it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from pydantic import Field

from tests.arranged import FACTS, arrange_service, client_of
from tests.calls.parts import POOR, RICH, START
from tests.calls.toy import FIRST, SECOND, broken, liar, number, premium_report
from tests.internet import Internet
from tools.payment.no_charge_stats import payment_no_charge_stats
from tools.payment.receipt_verify import receipt_verify
from toolserver.app import Service
from toolserver.calls.pipeline import Pipeline
from toolserver.clock import ManualClock
from toolserver.context.context import ToolContext
from toolserver.core.models import TopLevel
from toolserver.money.ledger.protocol import LedgerOwner
from toolserver.money.receipts.log import closes_at, hour_at
from toolserver.money.receipts.service import ReceiptService
from toolserver.registry.registry import Registry, Tier, operation_of, tool
from toolserver.registry.site_facts import SiteFacts
from toolserver.serving.money import open_money
from toolserver.settings import LimitSettings, Settings
from toolserver.sql.group_commit import GroupCommit

BASE_URL = FACTS.base_url
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

    evidence: ReceiptService
    ledger: LedgerOwner
    pipeline: Pipeline
    registry: Registry
    internet: Internet
    clock: ManualClock
    rest: httpx.AsyncClient
    mcp: httpx.AsyncClient
    folder: Path
    app: Any  # the service as it is served
    service: Service
    file: GroupCommit

    async def buy(self, path: str = "/api/pro/report", **headers: str) -> httpx.Response:
        """A paid call over REST."""
        return await self.rest.get(path, headers=BEARER | {k.replace("_", "-"): v for k, v in headers.items()})

    async def tell(self, name: str, arguments: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
        """The result of a call over MCP."""
        params = {"name": name, "arguments": arguments or {}} | ({"_meta": meta} if meta else {})
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer = await self.mcp.post("/api/mcp?toolset=all", json=message, headers=BEARER)
        return answer.json()["result"]

    async def close_hour(self) -> None:
        """Let the hour end and the log have it."""
        self.clock.advance(closes_at(hour_at(self.clock.time())) - self.clock.time())
        await self.evidence.log.close_hours()

    async def verify(self, receipt: Any, **more: Any) -> dict[str, Any]:
        """The service's own verdict."""
        answer = await self.rest.post("/api/receipt/verify", json={"receipt": receipt, **more})
        assert answer.status_code == 200, answer.text
        return answer.json()


@asynccontextmanager
async def shop(
    folder: Path,
    *,
    clock: ManualClock | None = None,
    base_url: str = BASE_URL,
    limited: bool = False,
    network: Settings | None = None,
) -> AsyncIterator[Shop]:
    """An open shop; opened again in the same folder, it has kept its books.

    With the settings `network` it asks its sources by real connections, as they say.
    """
    clock, internet = clock or ManualClock(START), Internet()
    internet.serves(FIRST, {"value": 1})
    internet.serves(SECOND, {"value": 2})
    registry, facts = Registry([operation_of(function) for function in TOOLS]), SiteFacts(base_url, FACTS.source)
    settings, limits = network or Settings(data_dir=folder), LimitSettings(enabled=limited)
    transport = internet.transport if network is None else None
    async with open_money(settings, clock=clock, base_url=base_url, service=facts.source) as money:
        await money.own.mint(RICH, 100, cause="test")
        await money.own.mint(POOR, 1, cause="poor")
        async with (
            arrange_service(
                registry,
                clock,
                facts=facts,
                transport=transport,
                money=money,
                data_dir=folder,
                limits=limits,
                upstream=settings.upstream,
                probes=settings.probes,
            ) as service,
            client_of(app := service.web_app(), base_url) as client,
        ):
            assert money.evidence is not None
            assert money.file is not None
            yield Shop(
                evidence=money.evidence,
                ledger=money.own,
                pipeline=service.pipeline,
                registry=registry,
                internet=internet,
                clock=clock,
                rest=client,
                mcp=client,
                folder=folder,
                app=app,
                service=service,
                file=money.file,
            )
