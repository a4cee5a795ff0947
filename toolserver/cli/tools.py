"""Implement `toolserver tools`: list the tools of this installation, or of a service elsewhere."""

import json
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import anyio
import click

from toolserver.cli.bridge import ask, open_bridge, open_http, origin_of
from toolserver.cli.load_settings import settings_from
from toolserver.cli.options import TOOLSETS, choose_style, server_option, style_option
from toolserver.core.http import Unreachable
from toolserver.mcp.definitions import definition
from toolserver.registry.registry import Registry
from toolserver.registry.tool_packages import tool_packages

LISTED_S = 30.0


class ListedTool(NamedTuple):
    """A tool in the list."""

    name: str
    credits: int
    method: str
    path: str
    title: str


@click.command()
@click.option("--toolset", type=TOOLSETS, default="all", show_default=True, help="Which tools to list")
@style_option
@server_option
def tools(toolset: str, as_json: bool | None, server: str | None) -> None:
    """List the tools with their prices and paths. As JSON, they are listed as MCP lists them."""
    is_text = choose_style(as_json) == "lines"
    if server is not None:
        if is_text:
            print_rows(anyio.run(fetch_rows, server, toolset))
        else:
            print_definitions(anyio.run(fetch_definitions, server, toolset))
        return
    operations = Registry.load(*tool_packages(settings_from().tools)).chosen(toolset=toolset)
    if is_text:
        print_rows([ListedTool(o.name, o.credits, o.method, o.path, o.title) for o in operations])
    else:
        print_definitions([definition(operation) for operation in operations])


def print_definitions(definitions: list[dict[str, Any]]) -> None:
    """Print definitions of tools as one JSON document."""
    click.echo(json.dumps(definitions, indent=2, ensure_ascii=False))


def print_rows(rows: list[ListedTool]) -> None:
    """Print a line for each tool."""
    width = max((len(row.name) for row in rows), default=0)
    click.echo(f"{'tool':{width}}  price  {'path':37} title")
    for row in rows:
        click.echo(f"{row.name:{width}}  {row.credits or 'free':>5}  {row.method:4} {row.path:32} {row.title}")


async def fetch_definitions(server: str, toolset: str) -> list[dict[str, Any]]:
    """Return the definitions that the service at this address lists over MCP."""
    async with open_bridge(server, {}, {"toolset": toolset}) as bridge:
        definitions: list[dict[str, Any]] = (await ask(bridge, "tools/list", {}))["tools"]
        return definitions


async def fetch_rows(server: str, toolset: str) -> list[ListedTool]:
    """Return the tools of the service at this address with their prices, which MCP has no place for."""
    origin = origin_of(server)
    http = open_http(origin, settings_from())
    try:
        path = f"api/llm-tools?format=raw&toolset={toolset}"
        answer = await http.ask("GET", path, headers={}, within_s=LISTED_S)
        listed = json.loads(answer.body)["raw"]
        base = urlsplit(origin).path.rstrip("/")
        return [
            ListedTool(tool["name"], tool["cost_credits"], tool["method"], _path(tool["url"], base), tool["title"])
            for tool in listed
        ]
    except Unreachable as failure:
        raise click.ClickException(f"no answer from {origin}: {failure}") from None
    except (ValueError, KeyError, TypeError):
        raise click.ClickException(f"{origin} is not a service of this kind: it lists no tools") from None
    finally:
        await http.aclose()


def _path(url: str, base: str) -> str:
    return urlsplit(url).path.removeprefix(base)
