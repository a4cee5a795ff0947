"""Define the command line. Each command imports what it needs when it runs, because `stdio` must answer at once."""

import functools
import gc
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from toolserver import __version__
from toolserver.cli.allowances import allowances
from toolserver.cli.books import books
from toolserver.cli.facilitator import facilitator
from toolserver.cli.hidden_packages import describe_hidden
from toolserver.cli.install import install, uninstall
from toolserver.cli.ledger import db, ledger
from toolserver.cli.load_settings import (
    data_dir_option,
    end_in_one_line,
    json_option,
    prepare_settings,
    settings_from,
)
from toolserver.cli.publish import mcpb, server_json
from toolserver.cli.purchases import purchases, sweep_plan
from toolserver.cli.receipts import keys, receipts
from toolserver.cli.recover import recover
from toolserver.cli.refund import refund
from toolserver.cli.reissue import reissue
from toolserver.cli.sweep import sweep
from toolserver.cli.webhooks import webhooks
from toolserver.sql.failures import show_tracebacks

F = TypeVar("F", bound=Callable[..., Any])

_FLAGS = (
    click.option("--host", help="Address to listen on [127.0.0.1]"),
    click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 picks a free port [8080]"),
    click.option("--server", type=click.Choice(["hypercorn", "uvicorn"]), help="HTTP server [hypercorn]"),
    click.option(
        "--workers", type=click.IntRange(1), help="Worker processes; more than one needs database_url and redis_url [1]"
    ),
    data_dir_option,
    click.option("--ready-json", is_flag=True, help="Print one JSON line on stdout once calls are accepted"),
)


_TOOLSETS = click.Choice(["core", "all"])
_server_option = click.option(
    "--server", metavar="URL", help="Call the service at this address instead of this machine"
)


def _listening(function: F) -> F:
    """Add the flags that serve and demo share."""
    return functools.reduce(lambda f, option: option(f), reversed(_FLAGS), function)


class ExplainingGroup(click.Group):
    """Ends every verb with one line for a person: see `storage.failures`."""

    def invoke(self, ctx: click.Context) -> Any:
        with end_in_one_line():
            return super().invoke(ctx)


@click.group(cls=ExplainingGroup)
@click.version_option(__version__)
@click.option("--traceback", is_flag=True, help="Show where an unexpected error arose")
def main(traceback: bool) -> None:
    """Typed, live-data tools for AI agents over MCP, REST and function-calling definitions."""
    if hidden := describe_hidden():
        raise click.ClickException(hidden)
    show_tracebacks.set(traceback)
    gc.disable()  # start-up makes no garbage and is a fifth faster without GC; `freeze_startup` turns it on again


@main.command()
@_listening
@click.option("--everything", is_flag=True, help="Add the MCP conformance fixtures (development, loopback only)")
def serve(ready_json: bool, everything: bool, **flags: Any) -> None:
    """Serve the tools with live upstreams."""
    from toolserver.serving.listen import run_async

    settings = prepare_settings(**flags)
    if settings.workers > 1:
        from toolserver.cli.workers import workers_command

        run_async(settings, workers_command, settings, flags, ready_json=ready_json, everything=everything)
        return
    from toolserver.cli.serve import serve_command

    run_async(settings, serve_command, settings, ready_json=ready_json, everything=everything)


@main.command()
@_listening
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the simulated world")
def demo(ready_json: bool, seed: int, **flags: Any) -> None:
    """Serve the tools with a simulated world and a funded token: everything works offline.

    Without --data-dir, nothing is left behind on disk.
    """
    from tempfile import TemporaryDirectory

    from toolserver.cli.serve import demo_command
    from toolserver.serving.listen import run_async

    with TemporaryDirectory(prefix="toolserver-demo-") as own:  # demo credits are never stored beside real ones
        flags["data_dir"] = flags["data_dir"] or Path(own)
        settings = prepare_settings(**flags)
        run_async(settings, demo_command, settings, flags, seed=seed, ready_json=ready_json)


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Loopback address to listen on")
@click.option("--port", type=click.IntRange(0, 65535), default=9999, show_default=True, help="0 picks a free port")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the simulated world")
@click.option("--samples", type=click.Path(path_type=Path, exists=True), help="Folder of recorded bodies to replay")
@click.option(
    "--replay",
    metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Serve a recording of `toolserver doctor --live --record DIR` instead, with the clock stopped at its time",
)
def world(host: str, port: int, seed: int, samples: Path | None, replay: Path | None) -> None:
    """Run the simulated world alone. Point a service at it with TOOLSERVER_UPSTREAM__VIA."""
    import anyio

    from toolserver.cli.serve import world_command
    from toolserver.core.logging import set_up
    from toolserver.settings import is_loopback

    if not is_loopback(host):
        raise click.ClickException("the simulated world listens on loopback addresses only")
    set_up("info", "auto")
    command = functools.partial(world_command, settings_from(), host=host, port=port, seed=seed)
    anyio.run(functools.partial(command, samples=samples, replay=replay))


