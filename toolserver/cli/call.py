"""Implement `toolserver call`: call one tool, in this process or at a service elsewhere, and print its answer."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import click
from click.shell_completion import CompletionItem

from toolserver.app import Service
from toolserver.cli.bridge import ask, open_bridge
from toolserver.cli.load_settings import prepare_settings, settings_from
from toolserver.cli.local_service import has_data, local_caller, local_service, needs_books
from toolserver.cli.options import Style, choose_style, data_dir_option, server_option, style_option
from toolserver.cli.plain_lines import write_answer
from toolserver.cli.tool_options import complete_flags, describe_unknown_tool, read_flags, tool_command
from toolserver.core.caller import Caller
from toolserver.core.visible_text import disarm, disarm_all
from toolserver.errors import CallRejected
from toolserver.mcp.stdio import Conversation
from toolserver.registry.error_codes import body as problem_body
from toolserver.registry.registry import Operation, Registry
from toolserver.registry.tool_packages import tool_packages
from toolserver.serving.money import keeps_books
from toolserver.settings import Settings


class CallCommand(click.Command):
    """The command `call`, which completes the arguments of the tool too."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the options that begin so: those of the tool first."""
        return [*_complete_flags(ctx, incomplete), *super().shell_complete(ctx, incomplete)]


@click.command(cls=CallCommand, context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("name", required=False, shell_complete=lambda ctx, param, incomplete: _complete_name(incomplete))
@click.argument(
    "flags",
    nargs=-1,
    type=click.UNPROCESSED,
    shell_complete=lambda ctx, param, incomplete: _complete_flags(ctx, incomplete),
)
@click.option("--args", "arguments", default="{}", show_default=True, help="Arguments as a JSON object")
@click.option("--token", help="Bearer token, for tools that cost credits")
@style_option
@server_option
@data_dir_option
@click.option("--help", "wants_help", is_flag=True, help="Show this message, or after NAME the arguments of the tool")
@click.pass_context
def call(
    ctx: click.Context,
    name: str | None,
    flags: tuple[str, ...],
    arguments: str,
    token: str | None,
    as_json: bool | None,
    server: str | None,
    data_dir: Path | None,
    wants_help: bool,
) -> None:
    """Call the tool NAME and print its answer. Exits with 1 if the call is refused or returns no data.

    Arguments are flags, `--place Paris`, or one JSON object, `--args`. `call NAME --help` lists them.
    """
    if name is None or name.startswith("-"):
        if wants_help or name is None:
            click.echo(ctx.get_help())
            ctx.exit(0 if wants_help else 2)
        raise click.UsageError(f"the name of the tool comes before its arguments, such as {name}")
    words = Words(name, _read_arguments(arguments), ("--help",) if wants_help else flags)
    style = choose_style(as_json)
    if server is not None:
        options = {"data_dir": data_dir, "token": token}
        ctx.exit(anyio.run(lambda: call_server(server, words, options, style)))
    settings = prepare_settings(data_dir=data_dir, token=token)
    ctx.exit(anyio.run(lambda: call_command(settings, words, style)))


class Words(NamedTuple):
    """A call as it is written on the command line: the tool, the object of --args, and flags that are not read yet."""

    name: str
    given: dict[str, Any]
    flags: tuple[str, ...] = ()

    @property
    def wants_help(self) -> bool:
        """True if the arguments of the tool are asked for."""
        return self.flags == ("--help",)

    def read(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments. Raises click.UsageError if one is unknown, has the wrong type or is given twice."""
        by_flag = read_flags(self.name, schema, self.flags)
        if twice := by_flag.keys() & self.given.keys():
            raise click.UsageError(f"{', '.join(sorted(twice))}: given both by --args and by a flag")
        return {**self.given, **by_flag}


def _read_arguments(text: str) -> dict[str, Any]:
    try:
        arguments = json.loads(text)
    except ValueError as error:
        raise click.ClickException(f"--args is not JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise click.ClickException("--args must be a JSON object")
    return arguments


def _load_registry() -> Registry:
    return Registry.load(*tool_packages(settings_from().tools))


def _complete_name(incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(o.name, help=o.title) for o in _load_registry() if o.name.startswith(incomplete)]


def _complete_flags(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    operation = _load_registry().get(str(ctx.params.get("name")))
    flags = ctx.params.get("flags") or ()
    return [] if operation is None else complete_flags(operation.input_schema, flags, incomplete)


async def call_command(settings: Settings, words: Words, style: Style) -> int:
    """Call one tool in this process and print the answer. Returns the status with which the program ends."""
    registry = Registry.load(*tool_packages(settings.tools))
    operation = registry.get(words.name)
    if operation is None:
        raise click.ClickException(describe_unknown_tool(words.name, [o.name for o in registry]))
    if words.wants_help:
        return print_help(operation.name, operation.input_schema, operation.description)
    arguments = words.read(operation.input_schema)
    books = keeps_books(settings)
    if needs_books(operation) and not books:
        raise click.ClickException(f"{words.name} needs a service that sells: add --server https://…")
    async with local_service(settings, registry, books=books) as service:
        return await print_outcome(service, operation, arguments, local_caller(settings, "cli"), style)


def print_help(name: str, schema: Mapping[str, Any], description: str) -> int:
    """Print what a tool answers, and its arguments as flags. Returns 0."""
    command = tool_command(name, schema, description)
    click.echo(disarm(command.get_help(click.Context(command, info_name=f"toolserver call {name}"))))
    return 0


async def print_outcome(
    service: Service, operation: Operation, arguments: dict[str, Any], caller: Caller, style: Style
) -> int:
    """Call a tool and print the answer. Returns 1 when the call is refused or returns no data."""
    try:
        outcome = await service.pipeline.call(operation, arguments, caller)
    except CallRejected as rejected:
        problem = problem_body(
            rejected.code, rejected.detail, facts=service.facts, request_id="local", **rejected.extra
        )
        print_text(json.dumps(problem), style, failed=True)
        return 1
    text = outcome.rendered.payload.decode()
    print_text(text, style)
    return 0 if has_data(json.loads(text)) else 1


async def call_server(server: str, words: Words, options: Mapping[str, Any], style: Style) -> int:
    """Call one tool of the service at this address and print the answer, like `print_outcome`."""
    async with open_bridge(server, options, {"toolset": "all", "output_schema": "off"}) as bridge:
        if not words.flags:
            return await print_remote_answer(bridge, words.name, words.given, style)
        listed = {tool["name"]: tool for tool in (await ask(bridge, "tools/list", {}))["tools"]}
        tool = listed.get(words.name)
        if tool is None:
            raise click.ClickException(describe_unknown_tool(words.name, list(listed)))
        if words.wants_help:
            return print_help(words.name, tool["inputSchema"], tool.get("description", ""))
        return await print_remote_answer(bridge, words.name, words.read(tool["inputSchema"]), style)


async def print_remote_answer(bridge: Conversation, name: str, arguments: dict[str, Any], style: Style) -> int:
    """Call a tool over a bridge and print the answer. Returns 1 when the call is refused or returns no data."""
    result = await ask(bridge, "tools/call", {"name": name, "arguments": arguments})
    failed = bool(result.get("isError"))
    print_text(read_text(result), style, failed=failed)
    return 1 if failed or not has_data(result.get("structuredContent") or {}) else 0


def read_text(result: Mapping[str, Any]) -> str:
    """Return the text of a tool's result. Raises click.ClickException if it has none."""
    try:
        text = result["content"][0]["text"]
    except (LookupError, TypeError):
        text = None
    if not isinstance(text, str):
        raise click.ClickException("the service sent an answer without a text")
    return text


def print_text(text: str, style: Style, *, failed: bool = False) -> None:
    """Print an answer or a refusal. Only `--json` prints a refusal to standard output.

    A service elsewhere, or what it quotes, may hold what a terminal obeys. Nothing of that is printed.
    """
    err = failed and style != "json"
    try:
        payload = json.loads(text)
    except (ValueError, RecursionError):
        payload = None
    if style == "json" or not isinstance(payload, dict):
        click.echo(disarm(text), err=err)
    elif style == "indented":
        click.echo(json.dumps(disarm_all(payload), indent=2, ensure_ascii=False), err=err)
    else:
        click.echo("\n".join(write_answer(payload)), err=err)
