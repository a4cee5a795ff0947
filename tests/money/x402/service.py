"""Both faces of a service that takes x402 payments."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from rest_bridge.face import Face
from tests.arranged import FACTS, client_of
from tests.money.x402.parts import REGISTRY, TERMS, Chain, Desk, Script, desk

SERVED = REGISTRY


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


@asynccontextmanager
async def doors(
    folder: Path,
    *,
    script: Script | None = None,
    chain: Chain | None = None,
    limited: bool = False,
    **parts: Any,
) -> AsyncIterator[Doors]:
    """A running service on the desk; `parts` are those of `desk`."""
    async with desk(folder, script=script, chain=chain, limits=limited, **parts) as d:
        face = d.engine.service.web_app()
        async with client_of(face, d.settling.terms.base_url) as client:
            yield Doors(client, client, face, d)


__all__ = ["FACTS", "SERVED", "TERMS", "Doors", "doors"]
