"""The command line. Each verb imports what it needs when it runs: `stdio` must answer at once."""

import functools
import gc
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from toolserver import __version__
from toolserver.billing.receipt_commands import keys, receipts
from toolserver.configured import prepared, settings_from
from toolserver.ledger_cli import db, ledger
from toolserver.payments.commands import purchases, sweep_plan
from toolserver.payments.x402.commands import facilitator

F = TypeVar("F", bound=Callable[..., Any])

_FLAGS = (
    click.option("--host", help="Address to listen on [127.0.0.1]"),
    click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 picks a free one [8080]"),
    click.option("--server", type=click.Choice(["hypercorn", "uvicorn"]), help="HTTP server [hypercorn]"),
    click.option("--workers", type=click.IntRange(1), help="Processes [1]"),
    click.option("--data-dir", type=click.Path(path_type=Path), help="Where keys and databases live"),
    click.option("--ready-json", is_flag=True, help="Print one JSON line on stdout once calls are accepted"),
)


def _listening(function: F) -> F:
    """The flags that serve and demo share."""
    return functools.reduce(lambda f, option: option(f), reversed(_FLAGS), function)


@click.group()
@click.version_option(__version__)
def main() -> None:
    """Typed, live-data tools for AI agents over MCP, REST and function-calling definitions."""
    gc.disable()  # nothing made while starting is garbage: a fifth of the time; `settled` turns it on again


@main.command()
@_listening
@click.option("--everything", is_flag=True, help="Add the MCP conformance fixtures (development, loopback only)")
def serve(ready_json: bool, everything: bool, **flags: Any) -> None:
    """Serve the tools on live upstreams."""
    from toolserver.commands import serve_command
    from toolserver.serving import run_async

    settings = prepared(**flags)
    run_async(settings, serve_command, settings, ready_json=ready_json, everything=everything)


@main.command()
@_listening
@click.option("--seed", type=int, default=1, show_default=True, help="Which simulated world")
def demo(ready_json: bool, seed: int, **flags: Any) -> None:
    """Serve the tools on a simulated world, with a funded token: everything works offline.

    Without --data-dir it leaves nothing behind.
    """
    from tempfile import TemporaryDirectory

    from toolserver.commands import demo_command
    from toolserver.serving import run_async

    with TemporaryDirectory(prefix="toolserver-demo-") as own:  # play money never stands beside real one
        flags["data_dir"] = flags["data_dir"] or Path(own)
        settings = prepared(**flags)
        run_async(settings, demo_command, settings, seed=seed, ready_json=ready_json)


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(0, 65535), default=9999, show_default=True)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--samples", type=click.Path(path_type=Path, exists=True), help="Folder of recorded bodies to replay")
def world(host: str, port: int, seed: int, samples: Path | None) -> None:
    """Run the simulated world alone; point a service at it with TOOLSERVER_UPSTREAM__VIA."""
    import anyio

    from toolserver.commands import world_command
    from toolserver.logs import set_up
    from toolserver.settings import is_loopback

    if not is_loopback(host):
        raise click.ClickException("the simulated world listens on this machine only")
    set_up("info", "auto")
    anyio.run(functools.partial(world_command, host=host, port=port, seed=seed, samples=samples))


@main.command()
@click.option("--toolset", type=click.Choice(["core", "all"]), default="core", show_default=True)
@click.option("--tools", help="Comma list of tool names, instead of a toolset")
@click.option("--data-dir", type=click.Path(path_type=Path))
def stdio(toolset: str, tools: str | None, data_dir: Path | None) -> None:
    """Serve MCP on stdin and stdout; the bearer token comes from TOOLSERVER_TOKEN."""
    import anyio

    from toolserver.stdio_command import stdio_command

    flags = {"data_dir": data_dir}
    anyio.run(functools.partial(stdio_command, flags, toolset=toolset, tools=_names(tools)))


@main.command()
@click.argument("name")
@click.option("--args", "arguments", default="{}", help="Arguments as a JSON object")
@click.option("--token", help="Bearer token, for tools that cost credits")
@click.option("--json", "as_json", is_flag=True, help="Print the answer's bytes and nothing else")
@click.option("--data-dir", type=click.Path(path_type=Path))
def call(name: str, arguments: str, token: str | None, as_json: bool, data_dir: Path | None) -> None:
    """Call one tool and print its answer."""
    import anyio

    from toolserver.local import call_command

    try:
        given = json.loads(arguments)
    except ValueError as error:
        raise click.ClickException(f"--args is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise click.ClickException("--args must be a JSON object")
    settings = prepared(data_dir=data_dir, token=token)
    status = anyio.run(functools.partial(call_command, settings, name, given, as_json=as_json))
    sys.exit(status)


@main.command()
@click.option("--toolset", type=click.Choice(["core", "all"]), default="all", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The definitions as MCP lists them")
def tools(toolset: str, as_json: bool) -> None:
    """List the tools."""
    from toolserver.local import tools_listing

    click.echo(tools_listing(settings_from(), toolset, as_json=as_json))


@main.command()
@click.option("--base-url", default="http://127.0.0.1:8080", show_default=True)
def openapi(base_url: str) -> None:
    """Print the OpenAPI document."""
    from toolserver.local import openapi_document

    click.echo(openapi_document(settings_from(), base_url))


@main.command()
@click.option("--check", is_flag=True, help="Change nothing; fail when something is out of date")
def docs(check: bool) -> None:
    """Write the generated parts of the documents of this checkout."""
    from toolserver.written import write_documents

    changed = write_documents(settings_from(), check=check)
    for path in changed:
        click.echo(f"{'out of date' if check else 'written'}: {path}")
    sys.exit(1 if check and changed else 0)


@main.command()
@click.option("--live/--no-live", default=True, show_default=True, help="Ask every source once")
@click.option("--json", "as_json", is_flag=True)
def doctor(live: bool, as_json: bool) -> None:
    """Check this installation: settings and where they come from, storage, every source."""
    import anyio

    from toolserver.doctor import doctor_command

    sys.exit(anyio.run(functools.partial(doctor_command, prepared(), live=live, as_json=as_json)))


for command in (ledger, db, keys, receipts, purchases, sweep_plan, facilitator):
    main.add_command(command)


def _names(text: str | None) -> list[str] | None:
    return [name.strip() for name in text.split(",") if name.strip()] if text else None
