"""The whole service as it is started, selling the simulated world: real ledger, keys and receipts, no socket.

Its clock is moved by hand, so pacing costs no real time. Nothing is kept warm in the background.
"""

import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from tests.served import all_tools
from tests.tools.faulty.upstreams import EDITS, Pages, Upstreams
from toolserver.app import Service, ServiceParts
from toolserver.clock import ManualClock
from toolserver.registry.registry import Operation
from toolserver.settings import Settings
from toolserver.settings import UpstreamSettings as Via
from toolserver.world.model import World

T = 1_800_000_000  # a Friday morning; the world stands still for the minute that begins here
WORLD = World(1, T, EDITS)
BASE_URL = "https://data.example"
TOKEN, FUNDS = "svc_live_" + "5e" * 32, 1000
BEARER = {"authorization": f"Bearer {TOKEN}"}
PAGES = Pages()


class Recorded(Upstreams):
    """The simulated upstreams, and every body they gave. `edit` changes the body that answers a request."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock, PAGES)
        self.bodies: list[tuple[str, bytes, bytes]] = []
        self.edit: Callable[[httpx.Request, bytes], bytes] | None = None

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        response = await super()._answer(request)
        body = await response.aread()
        if self.edit is not None:
            body = self.edit(request, body)
            response = httpx.Response(response.status_code, headers=_without_length(response.headers), content=body)
        self.bodies.append((str(request.url).partition("/u/")[2], request.content, body))
        return response

    def body(self, part: str) -> bytes:
        """The body of the only exchange with that in its address."""
        (found,) = [body for url, _, body in self.bodies if part in url]
        return found

    def calls(self, method: str) -> list[Any]:
        """What Ethereum nodes answered to a method."""
        return [json.loads(body)["result"] for _, asked, body in self.bodies if f'"{method}"'.encode() in asked]

    def all_down(self) -> None:
        self.state.faults.add({"match": "*", "kind": "dns"}, self.state.world())


def _without_length(headers: httpx.Headers) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() != "content-length"}


@dataclass
class Store:
    """What a test touches."""

    service: Service
    client: httpx.AsyncClient
    upstreams: Recorded
    clock: ManualClock

    async def buy(self, name: str, query: str = "", **headers: str) -> httpx.Response:
        """A paid call by the short name of its endpoint."""
        return await self.client.get(f"/api/pro/{name}{'?' if query else ''}{query}", headers=BEARER | headers)

    async def tell(self, tool: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The result of the same call over MCP."""
        params = {"name": tool, "arguments": dict(arguments or {})}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer = await self.client.post("/api/mcp?toolset=all", json=message, headers=BEARER)
        result: dict[str, Any] = answer.json()["result"]
        return result

    @property
    def tools(self) -> list[Operation]:
        """Every tool that this service offers."""
        return self.service.registry.chosen(toolset="all")

    async def example(self, tool: str) -> dict[str, Any]:
        """Arguments with which a call is valid, as the refusal of a wrong one shows them."""
        refusal = await self.tell(tool, {"no_such_argument": 1})
        arguments: dict[str, Any] = json.loads(refusal["content"][0]["text"])["example"]["arguments"]
        return arguments

    async def send(self, tool: Operation, arguments: Mapping[str, Any], **headers: str) -> httpx.Response:
        """The same call over REST, with the arguments where they go."""
        path = tool.path.format_map(arguments)
        rest = {name: value for name, value in arguments.items() if f"{{{name}}}" not in tool.path}
        where: dict[str, Any] = {"json": rest} if tool.method in ("POST", "PATCH") else {"params": rest}
        return await self.client.request(tool.method, path, headers=headers, **where)

    async def balance(self) -> int:
        return await self.service.money.ledger.balance(TOKEN)

    async def uncharged(self) -> dict[str, int]:
        """The public account of the day: how many calls were free, by reason."""
        self.clock.advance(31)  # it is kept for half a minute
        found: dict[str, int] = (await self.client.get("/api/payment/no-charge-stats")).json()["by_reason"]
        return found

    async def verified(self, answer: httpx.Response) -> dict[str, Any]:
        """What the receipt in the headers says, once the service's own verifier has found it genuine."""
        given = {"receipt": answer.headers["x-service-receipt"]}
        verdict = (await self.client.post("/api/receipt/verify", json=given)).json()
        assert verdict["valid"] is True, verdict
        core: dict[str, Any] = verdict["core"]
        return core

    def down(self, *names: str, kind: str = "dns", **parameters: Any) -> None:
        """From now on these sources are at fault."""
        for name in names:
            self.upstreams.fault(name, kind, **parameters)


@asynccontextmanager
async def store(folder: Path, **settings: Any) -> AsyncIterator[Store]:
    """An open store whose only customer has a thousand credits."""
    clock = ManualClock(datetime.fromtimestamp(T, UTC))
    chosen = Settings(data_dir=folder, upstream=Via(via="http://world.test"), **settings)
    upstreams = Recorded(clock)
    logging.disable(logging.CRITICAL)
    parts = ServiceParts(
        base_url=BASE_URL, registry=all_tools(), clock=clock, transport=upstreams.transport, background=False
    )
    async with Service.build(chosen, parts) as service:
        await service.money.ledger.mint(TOKEN, FUNDS, cause="test")
        transport = httpx.ASGITransport(app=service.web_app())
        async with httpx.AsyncClient(transport=transport, base_url=BASE_URL) as client:
            client.headers["accept-encoding"] = "identity"
            yield Store(service, client, upstreams, clock)
    logging.disable(logging.NOTSET)