@main.command()
@click.option("--toolset", type=_TOOLSETS, default="core", show_default=True, help="Which tools to offer")
@click.option("--tools", help="Tool names separated by commas, instead of a toolset")
@_server_option
@data_dir_option
def stdio(toolset: str, tools: str | None, server: str | None, data_dir: Path | None) -> None:
    """Serve MCP on stdin and stdout; the bearer token comes from TOOLSERVER_TOKEN.

    With --server, every answer comes from that service. Tokens bought there are stored and used automatically.
    """
    import anyio

    from toolserver.cli.stdio import stdio_command

    flags = {"data_dir": data_dir}
    anyio.run(functools.partial(stdio_command, flags, toolset=toolset, tools=_names(tools), server=server))


@main.command()
@click.argument("name")
@click.option("--args", "arguments", default="{}", show_default=True, help="Arguments as a JSON object")
@click.option("--token", help="Bearer token, for tools that cost credits")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as the service sends it, or the error as JSON")
@_server_option
@data_dir_option
def call(
    name: str, arguments: str, token: str | None, as_json: bool, server: str | None, data_dir: Path | None
) -> None:
    """Call the tool NAME and print its answer. Exits with 1 if the call is refused or returns no data."""
    import anyio

    from toolserver.cli.in_process import call_command

    try:
        given = json.loads(arguments)
    except ValueError as error:
        raise click.ClickException(f"--args is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise click.ClickException("--args must be a JSON object")
    if server is not None:
        from toolserver.cli.bridge import call_server

        flags = {"data_dir": data_dir, "token": token}
        sys.exit(anyio.run(functools.partial(call_server, server, name, given, flags, as_json=as_json)))
    settings = prepare_settings(data_dir=data_dir, token=token)
    status = anyio.run(functools.partial(call_command, settings, name, given, as_json=as_json))
    sys.exit(status)


@main.command()
@click.option("--toolset", type=_TOOLSETS, default="all", show_default=True, help="Which tools to list")
@click.option("--json", "as_json", is_flag=True, help="Print the definitions as MCP lists them")
def tools(toolset: str, as_json: bool) -> None:
    """List the tools with their prices and paths."""
    from toolserver.cli.in_process import tools_listing

    click.echo(tools_listing(settings_from(), toolset, as_json=as_json))


@main.command()
@click.option("--base-url", default="http://127.0.0.1:8080", show_default=True, help="Public address of the service")
def openapi(base_url: str) -> None:
    """Print the OpenAPI document."""
    from toolserver.cli.in_process import openapi_document

    click.echo(openapi_document(settings_from(), base_url))


@main.command()
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 if a file is out of date")
def docs(check: bool) -> None:
    """Write the generated files of this checkout: docs, examples and the answer in the README."""
    from toolserver.cli.generate_docs import write_documents

    changed = write_documents(settings_from(), check=check)
    for path in changed:
        click.echo(f"{'out of date' if check else 'written'}: {path}")
    sys.exit(1 if check and changed else 0)


@main.command()
@click.option(
    "--live/--no-live", default=True, show_default=True, help="Send one request to every source that needs no argument"
)
@click.option(
    "--record",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Save every request and answer in a new folder, and compare the answers with what the parsers read",
)
@json_option
def doctor(live: bool, record: Path | None, as_json: bool) -> None:
    """Check this installation: every setting and its origin, storage and sources.

    Ends with a verdict and advice. Exits with 1 if something needs attention; with --record, also if a source refuses
    the request, is unreachable or unreadable, or has changed its schema. `toolserver world --replay DIR` serves a
    recording.
    """
    import anyio

    from toolserver.cli.doctor import doctor_command

    if record is not None and not live:
        raise click.UsageError("--record needs requests to the sources: remove --no-live")
    command = functools.partial(doctor_command, prepare_settings(), live=live, as_json=as_json, record=record)
    sys.exit(anyio.run(command))


for command in (
    install,
    uninstall,
    mcpb,
    server_json,
    allowances,
    books,
    ledger,
    db,
    keys,
    receipts,
    purchases,
    recover,
    refund,
    reissue,
    sweep,
    sweep_plan,
    facilitator,
    webhooks,
):
    main.add_command(command)


def _names(text: str | None) -> list[str] | None:
    return [name.strip() for name in text.split(",") if name.strip()] if text else None
