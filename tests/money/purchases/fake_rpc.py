"""A JSON-RPC server whose answers are right unless a test makes them wrong: those of a chain of its own, or of another
server it stands before."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientSession, web

from tests.money.purchases.parts import NOW
from tools.simulated.base_chain import answer, block_at
from toolserver.world.model import Edits, World

Wrong = Callable[[dict[str, Any], dict[str, Any]], Any]  # (call, right answer) -> answer, a whole response, None: reset


@dataclass
class Fake:
    """The chain it tells of, and what is wrong with it. `before`: the server whose answers it passes on."""

    url: str = ""
    before: str | None = None
    now: float = NOW
    events: list[dict[str, Any]] = field(default_factory=list)
    wrong: Wrong | None = None
    asked: list[str] = field(default_factory=list)

    def pay(
        self, to: bytes, usd: float, tx: bytes, *, at: float | None = None, payer: bytes = bytes([0xAA]) * 20
    ) -> int:
        """A transfer; the number of its block."""
        at = self.now if at is None else at
        amount = round(usd * 10**6)
        self.events.append(
            {
                "kind": "base_transfer",
                "at": at,
                "hash": f"0x{tx.hex()}",
                "from": f"0x{payer.hex()}",
                "to": f"0x{to.hex()}",
            }
            | {"amount": amount}
        )
        return block_at(at)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        call = await request.json()
        self.asked.append(call["method"])
        said = await self.right(call)
        if self.wrong is not None:
            said = self.wrong(call, said)
            if asyncio.iscoroutine(said):
                said = await said
        if said is None and request.transport is not None:
            request.transport.abort()
        return said if isinstance(said, web.StreamResponse) else web.json_response(said)

    async def right(self, call: dict[str, Any]) -> dict[str, Any]:
        if self.before is None:
            return answer(World(1, self.now, Edits(events=self.events)), call)
        async with ClientSession() as session, session.post(self.before, json=call) as came:
            said: dict[str, Any] = await came.json()
            return said


@asynccontextmanager
async def fake_rpc(**given: Any) -> AsyncIterator[Fake]:
    """A running server."""
    fake = Fake(**given)
    app = web.Application(client_max_size=2**16)
    app.router.add_post("/{tail:.*}", fake.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v2/SECRETKEY"
    try:
        yield fake
    finally:
        await runner.cleanup()
