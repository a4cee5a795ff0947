"""The test service on standard input and output: `python -m tests.protocol.stdio_server [toolset [tools]]`.

It prints while it loads, to show that nothing but answers reaches the wire. With BROKEN set,
loading fails; BACKEND names the event loop.
"""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from toolserver.protocol.stdio import serve_stdio


@asynccontextmanager
async def load() -> AsyncIterator[tuple[Any, Any, Any, Any]]:
    from tests.protocol.service import running
    from toolserver.access import Caller

    print("noise from python")
    await anyio.run_process(["echo", "noise from a child"], stdout=None)
    if os.environ.get("BROKEN"):
        raise RuntimeError("arranged")
    async with running(limited=True) as service:
        service.desk.slow = 0.4
        caller = Caller(client="local", limited=False, door="stdio", token=os.environ.get("TOOLSERVER_TOKEN"))
        yield service.registry, service.pipeline, caller, service.facts
        print("closed in order", file=sys.stderr)


if __name__ == "__main__":
    toolset = sys.argv[1] if len(sys.argv) > 1 else None
    tools = sys.argv[2].split(",") if len(sys.argv) > 2 else None

    async def main() -> None:
        await serve_stdio(load, toolset=toolset, tools=tools)

    anyio.run(main, backend=os.environ.get("BACKEND", "asyncio"))
