"""Implement `toolserver tools`: list the tools."""

import json

import click

from toolserver.cli.load_settings import settings_from
from toolserver.cli.options import TOOLSETS
from toolserver.mcp.definitions import definition
from toolserver.registry.registry import Registry
from toolserver.registry.tool_packages import tool_packages


@click.command()
@click.option("--toolset", type=TOOLSETS, default="all", show_default=True, help="Which tools to list")
@click.option("--json", "as_json", is_flag=True, help="Print the definitions as MCP lists them")
def tools(toolset: str, as_json: bool) -> None:
    """List the tools with their prices and paths."""
    operations = Registry.load(*tool_packages(settings_from().tools)).chosen(toolset=toolset)
    if as_json:
        click.echo(json.dumps([definition(operation) for operation in operations], indent=2, ensure_ascii=False))
        return
    width = max(len(o.name) for o in operations)
    click.echo(f"{'tool':{width}}  price  {'path':37} title")
    for o in operations:
        click.echo(f"{o.name:{width}}  {o.credits or 'free':>5}  {o.method:4} {o.path:32} {o.title}")
