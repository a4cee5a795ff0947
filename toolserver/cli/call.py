"""Implement `toolserver call`: call one tool, in this process or at a service elsewhere, and print its answer."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import click
import msgspec

from toolserver.app import Service
from toolserver.cli.bridge import open_bridge
from toolserver.cli.load_settings import prepare_settings
from toolserver.cli.local_service import has_data, local_caller, local_service, needs_books
from toolserver.cli.options import data_dir_option, server_option
from toolserver.core.caller import Caller
from toolserver.errors import CallRejected
from toolserver.mcp import messages
from toolserver.mcp.stdio import Conversation
from toolserver.registry.error_codes import body as problem_body
from toolserver.registry.registry import Operation, Registry
from toolserver.registry.tool_packages import tool_packages
from toolserver.serving.money import keeps_books
from toolserver.settings import Settings


@click.command()
@click.argument("name")
@click.option("--args", "arguments", default="{}", show_default=True, help="Arguments as a JSON object")
@click.option("--token", help="Bearer token, for tools that cost credits")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as the service sends it, or the error as JSON")
@server_option
@data_dir_option
def call(
    name: str, arguments: str, token: str | None, as_json: bool, server: str | None, data_dir: Path | None
) -> None:
    """Call the tool NAME and print its answer. Exits with 1 if the call is refused or returns no data."""
    by_name = _read_arguments(arguments)
    if server is not None:
        flags = {"data_dir": data_dir, "token": token}
        sys.exit(anyio.run(lambda: call_server(server, name, by_name, flags, as_json=as_json)))
    settings = prepare_settings(data_dir=data_dir, token=token)
    sys.exit(anyio.run(lambda: call_command(settings, name, by_name, as_json=as_json)))


def _read_arguments(text: str) -> dict[str, Any]:
    try:
        arguments = json.loads(text)
    except ValueError as error:
        raise click.ClickException(f"--args is not JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise click.ClickException("--args must be a JSON object")
    return arguments


async def call_command(settings: Settings, name: str, arguments: dict[str, Any], *, as_json: bool) -> int:
    """Call one tool in this process and print the answer. Returns the status with which the program ends."""
    registry = Registry.load(*tool_packages(settings.tools))
    operation = registry.get(name)
    if operation is None:
        raise click.ClickException(f"there is no tool called {name}; `toolserver tools` lists them")
    books = keeps_books(settings)
    if needs_books(operation) and not books:
        raise click.ClickException(f"{name} needs a service that sells: add --server https://…")
    async with local_service(settings, registry, books=books) as service:
        return await print_outcome(service, operation, arguments, local_caller(settings, "cli"), as_json=as_json)


async def print_outcome(
    service: Service, operation: Operation, arguments: dict[str, Any], caller: Caller, *, as_json: bool
) -> int:
    """Call a tool and print the answer. Returns 1 when the call is refused or returns no data."""
    try:
        outcome = await service.pipeline.call(operation, arguments, caller)
    except CallRejected as rejected:
        problem = problem_body(
            rejected.code, rejected.detail, facts=service.facts, request_id="local", **rejected.extra
        )
        click.echo(json.dumps(problem, indent=None if as_json else 2), err=not as_json)
        return 1
    payload = outcome.rendered.payload
    click.echo(payload if as_json else msgspec.json.format(payload, indent=2))
    return 0 if has_data(json.loads(payload)) else 1


async def call_server(
    server: str, name: str, arguments: dict[str, Any], flags: Mapping[str, Any], *, as_json: bool
) -> int:
    """Call one tool of the service at this address and print the answer, like `print_outcome`."""
    async with open_bridge(server, flags, {"toolset": "all"}) as bridge:
        return await print_remote_answer(bridge, name, arguments, as_json=as_json)


async def print_remote_answer(bridge: Conversation, name: str, arguments: dict[str, Any], *, as_json: bool) -> int:
    """Call a tool over a bridge and print the answer. Returns 1 when the call is refused or returns no data."""
    params = {"name": name, "arguments": arguments}
    line = messages.encode({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    answer = json.loads(await bridge.answer(line, messages.read_message(line)) or b"{}")
    if "result" not in answer:
        raise click.ClickException(answer.get("error", {}).get("message", "the service sent an empty answer"))
    result = answer["result"]
    text = result["content"][0]["text"]
    failed = bool(result.get("isError"))
    click.echo(text if as_json else _indent(text), err=failed and not as_json)
    return 1 if failed or not has_data(result.get("structuredContent") or {}) else 0


def _indent(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text
