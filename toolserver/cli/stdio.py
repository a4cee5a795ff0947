"""Implement `toolserver stdio`: answer `initialize` first and import the rest afterwards."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from toolserver.mcp.stdio import serve_stdio

if TYPE_CHECKING:
    from toolserver.mcp.stdio import Conversation


async def stdio_command(
    flags: dict[str, Any], *, toolset: str, tools: list[str] | None, server: str | None = None
) -> None:
    """Serve MCP on stdin and stdout: from this process, or as a bridge to the service at `server`.

    `initialize` is answered while the service is still starting. If it cannot start, every answer says why.
    """

    @asynccontextmanager
    async def load() -> "AsyncIterator[Conversation]":
        from toolserver.cli.in_process import local_caller, local_service
        from toolserver.cli.load_settings import prepare_settings
        from toolserver.mcp.stdio_session import open_session
        from toolserver.serving.listen import freeze_startup
        from toolserver.serving.money import keeps_books

        settings = prepare_settings(**flags)
        caller = local_caller(settings, "stdio")
        async with local_service(settings, books=keeps_books(settings)) as service:
            freeze_startup()
            parts = (service.registry, service.pipeline, caller, service.facts)
            async with open_session(*parts, toolset=toolset, tools=tools) as session:
                yield session

    @asynccontextmanager
    async def load_bridge() -> "AsyncIterator[Conversation]":
        from toolserver.cli.bridge import open_bridge

        chosen = {"tools": ",".join(tools)} if tools else {"toolset": toolset}
        async with open_bridge(str(server), flags, chosen) as bridge:
            yield bridge

    await serve_stdio(load if server is None else load_bridge)
