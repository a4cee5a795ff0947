"""Implement `toolserver stdio`: answer `initialize` first, and import the service or the bridge afterwards."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import click

from toolserver.cli.options import TOOLSETS, data_dir_option, server_option
from toolserver.mcp.stdio import Conversation, Load, serve_stdio


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
    anyio.run(serve_stdio, make_load({"data_dir": data_dir}, toolset=toolset, tools=names, server=server))


def make_load(flags: dict[str, Any], *, toolset: str, tools: list[str] | None, server: str | None) -> Load:
    """Return what opens the conversation: with the service in this process, or with the service at `server`.

    Nothing is imported and no setting is read before the conversation is opened. `initialize` is answered before that.
    """

    @asynccontextmanager
    async def load_service() -> AsyncIterator[Conversation]:
        from toolserver.cli.local_service import open_conversation

        async with open_conversation(flags, toolset=toolset, tools=tools) as session:
            yield session

    @asynccontextmanager
    async def load_bridge() -> AsyncIterator[Conversation]:
        from toolserver.cli.bridge import open_bridge

        selection = {"tools": ",".join(tools)} if tools else {"toolset": toolset}
        async with open_bridge(str(server), flags, selection) as bridge:
            yield bridge

    return load_service if server is None else load_bridge
