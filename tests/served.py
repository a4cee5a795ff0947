"""The whole service in this process, REST and MCP and documents, on the simulated world: no socket, no real time."""

import functools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from rest_bridge.face import Face
from tests.engine.parts import START, Engine, engine
from tests.internet import Internet
from toolserver.access import Addresses
from toolserver.clock import ManualClock
from toolserver.documents import Document, Facts
from toolserver.examples import load_world
from toolserver.host import Host
from toolserver.protocol.endpoint import McpEndpoint
from toolserver.registry import Registry
from toolserver.settings import Settings
from toolserver.site import pages_of, written
from toolserver.usage import Usage
from toolserver.world.model import World

FACTS = Facts(base_url="https://data.example", source="data.example")
VIA = "http://world.example"


@functools.cache
def all_tools() -> Registry:
    """Every tool there is, loaded once."""
    load_world()
    return Registry.load("tools")


@functools.cache
def documents() -> dict[str, Document]:
    """The documents about them, made once."""
    return written(all_tools(), FACTS)


class Upstreams(Internet):
    """The simulated world as the service reaches it by `upstream.via`. While `down`, nothing answers."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(lambda: World(1, clock.time()))
        self.down = False

    async def _handle(self, request: httpx.Request) -> httpx.Response:
        if self.down:
            self.asked.append(request)
            raise httpx.ConnectError("arranged", request=request)
        kind, _, rest = request.url.raw_path.decode().removeprefix("/").partition("/")
        if kind == "probe":
            return httpx.Response(200, json={"latency_ms": 20})
        request.url = httpx.URL(f"https://{rest}")
        return await super()._handle(request)


@dataclass
class Served:
    """What a test touches."""

    client: httpx.AsyncClient
    engine: Engine
    upstreams: Upstreams

    async def get(self, name: str, query: str = "", **headers: str) -> httpx.Response:
        """A call of a free endpoint by its short name."""
        return await self.client.get(f"/api/{name}{'?' if query else ''}{query}", headers=headers)

    async def rpc(self, method: str, params: dict[str, Any] | None = None, query: str = "") -> Any:
        """The result of an MCP request."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
        answer = await self.client.post(f"/api/mcp{query}", json=message)
        return answer.json()["result"]


@asynccontextmanager
async def served(
    registry: Registry | None = None, *, limits: bool = False, peer: str = "192.0.2.1", facts: Facts = FACTS
) -> AsyncIterator[Served]:
    """A running service with all tools, or those of a registry, and a client of it."""
    registry = registry or all_tools()
    clock = ManualClock(START)
    upstreams, addresses = Upstreams(clock), Addresses(())
    async with engine(registry, internet=upstreams, clock=clock, limits=limits, via=VIA) as e:
        e.answers._host = Host(clock, Path(), probe_targets=Settings().probes.targets, usage=Usage(clock.now))
        e.answers._source = facts.source
        mcp = McpEndpoint(
            registry,
            e.pipeline,
            tasks=e.tasks,
            addresses=addresses,
            base_url=facts.base_url,
            source_name=facts.source,
        )
        face = Face(
            registry,
            e.pipeline,
            facts=facts,
            clock=clock,
            addresses=addresses,
            pages=pages_of(registry, facts, clock, lambda: {"storage": True}),
            mounted={"/api/mcp": mcp},
        )
        transport = httpx.ASGITransport(app=face, client=(peer, 1))
        async with httpx.AsyncClient(transport=transport, base_url=facts.base_url) as client:
            client.headers["accept-encoding"] = "identity"
            yield Served(client, e, upstreams)
