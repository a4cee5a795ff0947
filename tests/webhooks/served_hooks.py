"""The whole service with webhooks to loopback, REST and MCP, on the simulated world; deliveries use real sockets."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from tests.calls.parts import POOR, RICH, START
from tests.served import FACTS, VIA, Upstreams, all_tools
from toolserver.app import Service, ServiceParts
from toolserver.clock import ManualClock
from toolserver.serving.money import memory_money
from toolserver.settings import LimitSettings, McpSettings, Settings, UpstreamSettings, WebhookSettings

BEARER = {"authorization": f"Bearer {RICH}"}


@dataclass
class HookedService:
    """What a test touches."""

    client: httpx.AsyncClient
    service: Service
    clock: ManualClock

    async def call(self, method: str, path: str, token: str | None = RICH, **body: Any) -> httpx.Response:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        return await self.client.request(method, path, headers=headers, **({"json": body} if body else {}))

    async def subscribe(self, url: str, **more: Any) -> dict[str, Any]:
        answer = await self.call("POST", "/api/pro/subscribe", endpoint="agent-context", webhook_url=url, **more)
        assert answer.status_code == 201, answer.text
        return answer.json()

    async def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        params = {"name": name, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer = await self.client.post("/api/mcp?toolset=all", json=message, headers=BEARER)
        return answer.json()["result"]


@asynccontextmanager
async def hooked(*, allow_loopback: bool = True, limited: bool = False, **mcp: Any) -> AsyncIterator[HookedService]:
    """A running service whose two tokens have a hundred credits and none. `mcp` are settings of MCP."""
    clock = ManualClock(START)
    upstreams, money = Upstreams(clock), memory_money(clock)
    money.ledger.fund(RICH, 100)
    money.ledger.fund(POOR, 0)
    settings = Settings(
        upstream=UpstreamSettings(via=VIA),
        limits=LimitSettings(enabled=limited),
        mcp=McpSettings(**mcp),
        webhooks=WebhookSettings(allow_loopback=allow_loopback),
    )
    parts = ServiceParts(
        facts=FACTS,
        registry=all_tools(),
        clock=clock,
        transport=upstreams.transport,
        money=money,
        in_memory=True,
        background=False,
    )
    async with Service.build(settings, parts) as service:
        transport = httpx.ASGITransport(app=service.web_app(), client=("192.0.2.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url=FACTS.base_url) as client:
            yield HookedService(client, service, clock)
