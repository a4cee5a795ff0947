"""Implement `toolserver stdio`: answer `initialize` first, and import the service or the bridge afterwards."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import click

from toolserver.cli.options import TOOLSETS, data_dir_option, server_option
from toolserver.mcp.stdio import Conversation, serve_stdio


@click.command()
@click.option("--toolset", type=TOOLSETS, default="core", show_default=True, help="Which tools to offer")
@click.option("--tools", help="Tool names separated by commas, instead of a toolset")
@server_option
@data_dir_option
def stdio(toolset: str, tools: str | None, server: str | None, data_dir: Path | None) -> None:
    """Serve MCP on stdin and stdout; the bearer token comes from TOOLSERVER_TOKEN.

    With --server, every answer comes from that service. Tokens bought there are stored and used automatically.
    """
    names = [name.strip() for name in tools.split(",") if name.strip()] if tools else None
    anyio.run(lambda: stdio_command({"data_dir": data_dir}, toolset=toolset, tools=names, server=server))


async def stdio_command(
    flags: dict[str, Any], *, toolset: str, tools: list[str] | None, server: str | None = None
) -> None:
    """Serve MCP on stdin and stdout: from this process, or as a bridge to the service at `server`.

    `initialize` is answered while the service is still starting. If it cannot start, every answer says why.
    """

    @asynccontextmanager
    async def load() -> AsyncIterator[Conversation]:
        from toolserver.cli.local_service import open_conversation

        async with open_conversation(flags, toolset=toolset, tools=tools) as session:
            yield session

    @asynccontextmanager
    async def load_bridge() -> AsyncIterator[Conversation]:
        from toolserver.cli.bridge import open_bridge

        selection = {"tools": ",".join(tools)} if tools else {"toolset": toolset}
        async with open_bridge(str(server), flags, selection) as bridge:
            yield bridge

    await serve_stdio(load if server is None else load_bridge)
