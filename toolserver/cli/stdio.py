"""Implement `toolserver stdio`: answer `initialize` first, and import the service or the bridge afterwards."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import click

from toolserver.cli.options import TOOLSETS, data_dir_option, server_option
from toolserver.mcp.messages import ClientFacts
from toolserver.mcp.stdio import Conversation, Load, serve_stdio

SEARCHING_CLIENTS = frozenset({"claude-code", "claude-ai", "codex-mcp-client"})
"""What Claude Code, Claude Desktop and Codex call themselves. They show a model the tools that it searched for."""


@click.command()
@click.option(
    "--toolset",
    type=TOOLSETS,
    help="Which tools to offer [every tool can be called; listed is the core, and all to hosts that search tools]",
)
@click.option("--tools", help="Tool names separated by commas, instead of a toolset")
@click.option(
    "--output-schema",
    type=click.Choice(["on", "off"]),
    default="on",
    show_default=True,
    help="Whether the listed tools have output schemas; without them the list is half as long",
)
@server_option
@data_dir_option
def stdio(
    toolset: str | None, tools: str | None, output_schema: str, server: str | None, data_dir: Path | None
) -> None:
    """Serve MCP on stdin and stdout; the bearer token comes from TOOLSERVER_TOKEN.

    With --server, every answer comes from that service. Tokens bought there are stored and used automatically.
    """
    names = [name.strip() for name in tools.split(",") if name.strip()] if tools else None
    load = make_load(
        {"data_dir": data_dir}, toolset=toolset, tools=names, server=server, output_schema=output_schema == "on"
    )
    anyio.run(serve_stdio, load)


def make_load(
    flags: dict[str, Any],
    *,
    toolset: str | None,
    tools: list[str] | None,
    server: str | None,
    output_schema: bool = True,
) -> Load:
    """Return what opens the conversation: with the service in this process, or with the service at `server`.

    Where nothing is chosen, hosts that search tools are offered all of them.

    Nothing is imported and no setting is read before the conversation is opened. `initialize` is answered before that.
    """

    if server is None:
        return partial(_load_service, flags=flags, toolset=toolset, tools=tools, output_schema=output_schema)
    return partial(_load_bridge, server=server, flags=flags, toolset=toolset, tools=tools, output_schema=output_schema)


@asynccontextmanager
async def _load_service(
    client: ClientFacts, *, flags: dict[str, Any], toolset: str | None, tools: list[str] | None, output_schema: bool
) -> AsyncIterator[Conversation]:
    from toolserver.cli.local_service import open_conversation

    offered = toolset or choose_toolset(client.name, tools)
    conversation = open_conversation(
        flags, toolset=offered, tools=tools, output_schema=output_schema, wants_views=client.shows_views
    )
    async with conversation as session:
        yield session


@asynccontextmanager
async def _load_bridge(
    client: ClientFacts,
    *,
    server: str,
    flags: dict[str, Any],
    toolset: str | None,
    tools: list[str] | None,
    output_schema: bool,
) -> AsyncIterator[Conversation]:
    from toolserver.cli.bridge import open_bridge

    offered = toolset or choose_toolset(client.name, tools)
    named = {"tools": ",".join(tools) if tools else None, "toolset": None if tools else offered}
    selection = {name: value for name, value in named.items() if value is not None}
    if not output_schema:
        selection["output_schema"] = "off"
    if client.shows_views:
        selection["views"] = "on"  # before 2026-07-28, only the first message says so
    async with open_bridge(server, flags, selection) as bridge:
        yield bridge


def choose_toolset(client: str, tools: list[str] | None) -> str | None:
    """Return the toolset for a client that chose none: None, unless it searches tools and named none."""
    return "all" if client in SEARCHING_CLIENTS and not tools else None
