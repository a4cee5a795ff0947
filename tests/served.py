"""Serve the whole service in this process (REST, MCP and documents) on the simulated world: no socket, no real time."""

import functools
from collections.abc import AsyncIterator, Hashable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.arranged import FACTS, client_of
from tests.calls.parts import START, Engine, engine
from tests.internet import Internet
from toolserver.app import write_site_documents
from toolserver.clock import ManualClock
from toolserver.registry.registry import Registry
from toolserver.registry.site_facts import Document, SiteFacts
from toolserver.settings import UpstreamSettings, WebhookSettings
from toolserver.world.model import World
from toolserver.world.providers import load_providers

VIA = "http://world.example"


@functools.cache
def all_tools() -> Registry:
    """Every tool there is, loaded once."""
    load_providers()
    return Registry.load("tools")


_WRITTEN: dict[Hashable, Mapping[str, Document]] = {}


def write_once(registry: Registry, facts: SiteFacts) -> Mapping[str, Document]:
    """Write each document once for all registries that list the same operations."""
    key = (tuple(registry), facts)
    if key not in _WRITTEN:
        _WRITTEN[key] = write_site_documents(registry, facts)
    return _WRITTEN[key]


def documents() -> Mapping[str, Document]:
    """The documents about all tools."""
    return write_once(all_tools(), FACTS)


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
    registry: Registry | None = None, *, limits: bool = False, peer: str = "192.0.2.1", facts: SiteFacts = FACTS
) -> AsyncIterator[Served]:
    """A running service with all tools, or those of a registry, and a client of it."""
    clock = ManualClock(START)
    upstreams, via = Upstreams(clock), UpstreamSettings(via=VIA)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolserver.app.write_site_documents", write_once)
        async with (
            engine(
                registry or all_tools(),
                internet=upstreams,
                clock=clock,
                limits=limits,
                facts=facts,
                upstream=via,
                webhooks=WebhookSettings(),
            ) as e,
            client_of(e.service.web_app(), facts.base_url, peer=peer) as client,
        ):
            client.headers["accept-encoding"] = "identity"
            yield Served(client, e, upstreams)
