"""Implement `toolserver openapi`, `mcpb` and `server-json`: write what clients, MCP hosts and the registry read."""

import json
from pathlib import Path

import click

from catalog.mcpb import write_bundle
from catalog.server_json import server_json as compose_server_json
from rest_bridge.openapi.document import openapi as compose_openapi
from toolserver.cli.bridge import origin_of
from toolserver.cli.load_settings import settings_from
from toolserver.registry.registry import Registry
from toolserver.registry.tool_packages import tool_packages
from toolserver.serving.packaged_texts import read_changelog
from toolserver.serving.public_facts import read_public_facts
from toolserver.settings import normalize_base_url
from toolserver.sql.failures import describe_disk_error


@click.command()
@click.option("--base-url", default="http://127.0.0.1:8080", show_default=True, help="Public address of the service")
def openapi(base_url: str) -> None:
    """Print the OpenAPI document."""
    settings = settings_from()
    document = compose_openapi(Registry.load(*tool_packages(settings.tools)), read_public_facts(settings, base_url))
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--server", metavar="URL", help="Act as a bridge to the service at this address")
def mcpb(file: Path, server: str | None) -> None:
    """Write an MCP bundle, which a host installs with one click, to FILE."""
    registry = Registry.load(*tool_packages(settings_from().tools))
    bundle = write_bundle(registry, origin_of(server) if server else None, changes=read_changelog())
    try:
        file.write_bytes(bundle)
    except OSError as error:
        raise click.ClickException(
            f"the bundle cannot be written: {describe_disk_error(error, file, 'FILE')}"
        ) from None
    click.echo(f"wrote {file}: {len(bundle) / 1e6:.1f} MB")


@click.command("server-json")
@click.option("--base-url", required=True, metavar="URL", help="Public address of the service")
@click.option("--name", help="Name in the registry, <namespace>/<server>; by default, the reversed host name")
@click.option("--package", is_flag=True, help="Also list the Python package; only its owner on the index may do so")
def server_json(base_url: str, name: str | None, package: bool) -> None:
    """Print server.json, which publishes a service in the registry of MCP servers."""
    settings = settings_from()
    try:
        facts = read_public_facts(settings, normalize_base_url(base_url))
    except ValueError as error:
        raise click.ClickException(f"--base-url {error}") from None
    registry = Registry.load(*tool_packages(settings.tools))
    document = compose_server_json(registry, facts, name=name, package=package)
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))
