"""The test service on standard input and output: `python -m tests.mcp.stdio_server [toolset [tools]]`.

It prints while it loads, to show that nothing but answers reaches the wire. With BROKEN or REFUSED set,
loading fails, with NEVER_LOADS it does not end; BACKEND names the event loop.
"""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from click import ClickException

from toolserver.mcp.messages import ClientFacts
from toolserver.mcp.stdio import Conversation, serve_stdio

CHOSEN: dict[str, Any] = {}


@asynccontextmanager
async def load(client: ClientFacts) -> AsyncIterator[Conversation]:
    from tests.mcp.service import running
    from toolserver.core.caller import Caller
    from toolserver.mcp.stdio_session import open_session

    print("noise from python")
    await anyio.run_process(["echo", "noise from a child"], stdout=None)
    if os.environ.get("NEVER_LOADS"):
        await anyio.sleep_forever()
    if os.environ.get("BROKEN"):
        raise RuntimeError("arranged")
    if os.environ.get("REFUSED"):
        raise ClickException("no such server")
    async with running(limited=True) as service:
        service.desk.slow = 0.4
        caller = Caller(client="local", limited=False, transport="stdio", token=os.environ.get("TOOLSERVER_TOKEN"))
        resources = service.engine.mcp_resources(has_events=False)
        async with open_session(
            service.registry, service.pipeline, caller, service.facts, resources=resources, **CHOSEN
        ) as session:
            yield session
        print("closed in order", file=sys.stderr)


if __name__ == "__main__":
    CHOSEN["toolset"] = sys.argv[1] if len(sys.argv) > 1 else None
    CHOSEN["tools"] = sys.argv[2].split(",") if len(sys.argv) > 2 else None

    async def main() -> None:
        await serve_stdio(load)

    anyio.run(main, backend=os.environ.get("BACKEND", "asyncio"))
