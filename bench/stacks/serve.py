"""Serve one of the peers: `python -m bench.stacks.serve STACK SERVER`, where STACK is bare, fastmcp or sdk.

`bare` sends the bytes of our own answer, including status line and headers, from the file named by REPLY.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio

from toolserver.serving.listen import announce, bind_socket, serve
from toolserver.settings import Settings


def bare() -> Any:
    """Return an ASGI app that only sends prepared bytes."""
    told = json.loads(Path(os.environ["REPLY"]).read_text(encoding="utf-8"))
    headers = [(name.encode(), value.encode()) for name, value in told["headers"]]
    start = {"type": "http.response.start", "status": 200, "headers": headers}
    body = {"type": "http.response.body", "body": told["body"].encode()}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        if scope["method"] == "POST":
            while (await receive()).get("more_body"):
                pass
        await send(start)
        await send(body)

    return app


def payload() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(os.environ["PAYLOAD"]).read_text(encoding="utf-8"))
    return found


def fastmcp() -> Any:
    """Serve FastMCP, stateless JSON, with one tool that returns the same payload."""
    from fastmcp import FastMCP

    answer = payload()
    server: Any = FastMCP("peer")

    @server.tool  # type: ignore[untyped-decorator]
    def btc_price() -> dict[str, Any]:
        """The bitcoin price."""
        return answer

    return server.http_app(path="/api/mcp", json_response=True, stateless_http=True)


def sdk() -> Any:
    """Serve the official SDK's low-level server, stateless JSON, with the same payload as text and as structure."""
    import contextlib

    from mcp import types
    from mcp.server.lowlevel.server import Server
    from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
    from starlette.applications import Starlette
    from starlette.routing import Route

    answer = payload()
    text = json.dumps(answer, separators=(",", ":"))
    tool = types.Tool(name="btc_price", description="The bitcoin price.", input_schema={"type": "object"})

    async def list_tools(ctx: Any, params: Any) -> Any:
        return types.ListToolsResult(tools=[tool])

    async def call_tool(ctx: Any, params: Any) -> Any:
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content=answer)

    server: Any = Server("peer", on_list_tools=list_tools, on_call_tool=call_tool)
    manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)

    @contextlib.asynccontextmanager
    async def lifespan(app: Any) -> Any:
        async with manager.run():
            yield

    return Starlette(routes=[Route("/api/mcp", StreamableHTTPASGIApp(manager))], lifespan=lifespan)


async def main(stack: str, server: str) -> None:
    limits = {"connections_per_client": 10_000}
    settings = Settings(server=server, port=0, limits=limits)  # type: ignore[arg-type]
    sock = bind_socket("127.0.0.1", 0)
    port = sock.getsockname()[1]
    stop = anyio.Event()
    app = {"bare": bare, "fastmcp": fastmcp, "sdk": sdk}[stack]()

    async def ready() -> None:
        await asyncio.sleep(0.3)
        announce(base_url=f"http://127.0.0.1:{port}")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ready)
        await serve(app, sock, settings, stop=stop)


if __name__ == "__main__":
    from toolserver.serving.listen import run_async

    run_async(Settings(server=sys.argv[2], port=0), main, sys.argv[1], sys.argv[2])  # type: ignore[arg-type]
