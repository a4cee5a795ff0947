"""A JSON-RPC server on loopback whose every answer is scripted."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

PIECE = b" " * 65_536


@dataclass
class RpcServer:
    """Where it listens, and what it was asked: the calls, and their paths with queries."""

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


def endless(sent: list[int]) -> web.StreamResponse:
    """A body without end; how many bytes the server could send is appended to `sent` when the client goes."""
    return _Endless(sent)


class _Endless(web.StreamResponse):
    def __init__(self, sent: list[int]) -> None:
        super().__init__()
        self.sent = sent

    async def write_eof(self, data: bytes = b"") -> None:
        total = 0
        try:
            while total < 2**28:
                await self.write(PIECE)
                total += len(PIECE)
        except ConnectionError:
            self.sent.append(total)


async def hang(call: dict[str, Any]) -> None:
    await asyncio.Event().wait()


@asynccontextmanager
async def rpc_server(reply: Callable[[dict[str, Any]], Any]) -> AsyncIterator[RpcServer]:
    """A running server. `reply` gives the answer to a call: an object, or a whole response; None hangs up."""
    server = RpcServer()

    async def handle(request: web.Request) -> web.StreamResponse:
        call = await request.json()
        server.asked.append(call)
        server.paths.append(request.path_qs)
        answer = reply(call)
        if asyncio.iscoroutine(answer):
            answer = await answer
        if answer is None and request.transport is not None:
            request.transport.abort()
        return answer if isinstance(answer, web.StreamResponse) else web.json_response(answer)

    app = web.Application()
    app.router.add_post("/{tail:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v2/SECRETKEY?tier=1"
    try:
        yield server
    finally:
        await runner.cleanup()
